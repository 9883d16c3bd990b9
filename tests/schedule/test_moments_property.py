"""Random cron lines in zones of every kind of clock change, against a reader that looks at each minute."""

from datetime import UTC, datetime, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.ports.schedule import Timing
from cortex.schedule import moments as ours
from tests.schedule import plain_reader

ZONES = (
    *("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC", "Antarctica/Troll"),
    *("America/Havana", "Asia/Beirut", "America/Nuuk", "Africa/Casablanca", "Pacific/Chatham", "America/St_Johns"),
)
MINUTES = st.sampled_from(["0", "30", "*", "*/15", "15,40", "5-10", "7-59/20", "0,30", "59", "*/7"])
HOURS = st.sampled_from(["2", "*", "1-3", "0", "*/2", "2,3", "0-5", "23", "1,23", "9-17/2", "*/3", "0,1,2"])
DAYS = st.sampled_from(["*", "*", "*", "*", "1,15", "L", "*/2", "25-31", "13"])
MONTHS = st.sampled_from(["*", "*", "*", "3,4,10,11", "*/2", "MAR,apr,Oct-NOV"])
WEEKDAYS = st.sampled_from(
    ["*", "*", "*", "0", "7", "1-5", "6,0", "0#1", "0L", "5L", "*/2", "5-7", "MON-FRI", "sat,Sun", "SUN#1", "1-6/2"]
)
LINES = st.tuples(MINUTES, HOURS, DAYS, MONTHS, WEEKDAYS).map(" ".join)


@st.composite
def starts(draw: st.DrawFn, zone: ZoneInfo) -> datetime:
    """A minute near a change of the clock, or anywhere in a zone without one."""
    year = draw(st.integers(2026, 2031))
    near = plain_reader.changes(zone, year) or (datetime(year, draw(st.integers(1, 12)), 27, tzinfo=UTC),)
    return draw(st.sampled_from(near)) - timedelta(minutes=draw(st.integers(0, 2000)))


def agree(line: str, zone: ZoneInfo, after: datetime) -> None:
    until = after + timedelta(days=2, hours=6)
    timing = Timing(kind="cron", expression=line, time_zone=zone.key, words="")
    found = list(takewhile(lambda at: at <= until, ours.moments(timing, after)))
    assert found == plain_reader.moments(line, zone, after, until)


@pytest.mark.parametrize("count", [60, pytest.param(2_000, marks=pytest.mark.full)])
def test_every_moment_is_the_one_a_look_at_each_minute_finds(count: int) -> None:
    @settings(max_examples=count, database=None)
    @given(line=LINES, zone=st.sampled_from(ZONES).map(ZoneInfo), data=st.data())
    def check(line: str, zone: ZoneInfo, data: st.DataObject) -> None:
        agree(line, zone, data.draw(starts(zone)))

    check()
