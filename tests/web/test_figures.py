"""Numbers and moments as a page writes them."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from web import figures, words

BERLIN = ZoneInfo("Europe/Berlin")
LATE = datetime(2026, 9, 7, 22, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "whole", "short"),
    [
        (0, "0", "0"),
        (999, "999", "999"),
        (1_000, "1,000", "1k"),
        (12_449, "12,449", "12.4k"),
        (1_250, "1,250", "1.2k"),
        (-1_234, "-1,234", "-1.2k"),
        (2_500_000, "2,500,000", "2.5m"),
        (3_000_000_000, "3,000,000,000", "3b"),
    ],
)
def test_numbers_are_grouped_or_short(value: int, whole: str, short: str) -> None:
    assert (figures.number(value), figures.compact(value)) == (whole, short)


def test_a_moment_is_told_in_the_readers_zone() -> None:
    assert figures.exact(LATE, BERLIN) == "Tue 8 Sept 2026, 00:05"
    assert figures.clock(LATE, BERLIN) == "00:05"
    assert figures.day(LATE, BERLIN) == "Tue 8 Sept 2026"
    assert figures.day(LATE.date(), BERLIN) == "Mon 7 Sept 2026"


@pytest.mark.parametrize(
    ("at", "words"),
    [
        (datetime(2026, 9, 7, 21, 0, tzinfo=UTC), "yesterday 23:00"),
        (datetime(2026, 9, 8, 12, 5, tzinfo=UTC), "today 14:05"),
        (datetime(2026, 9, 9, 5, 30, tzinfo=UTC), "tomorrow 07:30"),
        (datetime(2026, 9, 14, 12, 5, tzinfo=UTC), "Monday 14:05"),
        (datetime(2026, 9, 15, 12, 5, tzinfo=UTC), "Tue 15 Sept, 14:05"),
        (datetime(2026, 9, 6, 12, 5, tzinfo=UTC), "Sun 6 Sept, 14:05"),
        (datetime(2025, 9, 8, 12, 5, tzinfo=UTC), "Mon 8 Sept 2025, 14:05"),
    ],
)
def test_a_moment_is_said_as_people_say_it(at: datetime, words: str) -> None:
    assert figures.spoken(at, BERLIN, LATE) == words


@pytest.mark.parametrize(
    ("on", "words"),
    [
        (date(2026, 11, 21), "yesterday"),
        (date(2026, 11, 22), "today"),
        (date(2026, 11, 23), "tomorrow"),
        (date(2026, 11, 24), "Tuesday"),
        (date(2026, 11, 29), "Sun 29 Nov"),
        (date(2027, 1, 3), "Sun 3 Jan 2027"),
    ],
)
def test_a_near_day_has_its_name(on: date, words: str) -> None:
    assert figures.due(on, date(2026, 11, 22)) == words


@pytest.mark.parametrize(
    ("count", "text"),
    [(980, "980 bytes"), (11_000, "11.0 kB"), (999_999, "1.0 MB"), (999_999_999, "1 GB"), (2_500_000_000, "2.5 GB")],
)
def test_sizes_read_well(count: int, text: str) -> None:
    assert words.size(count) == text
