"""Words and cron lines to readings: `phrases.txt` and `refusals.txt` hold what was looked at line by line."""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.base.errors import ToolFailed
from cortex.schedule.phrase import SUCH_AS
from cortex.schedule.reading import Reader

HERE = Path(__file__).parent
BERLIN = "Europe/Berlin"
NOW = datetime(2026, 11, 21, 14, 20, tzinfo=ZoneInfo(BERLIN))  # a Saturday


def rows(name: str) -> list[list[str]]:
    return [line.split(" => ") for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


VOCABULARY = sorted({word for name in ("phrases.txt", "refusals.txt") for row in rows(name) for word in row[0].split()})


@pytest.mark.parametrize(("words", "expression", "reading"), rows("phrases.txt"), ids=lambda one: one[:40])
def test_words_are_read_as_the_table_says(words: str, expression: str, reading: str) -> None:
    timing = Reader().read(words, NOW, BERLIN)
    assert (timing.expression, timing.words, timing.time_zone) == (expression, reading, BERLIN)
    assert Reader().following(timing, NOW, 1)


@pytest.mark.parametrize(("words", "message"), rows("refusals.txt"), ids=lambda one: one[:40])
def test_what_cannot_be_meant_is_refused_by_one_line(words: str, message: str) -> None:
    with pytest.raises(ToolFailed) as refused:
        Reader().read(words, NOW, BERLIN)
    assert refused.value.message == message.replace("...", SUCH_AS)
    assert "\n" not in refused.value.message


@pytest.mark.parametrize(
    ("now", "words", "expected"),
    [
        ("2026-11-18T10:00", "next friday", "2026-11-27T09:00"),  # on a Wednesday: the one of next week
        ("2026-11-18T10:00", "friday", "2026-11-20T09:00"),
        ("2026-11-18T10:00", "this friday", "2026-11-20T09:00"),
        ("2026-11-22T10:00", "next monday", "2026-11-23T09:00"),  # on a Sunday: tomorrow's, a week is Monday to Sunday
        ("2026-11-20T08:00", "friday at 9", "2026-11-20T09:00"),
        ("2026-11-20T09:00", "friday at 9", "2026-11-27T09:00"),
        ("2026-11-20T06:30", "at 7", "2026-11-20T07:00"),
        ("2026-11-20T07:00", "at 7", "2026-11-20T19:00"),
        ("2026-11-20T21:00", "at 7", "2026-11-21T07:00"),
        ("2026-11-20T21:00", "at 07:00", "2026-11-21T07:00"),
        ("2026-11-20T00:30", "tonight at 2", "2026-11-20T02:00"),
        ("2026-11-20T23:30", "tonight at 2", "2026-11-21T02:00"),
        ("2026-01-31T10:00", "in a month", "2026-02-28T10:00"),
        ("2027-01-31T10:00", "next month on the 28th", "2027-02-28T09:00"),
        ("2026-12-31T10:00", "on the 31st at 11", "2026-12-31T11:00"),
        ("2026-12-31T12:00", "on the 31st at 11", "2027-01-31T11:00"),
        ("2027-03-27T12:00", "in 24 hours", "2027-03-28T13:00"),  # real time, over the jump
        ("2027-03-27T12:00", "in a day", "2027-03-28T12:00"),  # the calendar's
        ("2026-12-25T10:01", "25 december at 10", "2027-12-25T10:00"),
    ],
)
def test_the_present_moment_decides(now: str, words: str, expected: str) -> None:
    zone = ZoneInfo(BERLIN)
    here = datetime.fromisoformat(now).replace(tzinfo=zone)
    timing = Reader().read(words, here, BERLIN)
    assert datetime.fromisoformat(timing.expression) == datetime.fromisoformat(expected).replace(tzinfo=zone)


def test_seconds_of_a_delay_are_kept_and_told() -> None:
    timing = Reader().read("in 20 minutes", NOW.replace(second=33, microsecond=5), BERLIN)
    assert timing.expression == "2026-11-21T14:40:33+01:00"
    assert timing.words.endswith("at 14:40:33")


def test_the_zone_decides_what_tomorrow_is() -> None:
    late = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
    assert Reader().read("tomorrow at 9", late, "Asia/Kolkata").expression == "2026-11-23T09:00:00+05:30"
    assert Reader().read("tomorrow at 9", late, "America/New_York").expression == "2026-11-22T09:00:00-05:00"


@pytest.mark.parametrize("words", ["", "  ", '""', "x" * 201])
def test_nothing_and_too_much_are_refused(words: str) -> None:
    with pytest.raises(ToolFailed):
        Reader().read(words, NOW, BERLIN)


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(ToolFailed, match="is not a time zone"):
        Reader().read("daily", NOW, "Europe/Nowhere")


@pytest.mark.parametrize("count", [150, pytest.param(10_000, marks=pytest.mark.full)])
def test_any_heap_of_words_is_read_to_something_that_comes_or_refused(count: int) -> None:
    @settings(max_examples=count, database=None)
    @given(words=st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=8).map(" ".join) | st.text(max_size=40))
    def check(words: str) -> None:
        with suppress(ToolFailed):
            timing = Reader().read(words, NOW, BERLIN)
            assert Reader().following(timing, NOW, 1)

    check()
