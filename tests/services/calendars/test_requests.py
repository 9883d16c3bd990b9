"""What people ask of their calendar, by whole turns of a scripted model against a real server: no event is wrong.

After each request everything that then stands on the server is read anew, and every date of it has to be one that was
to come out. `minus` and `plus`: the dates that went and came.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cortex.base.messages import ToolResult
from cortex.base.zone import local
from cortex.storage.calendars import CalendarsRepository
from cortex.storage.messages import MessagesRepository
from tests.dav_servers import PASSWORD, DavServer, event, radicale
from tests.living_house import LivingHouse, living_house
from tests.scripted_server import Say, ScriptedServer, Use, rule
from tests.share import a_quarter_daily
from tests.still_clock import StillClock

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)  # Saturday, 13:00 in Berlin
ZONE, NEW_YORK = "Europe/Berlin", "TZID=America/New_York"
WINDOW = (datetime(2026, 11, 28, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))
SPRING = (datetime(2027, 3, 20, tzinfo=UTC), datetime(2027, 4, 20, tzinfo=UTC))
ADA, BEN, KARIM = "ada@example.org", "ben@example.org", "karim@example.org"
ME = f"ATTENDEE;CN=Ada;PARTSTAT=NEEDS-ACTION:mailto:{ADA}"
THERE: dict[str, list[str]] = {
    "dentist": event(
        "dentist", "Dentist", "DTSTART:20261201T090000Z", "DTEND:20261201T100000Z", "LOCATION:Main Street 1",
    ),
    "piano": event(
        "piano", "Piano", f"DTSTART;TZID={ZONE}:20261104T160000", "DURATION:PT45M", "RRULE:FREQ=WEEKLY;COUNT=10",
        f"EXDATE;TZID={ZONE}:20261209T160000",
    ),
    "holiday": event("holiday", "Holiday", "DTSTART;VALUE=DATE:20261221", "DTEND;VALUE=DATE:20261224"),
    "standup": [
        *event(
            "standup", "Standup", f"DTSTART;{NEW_YORK}:20261123T090000", "DURATION:PT15M",
            "RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;UNTIL=20261204T235959Z",
        ),
        *event(
            "standup", "Standup", f"RECURRENCE-ID;{NEW_YORK}:20261203T090000", f"DTSTART;{NEW_YORK}:20261203T110000",
            "DURATION:PT15M",
        ),
    ],
    "lunch": event(
        "lunch", "Lunch", f"DTSTART;TZID={ZONE}:20261203T130000", "DURATION:PT1H", f"ORGANIZER:mailto:{ADA}", ME,
        f"ATTENDEE;CN=Ben:mailto:{BEN}",
    ),
    "budget": event(
        "budget", "Budget", f"DTSTART;TZID={ZONE}:20261210T100000", "DURATION:PT1H", f"ORGANIZER:mailto:{KARIM}", ME,
    ),
}  # fmt: skip
PIANO = ["12-02", "12-16", "12-23", "12-30"]
STANDUP = ["11-30 15:00-15:15", "12-01 15:00-15:15", "12-02 15:00-15:15", "12-03 17:00-17:15", "12-04 15:00-15:15"]
BEFORE = [
    "Budget 12-10 10:00-11:00",
    "Dentist 12-01 10:00-11:00",
    "Holiday 12-21..12-23",
    "Lunch 12-03 13:00-14:00",
    *(f"Piano {day} 16:00-16:45" for day in PIANO),
    *(f"Standup {at}" for at in STANDUP),
]


@dataclass(frozen=True, kw_only=True)
class Request:
    """Calls of one turn, what the person says where they are asked, and what must come of it.

    `says`, `lacks`: stands in the last result, or does not; `stands`: on the server, by the name of its file; "" for a
    new one. `is_told`: the server sends invitations.
    """

    calls: list[tuple[str, dict[str, Any]]]
    choice: str = ""
    minus: tuple[str, ...] = ()
    plus: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    is_told: bool = True
    stands: tuple[tuple[str, str], ...] = ()
    window: tuple[datetime, datetime] = WINDOW


def one(tool: str, /, *, to: dict[str, Any], **expected: Any) -> Request:
    return Request(calls=[(f"calendar_{tool}", to)], **expected)


def add(to: dict[str, Any], *plus: str, **expected: Any) -> Request:
    return one("add", to=to, plus=plus, **expected)


DENTIST, HOLIDAY, LUNCH = "Dentist 12-01 10:00-11:00", "Holiday 12-21..12-23", "Lunch 12-03 13:00-14:00"
REQUESTS: dict[str, Request] = {
    # what is on
    "a day": one("list", to={"first": "2026-12-01", "days": 1}, says=(
        "Dentist, Tue 1 Dec 2026 10:00 to 11:00; Main Street 1", "Standup, Tue 1 Dec 2026 15:00 to 15:15; repeats")),
    "by words": one("list", to={"query": "dentist"}, says=("Tue 1 Dec 2026 10:00",)),
    "nothing on": one("list", to={"first": "2026-11-29", "days": 1}, says=("No appointment then.",)),
    "whole days": one("list", to={"first": "2026-12-22", "days": 1}, says=("Holiday, 2026-12-21 to 2026-12-23",)),
    "a date that was taken out": one("list", to={"first": "2026-12-09", "days": 1}, says=("No appointment then.",)),
    "who is invited": one("list", to={"first": "2026-12-10", "days": 1}, says=(f"by {KARIM}", "Ada (needs-action)")),
    "free around what is on": one("find", to={"first": "2026-12-01", "days": 1, "from_hour": 9, "to_hour": 13}, says=(
        "- Tue 1 Dec 2026 09:00 to 10:00\n- Tue 1 Dec 2026 11:00 to 13:00",)),
    "free long enough": one("find", to={"first": "2026-12-01", "days": 1, "from_hour": 9, "to_hour": 13,
        "minutes": 90}, says=("Free:\n- Tue 1 Dec 2026 11:00 to 13:00",)),
    "not free on whole days": one("find", to={"first": "2026-12-22", "days": 1}, says=("No 60 minutes are free",)),
    "free from now on": one("find", to={"days": 1, "to_hour": 15}, says=("Free:\n- Sat 28 Nov 2026 13:00 to 15:00",)),
    # something new
    "tomorrow": add({"title": "Vet", "when": "tomorrow at 9"}, "Vet 11-29 09:00-10:00"),
    "with date and length": add({"title": "Vet", "when": "2026-12-01 16:00 for 30 minutes"}, "Vet 12-01 16:00-16:30"),
    "a time to come today": add({"title": "Vet", "when": "14:00"}, "Vet 11-28 14:00-15:00"),
    "a time that is over today": add({"title": "Vet", "when": "11:00"}, "Vet 11-29 11:00-12:00"),
    "in the afternoon": add({"title": "Vet", "when": "at 5 pm"}, "Vet 11-28 17:00-18:00"),
    "in half an hour": add({"title": "Vet", "when": "in half an hour for 15 minutes"}, "Vet 11-28 13:30-13:45"),
    "on Friday": add({"title": "Vet", "when": "Friday at 10"}, "Vet 12-04 10:00-11:00"),
    "over midnight": add({"title": "Fair", "when": "2026-12-05 22:00 for 240 minutes"}, "Fair 12-05 22:00-02:00"),
    "up to an hour": add({"title": "Vet", "when": "tomorrow 9:00 to 11:30"}, "Vet 11-29 09:00-11:30"),
    "from one hour to another": add({"title": "Vet", "when": "Friday from 10 to 2"}, "Vet 12-04 10:00-14:00"),
    "hours with a dash": add({"title": "Vet", "when": "2026-12-04 9:00-11:30"}, "Vet 12-04 09:00-11:30"),
    "past midnight": add({"title": "Fair", "when": "2026-12-05 22:00 to 2:00"}, "Fair 12-05 22:00-02:00"),
    "for some days": add({"title": "Trip", "when": "2026-12-27 for 4 days"}, "Trip 12-27..12-30"),
    "ends on a day": add({"title": "Trip", "when": "2026-12-27 9:00 to 2026-12-30"}, says=("at what time",)),
    "no rhythm": add({"title": "Vet", "when": "tomorrow at 9", "repeat": "often"}, says=("is no repeat",)),
    "a day of its own": add({"title": "Eve", "when": "2026-12-24"}, "Eve 12-24..12-24"),
    "today as a whole": add({"title": "Off", "when": "today"}, "Off 11-28..11-28"),
    "several whole days": add({"title": "Trip", "when": "2026-12-27 to 2026-12-30"}, "Trip 12-27..12-30"),
    "each week for a while": add(
        {"title": "Yoga", "when": "2026-12-03 18:00", "repeat": "weekly until 2026-12-17"},
        *(f"Yoga {day} 18:00-19:00" for day in ("12-03", "12-10", "12-17"))),
    "every other week": add(
        {"title": "Bins", "when": "2026-12-03 7:00 for 5 minutes", "repeat": "every 2 weeks"},
        *(f"Bins {day} 07:00-07:05" for day in ("12-03", "12-17", "12-31"))),
    "each day, whole": add(
        {"title": "Diet", "when": "2026-12-01", "repeat": "daily until 2026-12-03"},
        *(f"Diet {day}..{day}" for day in ("12-01", "12-02", "12-03"))),
    "a rhythm in words": add(
        {"title": "Choir", "when": "every Thursday at 20:00", "repeat": "weekly until 2026-12-11"},
        "Choir 12-03 20:00-21:00", "Choir 12-10 20:00-21:00"),
    "at the same time through a change of the clocks": add(
        {"title": "Run", "when": "2027-03-22 10:00", "repeat": "weekly until 2027-04-05"},
        *(f"Run {day} 10:00-11:00" for day in ("03-22", "03-29", "04-05")), window=SPRING),
    "two in one turn": Request(
        calls=[("calendar_add", {"title": "Vet", "when": "2026-12-02 9:00"}),
               ("calendar_add", {"title": "Bank", "when": "2026-12-02 11:00"})],
        plus=("Vet 12-02 09:00-10:00", "Bank 12-02 11:00-12:00")),
    "with place and words": add(
        {"title": "Gala, Ada; Ben", "when": "2026-12-05 19:00", "place": "Town hall", "notes": "Two\ntickets"},
        "Gala, Ada; Ben 12-05 19:00-20:00", stands=(("", "LOCATION:Town hall"), ("", "DESCRIPTION:Two\\ntickets"))),
    "with a guest, allowed": add(
        {"title": "Tea", "when": "2026-12-04 16:00", "guests": BEN}, "Tea 12-04 16:00-17:00", choice="once",
        stands=(("", f"mailto:{BEN}"), ("", f"ORGANIZER:mailto:{ADA}"))),
    "with a guest, denied": add({"title": "Tea", "when": "2026-12-04 16:00", "guests": BEN}, choice="deny"),
    "a guest without an address": add({"title": "Tea", "when": "2026-12-04 16:00", "guests": "Ben"}, says=(
        "neither an e-mail address",)),
    "what is past": add({"title": "Vet", "when": "2026-11-20 9:00"}, says=("in the future",)),
    "a rhythm that nobody named": add({"title": "Vet", "when": "every Tuesday at 9"}, says=("how often in repeat",)),
    "an end before the begin": add(
        {"title": "Trip", "when": "2026-12-27 to 2026-12-20"}, says=("is before the first",)),
    "where there is no such calendar": add({"title": "Vet", "when": "tomorrow at 9", "calendar": "Work"}, says=(
        "There is no calendar 'Work'. There are: Home.",)),
    # otherwise
    "to a time of its day": one("change", to={"appointment": "dentist", "when": "11:30"}, minus=(DENTIST,), plus=(
        "Dentist 12-01 11:30-12:30",), stands=(("dentist", "LOCATION:Main Street 1"),)),
    "to another day": one("change", to={"appointment": "dentist", "when": "Friday at 10"}, minus=(DENTIST,), plus=(
        "Dentist 12-04 10:00-11:00",)),
    "shorter": one("change", to={"appointment": "Dentist", "when": "for 30 minutes"}, minus=(DENTIST,), plus=(
        "Dentist 12-01 10:00-10:30",)),
    "another name and place": one("change", to={"appointment": "dentist", "title": "Doctor", "place": "Mill Lane"},
        minus=(DENTIST,), plus=("Doctor 12-01 10:00-11:00",), stands=(("dentist", "LOCATION:Mill Lane"),)),
    "one date of a series": one("change", to={"appointment": "piano", "day": "2026-12-16", "when": "17:00"},
        minus=("Piano 12-16 16:00-16:45",), plus=("Piano 12-16 17:00-17:45",)),
    "the next date of a series": one("change", to={"appointment": "piano", "when": "Thursday at 8:00"},
        minus=("Piano 12-02 16:00-16:45",), plus=("Piano 12-03 08:00-08:45",)),
    "a whole series": one("change", to={"appointment": "piano", "when": "17:00", "all_dates": True},
        minus=tuple(f"Piano {day} 16:00-16:45" for day in PIANO),
        plus=tuple(f"Piano {day} 17:00-17:45" for day in PIANO)),
    "whole days, later": one("change", to={"appointment": "holiday", "when": "2026-12-28"}, minus=(HOLIDAY,), plus=(
        "Holiday 12-28..12-30",)),
    "nothing to change": one("change", to={"appointment": "dentist"}, says=("Say what is to change",)),
    "guests whom nobody named": one("change", to={"appointment": "lunch", "when": "14:00"}, says=("tell_guests",)),
    "guests who are told, allowed": one("change", to={"appointment": "lunch", "when": "14:00", "tell_guests": True},
        choice="once", minus=(LUNCH,), plus=("Lunch 12-03 14:00-15:00",), stands=(("lunch", "SEQUENCE:1"),)),
    "guests who are told, denied": one("change", to={"appointment": "lunch", "when": "14:00", "tell_guests": True},
        choice="deny"),
    "what another person made": one("change", to={"appointment": "budget", "when": "14:00"}, says=(
        f"{KARIM} made this appointment",)),
    # away
    "one": one("remove", to={"appointment": "dentist"}, minus=(DENTIST,)),
    "one date": one("remove", to={"appointment": "piano", "day": "2026-12-23"}, minus=("Piano 12-23 16:00-16:45",)),
    "a date that was moved": one("remove", to={"appointment": "standup", "day": "2026-12-03"}, minus=(
        "Standup 12-03 17:00-17:15",)),
    "all of a series": one("remove", to={"appointment": "piano", "all_dates": True}, minus=tuple(
        f"Piano {day} 16:00-16:45" for day in PIANO)),
    "with guests, denied": one("remove", to={"appointment": "lunch", "tell_guests": True}, choice="deny"),
    "with guests, allowed": one("remove", to={"appointment": "lunch", "tell_guests": True}, choice="once", minus=(
        LUNCH,)),
    "what is not there": one("remove", to={"appointment": "opera"}, says=("No appointment to come is called 'opera'",)),
    # invitations
    "accepted": one("answer", to={"appointment": "budget", "answer": "accepted"}, choice="once", stands=(
        ("budget", "PARTSTAT=ACCEPTED"),)),
    "declined, denied": one("answer", to={"appointment": "budget", "answer": "declined"}, choice="deny", stands=(
        ("budget", "PARTSTAT=NEEDS-ACTION"),)),
    "where nobody invited": one("answer", to={"appointment": "dentist", "answer": "accepted"}, says=(
        "nothing to answer",)),
}  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DavServer]:
    with radicale(tmp_path_factory.mktemp("dav")) as running:
        yield running


@pytest.fixture
async def house(server: DavServer, scripted: ScriptedServer, tmp_path: Path) -> AsyncIterator[LivingHouse]:
    """A house in Berlin, with Ada's calendar `Home` on the server as it is in `THERE`."""
    url = server.make("Home")
    for name, lines in THERE.items():
        server.put(url, name, *lines)
    place = scripted.origin.removeprefix("http://")
    clock = StillClock(NOW)
    async with living_house(
        tmp_path / "home", clock=clock, calendar_servers=server.place, model_hosts=(place,)
    ) as opened:
        await opened.connect(scripted)
        await opened.cortex.accounts.set_time_zone(opened.admin, ZONE)
        await opened.cortex.calendar_accounts.add_server(opened.admin, server.base, "ann", PASSWORD)
        (account, _), *_ = await opened.cortex.calendar_accounts.list(opened.admin)
        await opened.cortex.calendar_sync.sync(opened.admin.id, account.id)
        await opened.rows(CalendarsRepository).set_account(account.id, addresses=ADA, schedules=True)
        yield opened
    server.delete(url)


async def dates(house: LivingHouse, window: tuple[datetime, datetime] = WINDOW) -> list[str]:
    """Every date that stands on the server, read anew."""
    for account, _ in await house.cortex.calendar_accounts.list(house.admin):
        await house.cortex.calendar_sync.sync(house.admin.id, account.id)
    found = []
    for each in await house.cortex.calendars_of(house.admin.id).between(*window):
        begins, ends = local(each.starts_at, ZONE), local(each.ends_at, ZONE)
        at = f"{begins:%m-%d %H:%M}-{ends:%H:%M}" if not each.day else f"{each.day[5:]}..{each.last_day[5:]}"
        found.append(f"{each.title} {at}")
    return sorted(found)


async def asked(house: LivingHouse, words: str, choice: str = "") -> list[ToolResult]:
    """The results of the calls of one message; whoever is asked says `choice`, and without one is not asked."""
    cid = await house.conversation()
    turn = await house.cortex.chat.send_message(house.admin, cid, words)
    if choice:
        request = await house.until(cid, "approval", turn=turn, state="asked")
        await house.cortex.approvals.answer(house.admin, request.payload["approval"], choice)
    await house.until(cid, "turn.end", turn=turn)
    assert bool(choice) == bool(await house.events(cid, "approval"))
    stored = await house.cortex.runtime.db.repository(MessagesRepository, house.admin.id).of_turn(turn)
    return [part for row in stored for part in row.message.parts if isinstance(part, ToolResult)]


def uses(scripted: ScriptedServer, *calls: tuple[str, dict[str, Any]]) -> None:
    """Have the model make these calls in one round, whatever is said."""
    made = Say(calls=tuple(Use(name, given, is_blind=True) for name, given in calls))
    steps = iter([made])
    scripted.rules = [rule("", lambda asked: next(steps, "Done."), "Done.", "Done.")]


@pytest.mark.parametrize("name", a_quarter_daily(REQUESTS))
async def test_what_was_asked_for_comes_out_and_nothing_else(
    house: LivingHouse, scripted: ScriptedServer, server: DavServer, name: str
) -> None:
    request = REQUESTS[name]
    before = await dates(house, request.window)
    assert request.window != WINDOW or before == sorted(BEFORE)
    await comes_out(house, scripted, server, request)


async def comes_out(house: LivingHouse, scripted: ScriptedServer, server: DavServer, request: Request) -> None:
    """Have it asked, and look at all that stands then."""
    before = await dates(house, request.window)
    uses(scripted, *request.calls)
    results = await asked(house, "please", request.choice)
    assert await dates(house, request.window) == sorted((set(before) - set(request.minus)) | set(request.plus))
    assert set(request.minus) <= set(before)
    assert [words for words in request.says if words not in results[-1].text] == [], results[-1].text
    assert [words for words in request.lacks if words in results[-1].text] == [], results[-1].text
    is_refused = request.choice == "deny" or not (request.minus or request.plus or request.stands or request.says)
    assert request.says or results[-1].is_error == is_refused, results[-1].text
    for file, words in request.stands:
        assert words in stands(server, file).replace("\r\n ", ""), file


def stands(server: DavServer, file: str) -> str:
    """A file as it is on the server; "": all of them."""
    return server.get(f"{server.base}/ann/home/{file + '.ics' if file else ''}")
