"""Times as people there write them."""

from datetime import UTC, date, datetime

import pytest

from cortex.base.zone import day, local, moment

LATE = datetime(2026, 11, 20, 23, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        ("UTC", "2026-11-20 23:30"),
        ("Europe/Berlin", "2026-11-21 00:30"),
        ("America/New_York", "2026-11-20 18:30"),
        ("No/Where", "2026-11-20 23:30"),
        ("../etc/passwd", "2026-11-20 23:30"),
    ],
)
def test_a_moment_in_a_zone(zone: str, text: str) -> None:
    assert moment(LATE, zone) == text
    assert local(LATE, zone) == LATE


@pytest.mark.parametrize(
    ("due", "text"),
    [
        (date(2026, 11, 18), "2026-11-18 (overdue by 2 days)"),
        (date(2026, 11, 19), "2026-11-19 (overdue by 1 day)"),
        (date(2026, 11, 20), "2026-11-20 (today)"),
        (date(2026, 11, 21), "2026-11-21 (tomorrow)"),
        (date(2026, 11, 24), "2026-11-24 (Tuesday)"),
        (date(2026, 12, 24), "2026-12-24"),
    ],
)
def test_a_day_with_the_word_for_it(due: date, text: str) -> None:
    assert day(due, date(2026, 11, 20)) == text
