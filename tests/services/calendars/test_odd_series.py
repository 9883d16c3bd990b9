"""Series as older and careless programs write them: left out by a rule, changed from a date on, commas as they are."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from cortex.integrations.documents.kinds import UnreadableError
from cortex.integrations.foreign.appointments.reading import appointments_of
from cortex.integrations.foreign.appointments.series import UNREAD_GAPS, Window
from cortex.integrations.foreign.appointments.writing import ONWARDS, written
from tests.dav_servers import DavServer, event, xandikos

HERE = ZoneInfo("Europe/Berlin")
WINDOW = Window(datetime(2026, 11, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))
START = "DTSTART;TZID=Europe/Berlin:20261130T160000"  # Monday
DAILY = "RRULE:FREQ=DAILY;COUNT=6"


def resource(*lines: str) -> str:
    return "\r\n".join(["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Phone//EN", *lines, "END:VCALENDAR", ""])


def read(data: str) -> dict[str, Any]:
    (one,) = appointments_of(data, WINDOW, HERE)
    return one


def shown(data: str) -> list[str]:
    """Its dates in Berlin, each with its title where that is another."""
    return [
        f"{at(one['starts_at']):%m-%d %H:%M}-{at(one['ends_at']):%H:%M} {one.get('title', '')}".rstrip()
        for one in read(data)["dates"]
    ]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(HERE)


def onwards(*lines: str, date: str = "20261202T160000") -> list[str]:
    return event("p", "Piano, later", f"RECURRENCE-ID;RANGE=THISANDFUTURE;TZID=Europe/Berlin:{date}", *lines)


PIANO = event("p", "Piano", START, "DURATION:PT45M", DAILY)
LATER = onwards("DTSTART;TZID=Europe/Berlin:20261203T173000", "DURATION:PT1H")


def test_dates_that_a_rule_leaves_out_are_left_out() -> None:
    data = resource(*event("p", "Piano", START, "DURATION:PT45M", DAILY, "EXRULE:FREQ=WEEKLY;BYDAY=TU,FR"))
    assert shown(data) == [f"{day} 16:00-16:45" for day in ("11-30", "12-02", "12-03", "12-05")]


def test_a_rule_of_gaps_that_cannot_be_read_leaves_all_dates_and_says_so() -> None:
    data = resource(*event("p", "Piano", START, "DURATION:PT45M", DAILY, "EXRULE:FREQ=SECONDLY"))
    assert len(shown(data)) == 6
    assert read(data)["note"] == UNREAD_GAPS


def test_a_series_with_gaps_by_a_rule_does_not_move() -> None:
    data = resource(*event("p", "Piano", START, "DURATION:PT45M", DAILY, "EXRULE:FREQ=WEEKLY;BYDAY=TU"))
    fields = {"starts": "2026-12-01T16:00", "ends": "2026-12-01T16:45", "zone": "Europe/Berlin", "is_all_day": False}
    with pytest.raises(UnreadableError, match="cannot move"):
        edited(data, {"kind": "change", "key": "", "of": "", "fields": fields})
    assert "SUMMARY:Flute" in edited(data, {"kind": "change", "key": "", "of": "", "fields": {"title": "Flute"}})


def test_a_change_from_a_date_on_holds_for_all_that_follow() -> None:
    assert shown(resource(*PIANO, *LATER)) == [
        "11-30 16:00-16:45",
        "12-01 16:00-16:45",
        "12-03 17:30-18:30 Piano, later",
        "12-04 17:30-18:30 Piano, later",
        "12-05 17:30-18:30 Piano, later",
        "12-06 17:30-18:30 Piano, later",
    ]


def test_the_latest_change_from_a_date_on_and_that_of_a_date_alone_win() -> None:
    back = onwards("DTSTART;TZID=Europe/Berlin:20261204T160000", "DURATION:PT30M", date="20261204T160000")
    alone = event(
        "p", "Once", "RECURRENCE-ID;TZID=Europe/Berlin:20261203T160000", "DTSTART;TZID=Europe/Berlin:20261203T090000",
        "DURATION:PT1H",
    )  # fmt: skip
    assert shown(resource(*PIANO, *back, *LATER, *alone))[2:] == [
        "12-03 09:00-10:00 Once",
        "12-03 17:30-18:30 Piano, later",
        "12-04 16:00-16:30 Piano, later",
        "12-05 16:00-16:30 Piano, later",
    ]


def test_a_series_that_ends_from_a_date_on_ends() -> None:
    off = onwards("DTSTART;TZID=Europe/Berlin:20261202T160000", "DURATION:PT45M", "STATUS:CANCELLED")
    assert shown(resource(*PIANO, *off)) == ["11-30 16:00-16:45", "12-01 16:00-16:45"]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
def test_it_moves_in_wall_time_through_a_change_of_the_clocks(zone: str) -> None:
    series = event("p", "Run", f"DTSTART;TZID={zone}:20261023T090000", "DURATION:PT1H", "RRULE:FREQ=WEEKLY;COUNT=4")
    later = event(
        "p", "Run", f"RECURRENCE-ID;RANGE=THISANDFUTURE;TZID={zone}:20261030T090000",
        f"DTSTART;TZID={zone}:20261030T100000", "DURATION:PT1H",
    )  # fmt: skip
    there = [
        f"{datetime.fromisoformat(one['starts_at']).astimezone(ZoneInfo(zone)):%m-%d %H:%M}"
        for one in read(resource(*series, *later))["dates"]
    ]
    assert there == ["11-06 10:00", "11-13 10:00"]


@pytest.mark.parametrize(
    "edit",
    [
        {"kind": "change", "key": "", "of": "", "fields": {"title": "Flute"}},
        {"kind": "change", "key": "2026-12-04T15:00:00+00:00", "fields": {"title": "Flute"}},
        {"kind": "remove", "key": "2026-12-02T15:00:00+00:00"},
    ],
    ids=["whole", "a date", "a date away"],
)
def test_it_is_changed_where_it_was_made(edit: dict[str, Any]) -> None:
    with pytest.raises(UnreadableError) as refused:
        edited(resource(*PIANO, *LATER), edit)
    assert str(refused.value) == ONWARDS


def test_commas_that_nobody_escaped_stay_words() -> None:
    data = resource(*event("p", "Dentist, Mia; Ben", START, "LOCATION:Main Street 1, Town", "DESCRIPTION:a, b\\, c"))
    one = read(data)
    assert (one["title"], one["place"], one["text"]) == ("Dentist, Mia; Ben", "Main Street 1, Town", "a, b, c")
    after = edited(data, {"kind": "change", "key": "", "of": "", "fields": {"title": "Vet, Mia"}})
    assert "SUMMARY:Vet\\, Mia" in after
    assert "LOCATION:Main Street 1\\, Town" in after


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DavServer]:
    with xandikos(tmp_path_factory.mktemp("dav")) as running:
        yield running


def test_a_server_that_keeps_what_it_is_given_gives_it_back(server: DavServer) -> None:
    """Radicale cuts such a title off at the comma when it takes it in; Xandikos does not."""
    url = server.put(f"{server.base}/ann/calendars/calendar/", "one", *event("p", "Dentist, Mia", START))
    assert read(server.get(url))["title"] == "Dentist, Mia"


def edited(data: str, edit: dict[str, Any]) -> str:
    order = {"data": data, "zone": "Europe/Berlin", "now": "2026-11-28T12:00:00+00:00", "edit": {"uid": "p", **edit}}
    return written(order)
