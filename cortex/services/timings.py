"""Reads words about time for services and tools; loads the grammar only when words come."""

from datetime import datetime
from typing import cast

from cortex.base import scan
from cortex.ports.schedule import Timing, Timings
from cortex.schedule import moments

_READING = "cortex.schedule.reading"


class LazyReader:
    """The port `Timings`, as `schedule.reading.Reader`: the grammar is loaded with the first words. Holds nothing.

    Its nine modules are 1 % of the start (2026-11-21). What follows a timing is worked out without them.
    """

    def read(self, words: str, now: datetime, time_zone: str) -> Timing:
        """Read the words, seen from `now` in that zone; ToolFailed says what could not be read, and what can."""
        return cast("Timings", scan.load(_READING).Reader()).read(words, now, time_zone)

    def by_appointments(self, words: str, time_zone: str) -> Timing | None:
        """The timing of words such as "an hour before each appointment named dentist"; None for any other."""
        return cast("Timings", scan.load(_READING).Reader()).by_appointments(words, time_zone)

    def following(self, timing: Timing, after: datetime, count: int) -> tuple[datetime, ...]:
        """The next moments after this one, aware UTC, at most `count`; () when it is never due again."""
        return moments.following(timing, after, count)
