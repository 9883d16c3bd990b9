"""What is said on the page and the command line about days on which the clock changes."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from cortex.ports.schedule import Timing
from cortex.schedule.clock_changes import clock_changes
from cortex.schedule.moments import following

BERLIN = "Europe/Berlin"
NOT_THEN = "do not exist then, so it"
TWICE = ", also in the time that comes twice"
JUMP = "the clock jumps 02:00 -> 03:00 on 2027-03-28; "
BACK = "the clock goes back 03:00 -> 02:00 on 2027-10-31; "


def told(kind: str, expression: str, zone: str, since: str, count: int = 5) -> list[str]:
    timing = Timing(kind=kind, expression=expression, time_zone=zone, words="")  # type: ignore[arg-type]  # a table's
    after = datetime.fromisoformat(since).replace(tzinfo=ZoneInfo(zone))
    return [one.words for one in clock_changes(timing, following(timing, after, count), after)]


@pytest.mark.parametrize(
    ("kind", "expression", "since", "expected"),
    [
        ("cron", "30 2 * * *", "2027-03-27", JUMP + "02:30 does not exist then, so it runs at 03:30 instead"),
        (
            "cron",
            "0,10,20,30 2 * * *",
            "2027-03-27",
            JUMP
            + "02:00, 02:10, 02:20 and 1 more do not exist then, so it runs at 03:00, 03:10, 03:20 and 1 more instead",
        ),
        ("cron", "30 2 * * *", "2027-10-30", BACK + "02:30 comes twice, and it runs the first time only"),
        ("cron", "0 9 * * 0", "2027-03-27", JUMP + "its times stand"),
        ("cron", "0 9 * * 0", "2027-10-30", BACK + "its times stand"),
        (
            "cron",
            "*/30 2 * * *",
            "2027-03-27T12:00",
            f"{JUMP}02:00, 02:30 {NOT_THEN} does not run that day",
        ),
        ("cron", "*/20 * * * *", "2027-03-28T01:00", JUMP + "it goes on by real time"),
        (
            "cron",
            "*/20 * * * *",
            "2027-10-31T02:00",
            BACK + "it goes on by real time" + TWICE,
        ),
        ("every", "3600 from 2027-03-01T00:00+00:00", "2027-03-28T01:00", JUMP + "it goes on by real time"),
        (
            "every",
            "2 days from 2027-03-26T02:30",
            "2027-03-27",
            JUMP + "02:30 does not exist then, so it runs at 03:30 instead",
        ),
        ("every", "2 days from 2027-03-26T09:00", "2027-03-27", JUMP + "its times stand"),
    ],
)
def test_a_change_is_told_with_what_it_does(kind: str, expression: str, since: str, expected: str) -> None:
    assert told(kind, expression, BERLIN, since) == [expected]


@pytest.mark.parametrize(
    ("kind", "expression", "zone", "since"),
    [
        ("cron", "30 2 * * *", BERLIN, "2027-05-01"),
        ("cron", "0 9 * * 1", BERLIN, "2027-03-27"),  # the clock changes on Sunday, it runs on Monday
        ("every", "2 days from 2027-03-27T02:30", BERLIN, "2027-03-26"),
        ("cron", "30 2 * * *", "Asia/Kolkata", "2027-03-27"),
        ("at", "2026-01-01T00:00:00+00:00", BERLIN, "2027-03-27"),
    ],
)
def test_nothing_is_told_where_no_run_meets_a_change(kind: str, expression: str, zone: str, since: str) -> None:
    assert told(kind, expression, zone, since) == []


def test_a_half_hour_change_and_several_are_told() -> None:
    assert told("cron", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03", 200) == [
        "the clock jumps 02:00 -> 02:30 on 2026-10-04; 02:15 does not exist then, so it runs at 02:45 instead",
        "the clock goes back 02:00 -> 01:30 on 2027-04-04; its times stand",
    ]
