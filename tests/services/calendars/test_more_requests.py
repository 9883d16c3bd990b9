"""More of what people ask of their calendar: conflicts, zones, invitations, days without a time, a usual calendar.

As `test_requests.py`: whole turns of a scripted model against a real server, everything read anew; no event is wrong.
"""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cortex.storage.calendars import CalendarsRepository
from tests.dav_servers import PASSWORD, DavServer, event, radicale
from tests.living_house import LivingHouse, living_house
from tests.scripted_server import ScriptedServer
from tests.services.calendars.test_requests import (
    ADA,
    BEN,
    KARIM,
    ME,
    NOW,
    ZONE,
    Request,
    add,
    comes_out,
    dates,
    one,
)  # fmt: skip
from tests.share import a_quarter_daily
from tests.still_clock import StillClock

OLA = "ola@example.org"
KOLKATA, LISBON, NEW_YORK = "Asia/Kolkata", "Europe/Lisbon", "America/New_York"
MARCH = (datetime(2027, 3, 1, tzinfo=UTC), datetime(2027, 4, 5, tzinfo=UTC))
AUTUMN = (datetime(2027, 10, 25, tzinfo=UTC), datetime(2027, 11, 5, tzinfo=UTC))
BY_KARIM = f"ORGANIZER;CN=Karim:mailto:{KARIM}"
MINE = [f"ORGANIZER:mailto:{ADA}", ME, f"ATTENDEE;CN=Ben;PARTSTAT=ACCEPTED:mailto:{BEN}"]
GUITAR = [f"DTSTART;TZID={ZONE}:20261204T170000", "DURATION:PT45M"]  # a Friday
THERE: dict[str, list[str]] = {
    "dentist": event("dentist", "Dentist", f"DTSTART;TZID={ZONE}:20261201T100000", "DURATION:PT1H"),
    "vigil": event("vigil", "Vigil", f"DTSTART;TZID={ZONE}:20261201T103000", "DURATION:PT1H", "TRANSP:TRANSPARENT"),
    "holiday": event("holiday", "Holiday", "DTSTART;VALUE=DATE:20261221", "DTEND;VALUE=DATE:20261224"),
    "call": event("call", "Call", f"DTSTART;TZID={KOLKATA}:20261207T143000", "DURATION:PT30M"),
    "swim": event(
        "swim", "Swim", f"DTSTART;TZID={LISBON}:20261201T180000", "DURATION:PT1H", "RRULE:FREQ=WEEKLY;COUNT=3",
    ),
    "float": event("float", "Float", "DTSTART:20261209T090000", "DTEND:20261209T100000"),
    "flight": event("flight", "Flight", "DTSTART:20261213T051000Z", "DTEND:20261213T080500Z"),
    "board": event(
        "board", "Board", f"DTSTART;TZID={NEW_YORK}:20270308T090000", "DURATION:PT30M",
        "RRULE:FREQ=WEEKLY;UNTIL=20270329T130000Z",
    ),
    "wedding": event("wedding", "Wedding", "DTSTART;VALUE=DATE:20261212", "DTEND;VALUE=DATE:20261213", BY_KARIM, ME),
    "course": [
        *event(
            "course", "Course", f"DTSTART;TZID={ZONE}:20261202T190000", "DURATION:PT90M", "RRULE:FREQ=WEEKLY;COUNT=2",
            BY_KARIM, ME,
        ),
        *event(
            "course", "Course", f"RECURRENCE-ID;TZID={ZONE}:20261209T190000", f"DTSTART;TZID={ZONE}:20261210T190000",
            "DURATION:PT90M", BY_KARIM, ME,
        ),
    ],
    "dinner": event(
        "dinner", "Course dinner", f"DTSTART;TZID={ZONE}:20261217T190000", "DURATION:PT2H", BY_KARIM, ME,
    ),
    "lunch": event("lunch", "Lunch", f"DTSTART;TZID={ZONE}:20261203T130000", "DURATION:PT1H", *MINE),
    "round": event(
        "round", "Round", f"DTSTART;TZID={ZONE}:20261215T080000", "DURATION:PT30M", "RRULE:FREQ=WEEKLY;COUNT=3", *MINE,
    ),
    "choir": event(
        "choir", "Choir", f"DTSTART;TZID={ZONE}:20261214T200000", "DURATION:PT1H", "RRULE:FREQ=DAILY;COUNT=4",
        "EXRULE:FREQ=WEEKLY;BYDAY=TU",
    ),
    "guitar": [
        *event("guitar", "Guitar", *GUITAR, "RRULE:FREQ=WEEKLY;COUNT=3"),
        *event(
            "guitar", "Guitar", f"RECURRENCE-ID;RANGE=THISANDFUTURE;TZID={ZONE}:20261211T170000",
            f"DTSTART;TZID={ZONE}:20261211T180000", "DURATION:PT45M",
        ),
    ],
}  # fmt: skip
DENTIST, LUNCH, HOLIDAY = "Dentist 12-01 10:00-11:00", "Lunch 12-03 13:00-14:00", "Holiday 12-21..12-23"
SWIM = [f"Swim {day} 19:00-20:00" for day in ("12-01", "12-08", "12-15")]
ROUND = [f"Round {day} 08:00-08:30" for day in ("12-15", "12-22", "12-29")]
BOARD = ["Board 03-08 15:00-15:30", "Board 03-15 14:00-14:30", "Board 03-22 14:00-14:30", "Board 03-29 15:00-15:30"]
CHOIR = [f"Choir {day} 20:00-21:00" for day in ("12-14", "12-16", "12-17")]
GUITARS = ["Guitar 12-04 17:00-17:45", "Guitar 12-11 18:00-18:45", "Guitar 12-18 18:00-18:45"]
BEFORE = [
    DENTIST, LUNCH, HOLIDAY, *SWIM, *ROUND, *CHOIR, *GUITARS, "Vigil 12-01 10:30-11:30", "Call 12-07 10:00-10:30",
    "Float 12-09 09:00-10:00", "Flight 12-13 06:10-09:05", "Wedding 12-12..12-12", "Course 12-02 19:00-20:30",
    "Course 12-10 19:00-20:30", "Course dinner 12-17 19:00-21:00",
]  # fmt: skip
BESIDE = "at the same time as 1 other appointment"
UNTOLD = "its guests are not told, as the server of Home sends nothing"
REQUESTS: dict[str, Request] = {
    # conflicts
    "over another": add({"title": "Vet", "when": "2026-12-01 10:30 for 15 minutes"}, "Vet 12-01 10:30-10:45",
        says=(BESIDE,)),
    "right behind another": add({"title": "Vet", "when": "2026-12-01 11:00"}, "Vet 12-01 11:00-12:00",
        lacks=("at the same time",)),
    "beside a whole day": add({"title": "Vet", "when": "2026-12-21 10:00"}, "Vet 12-21 10:00-11:00",
        lacks=("at the same time",)),
    "over one of another zone": add({"title": "Vet", "when": "2026-12-07 10:15"}, "Vet 12-07 10:15-11:15",
        says=(BESIDE,)),
    "over midnight, over the morning": add({"title": "Fair", "when": "2026-12-12 22:00 for 600 minutes"},
        "Fair 12-12 22:00-08:00", says=(BESIDE,)),
    "moved over another": one("change", to={"appointment": "lunch", "when": "2026-12-04 17:30", "tell_guests": True},
        choice="once", minus=(LUNCH,), plus=("Lunch 12-04 17:30-18:30",), says=(BESIDE,)),
    "moved within its own time": one("change", to={"appointment": "dentist", "when": "10:15"}, minus=(DENTIST,),
        plus=("Dentist 12-01 10:15-11:15",), lacks=("at the same time",)),
    "what stands then": one("list", to={"first": "2026-12-01", "days": 1}, says=("Dentist", "Vigil", "Swim")),
    "free beside what leaves room": one("find", to={"first": "2026-12-01", "days": 1, "from_hour": 10, "to_hour": 12},
        says=("Free:\n- Tue 1 Dec 2026 11:00 to 12:00",)),
    "free for both": one("find", to={"first": "2026-12-01", "days": 1, "from_hour": 10, "to_hour": 14,
        "people": "Bob"}, says=("Free:\n- Tue 1 Dec 2026 13:00 to 14:00",)),
    "free for one who shares nothing": one("find", to={"people": "Mia"}, says=("There is no calendar 'Mia'.",)),
    "no time long enough for both": one("find", to={"first": "2026-12-01", "days": 1, "from_hour": 10, "to_hour": 14,
        "minutes": 90, "people": "Bob"}, says=("No 90 minutes are free",)),
    # zones
    "one of Kolkata here": one("list", to={"query": "call"}, says=("Mon 7 Dec 2026 10:00 to 10:30",)),
    "one of Kolkata by another name": one("change", to={"appointment": "call", "title": "Team call"},
        minus=("Call 12-07 10:00-10:30",), plus=("Team call 12-07 10:00-10:30",),
        stands=(("call", f"DTSTART;TZID={KOLKATA}:20261207T143000"),)),
    "one of Kolkata to a time here": one("change", to={"appointment": "call", "when": "11:00"},
        minus=("Call 12-07 10:00-10:30",), plus=("Call 12-07 11:00-11:30",)),
    "a date of Lisbon": one("change", to={"appointment": "swim", "day": "2026-12-08", "when": "20:00"},
        minus=(SWIM[1],), plus=("Swim 12-08 20:00-21:00",)),
    "all of Lisbon": one("change", to={"appointment": "swim", "when": "20:00", "all_dates": True}, minus=tuple(SWIM),
        plus=tuple(one.replace("19:00-20:00", "20:00-21:00") for one in SWIM),
        stands=(("swim", f"DTSTART;TZID={LISBON}:20261201T190000"),)),
    "a date of Lisbon away": one("remove", to={"appointment": "swim", "day": "2026-12-15"}, minus=(SWIM[2],)),
    "one of no zone": one("list", to={"query": "float"}, says=("Wed 9 Dec 2026 09:00 to 10:00",)),
    "one of no zone, later": one("change", to={"appointment": "float", "when": "10:00"},
        minus=("Float 12-09 09:00-10:00",), plus=("Float 12-09 10:00-11:00",)),
    "one in UTC, longer": one("change", to={"appointment": "flight", "when": "for 200 minutes"},
        minus=("Flight 12-13 06:10-09:05",), plus=("Flight 12-13 06:10-09:30",)),
    "through both changes of the clocks": one("list", to={"first": "2027-03-08", "days": 31, "query": "board"}, says=(
        "Mon 8 Mar 2027 15:00", "Mon 15 Mar 2027 14:00", "Mon 22 Mar 2027 14:00", "Mon 29 Mar 2027 15:00"),
        window=MARCH),
    "a date between them": one("change", to={"appointment": "board", "day": "2027-03-15", "when": "15:00"},
        minus=(BOARD[1],), plus=("Board 03-15 15:00-15:30",), window=MARCH),
    "a date behind them away": one("remove", to={"appointment": "board", "day": "2027-03-29"}, minus=(BOARD[3],),
        window=MARCH),
    "an hour that the clocks leave out": add({"title": "Odd", "when": "2027-03-28 02:30"}, "Odd 03-28 03:30-04:30",
        window=MARCH),
    "an hour that comes twice": add({"title": "Odd", "when": "2027-10-31 02:30 for 30 minutes"},
        "Odd 10-31 02:30-03:00", window=AUTUMN),
    "a moment with its offset": add({"title": "Vet", "when": "2026-12-02T08:00+00:00"}, "Vet 12-02 09:00-10:00"),
    "the day of 23 hours": add({"title": "Spring", "when": "2027-03-28"}, "Spring 03-28..03-28",
        window=MARCH),
    "days over a change of the clocks": add({"title": "Trip", "when": "2027-03-27 to 2027-03-29"},
        "Trip 03-27..03-29", window=MARCH),
    # invitations
    "a whole day accepted": one("answer", to={"appointment": "wedding", "answer": "accepted"}, choice="once",
        stands=(("wedding", "PARTSTAT=ACCEPTED"),)),
    "a series declined": one("answer", to={"appointment": "course", "day": "2026-12-02", "answer": "declined"},
        choice="once", stands=(("course", "PARTSTAT=DECLINED"),)),
    "perhaps": one("answer", to={"appointment": "course dinner", "answer": "tentative"}, choice="once",
        stands=(("dinner", "PARTSTAT=TENTATIVE"),)),
    "not answered without a yes": one("answer", to={"appointment": "wedding", "answer": "accepted"}, choice="deny",
        stands=(("wedding", "PARTSTAT=NEEDS-ACTION"),)),
    "one of two that fit": one("answer", to={"appointment": "cours", "answer": "accepted"}, says=("Several fit",)),
    "another's is not moved": one("change", to={"appointment": "wedding", "when": "2026-12-19"}, says=(
        "made this appointment",)),
    "another's is not removed": one("remove", to={"appointment": "wedding"}, says=("made this appointment",)),
    "who comes": one("list", to={"query": "lunch"}, says=("Ada (needs-action), Ben (accepted)",)),
    "two guests": add({"title": "Tea", "when": "2026-12-05 16:00", "guests": f"{BEN}, {OLA.upper()}"},
        "Tea 12-05 16:00-17:00", choice="once", stands=(("", f"mailto:{OLA}"),)),
    "guests each week": add({"title": "Tea", "when": "2026-12-05 16:00", "repeat": "weekly until 2026-12-12",
        "guests": OLA}, "Tea 12-05 16:00-17:00", "Tea 12-12 16:00-17:00", choice="once",
        stands=(("", f"mailto:{OLA}"),)),
    "a guest by name and address": add({"title": "Tea", "when": "2026-12-05 16:00", "guests": f"Ola <{OLA}>"},
        says=("neither an e-mail address",)),
    "more guests than one call may": add({"title": "Tea", "when": "2026-12-05 16:00",
        "guests": ",".join(f"guest{count}@example.org" for count in range(21))}, says=("At most 20 guests",)),
    "a date of one's own series with guests": one("change", to={"appointment": "round", "day": "2026-12-22",
        "when": "9:00", "tell_guests": True}, choice="once", minus=(ROUND[1],), plus=("Round 12-22 09:00-09:30",)),
    # a server that sends nothing
    "guests whom nobody tells": add({"title": "Tea", "when": "2026-12-05 16:00", "guests": BEN}, is_told=False,
        says=("The server of Home sends no invitations",)),
    "moved, and nobody is told": one("change", to={"appointment": "lunch", "when": "14:00"}, is_told=False,
        minus=(LUNCH,), plus=("Lunch 12-03 14:00-15:00",), says=(UNTOLD,)),
    "removed, and nobody is told": one("remove", to={"appointment": "lunch"}, is_told=False, minus=(LUNCH,), says=(
        UNTOLD,)),
    "answered for oneself": one("answer", to={"appointment": "wedding", "answer": "accepted"}, is_told=False,
        choice="once", says=("accepted, in Home", f"{KARIM} is not told"), stands=(("wedding", "PARTSTAT=ACCEPTED"),)),
    # days without a time
    "on Friday": add({"title": "Off", "when": "Friday"}, "Off 12-04..12-04"),
    "by its date": add({"title": "Off", "when": "24 December"}, "Off 12-24..12-24"),
    "a day with a length": add({"title": "Vet", "when": "tomorrow for 30 minutes"}, says=("names no time of day",)),
    "each month, whole": add({"title": "Rent", "when": "2026-12-01", "repeat": "monthly until 2026-12-31"},
        "Rent 12-01..12-01"),
    "to another day at its time": one("change", to={"appointment": "dentist", "when": "Friday"}, minus=(DENTIST,),
        plus=("Dentist 12-04 10:00-11:00",)),
    "whole days to another day": one("change", to={"appointment": "holiday", "when": "2026-12-28"}, minus=(HOLIDAY,),
        plus=("Holiday 12-28..12-30",)),
    "a part of the day": add({"title": "Vet", "when": "Friday afternoon for 30 minutes"}, "Vet 12-04 15:00-15:30"),
    # as other programs wrote it
    "left out by a rule": one("remove", to={"appointment": "choir", "day": "2026-12-16"}, minus=(CHOIR[1],)),
    "moved whole, left out by a rule": one("change", to={"appointment": "choir", "when": "19:00", "all_dates": True},
        says=("cannot move",)),
    "changed from a date on": one("change", to={"appointment": "guitar", "day": "2026-12-18", "when": "19:00"}, says=(
        "Another program changed this series from one date on",)),
    "all of it, changed from a date on": one("remove", to={"appointment": "guitar", "all_dates": True},
        minus=tuple(GUITARS)),
}  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DavServer]:
    with radicale(tmp_path_factory.mktemp("dav")) as running:
        yield running


@pytest.fixture
async def house(server: DavServer, scripted: ScriptedServer, tmp_path: Path) -> AsyncIterator[LivingHouse]:
    """A house in Berlin: the admin's calendar Home as in `THERE`, and Bob's, of which others see when he is busy."""
    url, bobs = server.make("Home"), server.make("Work", "ben")
    for name, lines in THERE.items():
        server.put(url, name, *lines)
    server.put(bobs, "shift", *event("shift", "Shift", f"DTSTART;TZID={ZONE}:20261201T110000", "DURATION:PT2H"),
               person="ben")  # fmt: skip
    place = scripted.origin.removeprefix("http://")
    async with living_house(
        tmp_path / "home", clock=StillClock(NOW), calendar_servers=server.place, model_hosts=(place,)
    ) as opened:
        await opened.connect(scripted)
        await opened.cortex.accounts.set_time_zone(opened.admin, ZONE)
        accounts, sync = opened.cortex.calendar_accounts, opened.cortex.calendar_sync
        for person, name in ((opened.admin, "ann"), (opened.member, "ben")):
            await accounts.add_server(person, server.base, name, PASSWORD)
            ((account, (calendar,)),) = await accounts.list(person)
            await sync.sync(person.id, account.id)
        await accounts.set_access(opened.member, calendar.id, "write", "busy")
        yield opened
    server.delete(url)
    server.delete(bobs, "ben")


async def sends(house: LivingHouse, *, is_told: bool) -> None:
    """Have the server be known as one that sends invitations, or as one that sends none."""
    ((account, _),) = await house.cortex.calendar_accounts.list(house.admin)
    await house.rows(CalendarsRepository).set_account(account.id, addresses=ADA, schedules=is_told)


@pytest.mark.parametrize("name", a_quarter_daily(REQUESTS))
async def test_what_was_asked_for_comes_out_and_nothing_else(
    house: LivingHouse, scripted: ScriptedServer, server: DavServer, name: str
) -> None:
    await sends(house, is_told=REQUESTS[name].is_told)
    own = [line for line in await dates(house) if not line.startswith("Busy")]
    assert own == sorted(BEFORE)
    await comes_out(house, scripted, server, REQUESTS[name])
