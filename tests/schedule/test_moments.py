"""When timings are due, over every kind of change of the clock. Times are written as the zone's clock shows them."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from cortex.base.errors import ToolFailed
from cortex.ports.schedule import Timing
from cortex.schedule.cron import parse
from cortex.schedule.moments import following
from cortex.schedule.slots import slots_between
from tests.schedule import plain_reader

BERLIN, NEW_YORK, LORD_HOWE, KOLKATA = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"
CHANGES = [  # cron line, zone, from, and what the clock shows at the next times
    # Berlin: 2027-03-28 02:00 -> 03:00, 2027-10-31 03:00 -> 02:00
    ("30 2 * * *", BERLIN, "2027-03-27T00:00", "27T02:30+01 28T03:30+02 29T02:30+02"),
    ("0 2 * * *", BERLIN, "2027-03-27T00:00", "27T02:00+01 28T03:00+02 29T02:00+02"),
    ("0 3 * * *", BERLIN, "2027-03-27T00:00", "27T03:00+01 28T03:00+02 29T03:00+02"),
    ("59 1 * * *", BERLIN, "2027-03-27T00:00", "27T01:59+01 28T01:59+01 29T01:59+02"),
    ("0,30 2,3 * * *", BERLIN, "2027-03-28T00:00", "28T03:00+02 28T03:30+02 29T02:00+02"),
    ("30 2 * * *", BERLIN, "2027-10-30T00:00", "30T02:30+02 31T02:30+02 01T02:30+01"),
    ("0 3 * * *", BERLIN, "2027-10-30T00:00", "30T03:00+02 31T03:00+01 01T03:00+01"),
    ("0 * * * *", BERLIN, "2027-03-28T00:30", "28T01:00+01 28T03:00+02 28T04:00+02"),
    ("0 * * * *", BERLIN, "2027-10-31T01:30", "31T02:00+02 31T02:00+01 31T03:00+01"),
    ("*/30 2 * * *", BERLIN, "2027-03-27T02:15", "27T02:30+01 29T02:00+02 29T02:30+02"),
    ("*/30 2 * * *", BERLIN, "2027-10-31T00:00", "31T02:00+02 31T02:30+02 31T02:00+01 31T02:30+01 01T02:00+01"),
    # New York: 2027-03-14 02:00 -> 03:00, 2027-11-07 02:00 -> 01:00
    ("30 2 * * *", NEW_YORK, "2027-03-13T00:00", "13T02:30-05 14T03:30-04 15T02:30-04"),
    ("30 1 * * *", NEW_YORK, "2027-11-06T00:00", "06T01:30-04 07T01:30-04 08T01:30-05"),
    ("0 9 * * 0", NEW_YORK, "2027-03-01T00:00", "07T09:00-05 14T09:00-04 21T09:00-04"),
    ("59 1 * * *", NEW_YORK, "2027-03-13T00:00", "13T01:59-05 14T01:59-05 15T01:59-04"),
    ("0 2 * * *", NEW_YORK, "2027-11-06T00:00", "06T02:00-04 07T02:00-05 08T02:00-05"),
    ("*/30 2 * * *", NEW_YORK, "2027-03-13T02:15", "13T02:30-05 15T02:00-04 15T02:30-04"),
    ("0 */6 * * *", NEW_YORK, "2027-03-13T18:00", "14T00:00-05 14T06:00-04 14T12:00-04"),
    ("*/20 1 * * *", NEW_YORK, "2027-11-07T01:10", "07T01:20-04 07T01:40-04 07T01:00-05 07T01:20-05"),
    # Lord Howe moves by half an hour: 2026-10-04 02:00 -> 02:30, 2027-04-04 02:00 -> 01:30
    ("15 2 * * *", LORD_HOWE, "2026-10-03T00:00", "03T02:15+1030 04T02:45+11 05T02:15+11"),
    ("15,40 2 * * *", LORD_HOWE, "2026-10-04T00:00", "04T02:40+11 04T02:45+11 05T02:15+11"),
    ("45 1 * * *", LORD_HOWE, "2027-04-03T00:00", "03T01:45+11 04T01:45+11 05T01:45+1030"),
    ("0 */3 * * *", LORD_HOWE, "2027-04-03T22:00", "04T00:00+11 04T03:00+1030 04T06:00+1030"),
    ("*/30 * * * *", LORD_HOWE, "2027-04-04T01:15", "04T01:30+11 04T01:30+1030 04T02:00+1030"),
    ("*/30 * * * *", LORD_HOWE, "2026-10-04T01:15", "04T01:30+1030 04T02:30+11 04T03:00+11"),
    ("0 2 * * *", LORD_HOWE, "2026-10-03T00:00", "03T02:00+1030 04T02:30+11 05T02:00+11"),
    ("59 1 * * *", LORD_HOWE, "2027-04-03T00:00", "03T01:59+11 04T01:59+11 05T01:59+1030"),
    ("0 2 * * *", LORD_HOWE, "2027-04-03T00:00", "03T02:00+11 04T02:00+1030 05T02:00+1030"),
    # Kolkata never changes
    ("30 2 * * *", KOLKATA, "2027-03-27T00:00", "27T02:30+0530 28T02:30+0530 29T02:30+0530"),
    ("*/30 2 * * *", KOLKATA, "2027-10-31T02:10", "31T02:30+0530 01T02:00+0530"),
]


def cron(line: str, zone: str) -> Timing:
    return Timing(kind="cron", expression=line, time_zone=zone, words="")


def every(expression: str, zone: str = BERLIN) -> Timing:
    return Timing(kind="every", expression=expression, time_zone=zone, words="")


def shown(timing: Timing, since: str, count: int) -> str:
    zone = ZoneInfo(timing.time_zone)
    found = following(timing, datetime.fromisoformat(since).replace(tzinfo=zone), count)
    assert all(at.tzinfo is UTC for at in found)
    return " ".join(f"{at.astimezone(zone):%dT%H:%M%z}".removesuffix("00") for at in found)


@pytest.mark.parametrize(("line", "zone", "since", "expected"), CHANGES)
def test_the_clock_changes_as_the_table_says(line: str, zone: str, since: str, expected: str) -> None:
    assert shown(cron(line, zone), since, len(expected.split())) == expected


@pytest.mark.parametrize("weekday", ["0", "7", "SUN", "sun"])
def test_sunday_is_zero_and_seven(weekday: str) -> None:
    assert shown(cron(f"0 9 * * {weekday}", BERLIN), "2027-03-27T00:00", 2) == "28T09:00+02 04T09:00+02"


def test_one_to_five_is_monday_to_friday() -> None:
    found = following(cron("0 9 * * 1-5", "UTC"), datetime(2026, 11, 21, tzinfo=UTC), 6)
    assert [f"{at:%a}" for at in found] == ["Mon", "Tue", "Wed", "Thu", "Fri", "Mon"]


@pytest.mark.parametrize("line", ["0 9 * * fri-sun", "0 9 * * 5-7", "0 9 * * 5-0", "0 9 * * 0,5,6"])
def test_a_range_may_end_on_sunday(line: str) -> None:
    assert parse(line).weekdays == {5, 6, 0}


@pytest.mark.parametrize("line", ["0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31 2 */2"])
def test_a_day_that_no_month_has_is_refused(line: str) -> None:
    with pytest.raises(ToolFailed, match="never comes"):
        parse(line)


def test_a_leap_day_is_found_years_ahead() -> None:
    found = following(cron("0 0 29 2 *", "UTC"), datetime(2027, 1, 1, tzinfo=UTC), 3)
    assert [at.year for at in found] == [2028, 2032, 2036]


@pytest.mark.parametrize(
    "timing", [cron("0 0 29 2 */7", BERLIN), every("3650 days from 2027-03-27T09:00"), cron("0 9 */29 2 1", BERLIN)]
)
def test_the_calendar_ends_without_a_fault(timing: Timing) -> None:
    found = following(timing, datetime(9700, 1, 1, tzinfo=UTC), 1_000)
    assert 0 < len(found) < 1_000
    assert following(timing, datetime(9999, 12, 31, 23, 59, tzinfo=UTC), 1) == ()


def test_a_month_day_and_a_weekday_are_either_enough_unless_one_has_a_star() -> None:
    november = (datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 30, 23, 59, tzinfo=UTC))
    either = [at.day for at in slots_between(cron("0 9 13 * 1", "UTC"), *november)]
    both = [at.day for at in slots_between(cron("0 9 */2 * 1", "UTC"), *november)]
    assert (either, both) == ([2, 9, 13, 16, 23, 30], [9, 23])


def test_seconds_count_from_the_first_moment_and_never_drift() -> None:
    timing = every("900 from 2026-11-21T09:07+00:00")
    late = datetime(2026, 11, 21, 9, 22, 41, tzinfo=UTC)
    assert [f"{at:%H:%M:%S}" for at in following(timing, late, 3)] == ["09:37:00", "09:52:00", "10:07:00"]
    years_on = following(timing, late + timedelta(days=3650), 1)[0]
    assert (years_on - datetime(2026, 11, 21, 9, 7, tzinfo=UTC)) % timedelta(seconds=900) == timedelta()
    assert following(timing, datetime(2026, 11, 1, tzinfo=UTC), 1)[0] == datetime(2026, 11, 21, 9, 7, tzinfo=UTC)


def test_bare_seconds_count_from_1970() -> None:
    assert shown(every("3600", "UTC"), "2027-01-01T00:10", 2) == "01T01:00+00 01T02:00+00"


@pytest.mark.parametrize(
    ("expression", "zone", "since", "expected"),
    [
        ("2 days from 2027-03-26T02:30", BERLIN, "2027-03-25T00:00", "26T02:30+01 28T03:30+02 30T02:30+02"),
        ("2 days from 2027-03-26T09:00", BERLIN, "2027-03-26T09:00", "28T09:00+02 30T09:00+02"),
        ("14 days from 2027-10-17T02:30", BERLIN, "2027-10-18T00:00", "31T02:30+02 14T02:30+01"),
        ("3600 from 2027-03-27T23:30+00:00", BERLIN, "2027-03-28T00:45", "28T01:30+01 28T03:30+02 28T04:30+02"),
        ("86400 from 2027-03-27T08:00+00:00", BERLIN, "2027-03-27T00:00", "27T09:00+01 28T10:00+02 29T10:00+02"),
        ("1 days from 2027-03-13T02:30", NEW_YORK, "2027-03-13T00:00", "13T02:30-05 14T03:30-04 15T02:30-04"),
        ("1 days from 2027-11-06T01:30", NEW_YORK, "2027-11-06T00:00", "06T01:30-04 07T01:30-04 08T01:30-05"),
        ("86400 from 2027-11-06T05:30+00:00", NEW_YORK, "2027-11-06T00:00", "06T01:30-04 07T01:30-04 08T00:30-05"),
        ("1 days from 2026-10-03T02:15", LORD_HOWE, "2026-10-03T00:00", "03T02:15+1030 04T02:45+11 05T02:15+11"),
        ("1800 from 2026-10-03T15:00+00:00", LORD_HOWE, "2026-10-04T01:15", "04T01:30+1030 04T02:30+11 04T03:00+11"),
        ("1800 from 2027-04-03T14:30+00:00", LORD_HOWE, "2027-04-04T01:15", "04T01:30+11 04T01:30+1030 04T02:00+1030"),
        ("1 days from 2027-03-27T02:30", KOLKATA, "2027-03-27T00:00", "27T02:30+0530 28T02:30+0530 29T02:30+0530"),
        ("86400 from 2027-03-26T21:00+00:00", KOLKATA, "2027-03-27T00:00", "27T02:30+0530 28T02:30+0530"),
    ],
)
def test_days_go_by_the_calendar_and_seconds_by_real_time(
    expression: str, zone: str, since: str, expected: str
) -> None:
    assert shown(every(expression, zone), since, len(expected.split())) == expected


def test_a_moment_is_due_once_and_never_after() -> None:
    timing = Timing(kind="at", expression="2026-11-21T10:00:00+01:00", time_zone=BERLIN, words="")
    at = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
    assert following(timing, at - timedelta(seconds=1), 5) == (at,)
    assert following(timing, at, 5) == ()


def test_a_moment_is_strictly_after_also_within_its_second() -> None:
    timing = cron("0 9 * * *", "UTC")
    nine = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
    assert following(timing, nine - timedelta(microseconds=1), 1) == (nine,)
    assert following(timing, nine, 1) == (nine + timedelta(days=1),)
    assert following(timing, nine + timedelta(microseconds=1), 1) == (nine + timedelta(days=1),)


TEN_YEARS = [
    ("30 2 * * *", BERLIN),
    ("30 7 * * 1-5", NEW_YORK),
    ("0 17 * * 5L", LORD_HOWE),
    ("15 1 1,15 * *", KOLKATA),
    ("0 2 29 2 *", "America/Havana"),
]


@pytest.mark.parametrize(("line", "zone"), TEN_YEARS)
def test_ten_years_of_a_job_have_one_run_on_each_of_its_days(line: str, zone: str) -> None:
    there = ZoneInfo(zone)
    since = datetime(2026, 1, 1, tzinfo=there)
    found = slots_between(
        cron(line, zone), since - timedelta(seconds=1), since.replace(year=2036) - timedelta(seconds=1)
    )
    days = [since.date() + timedelta(days=away) for away in range(3652)]
    assert [at.astimezone(there).date() for at in found] == [on for on in days if plain_reader.is_day(line, on)]


@pytest.mark.parametrize("days", [366, pytest.param(3652, marks=pytest.mark.full)])
def test_quarter_hours_are_a_quarter_of_an_hour_apart_through_every_change(days: int) -> None:
    since = datetime(2026, 1, 1, tzinfo=UTC)
    found = following(cron("*/15 * * * *", LORD_HOWE), since, days * 96)
    assert {later - sooner for sooner, later in pairwise([since, *found])} == {timedelta(minutes=15)}
