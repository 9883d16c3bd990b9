"""A cron line, read: which minutes, hours and days it names. Field syntax and day rules are cronsim's.

Knows no zone and no clock change (`moments.py`) and no words for people (`cron_words.py`).
"""

import re
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache

from cronsim import CronSim, CronSimError
from msgspec import Struct

from cortex.base.errors import ToolFailed

FIELDS = "minute 0-59, hour 0-23, day 1-31, month 1-12, weekday 0-7 (0 and 7 are Sunday)"
ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
LAST = CronSim.LAST  # stands for the last day of the month among `days`, for the last such weekday in a pair
LAST_WORKDAY = CronSim.LAST_WEEKDAY
_SHAPE = re.compile(r"(?:[\d*?]|L|LW)[\dLW*/,?#-]*|(?:[A-Z]{3}|\d)(?:[,/#-](?:[A-Z]{3}|\d+))*", re.IGNORECASE)
_EPOCH = datetime(2000, 1, 1)  # noqa: DTZ001 - a wall clock without a zone, only to ask whether a line ever matches


class Nth(Struct, frozen=True):
    """The nth such weekday of a month (0 is Sunday); LAST for the last one."""

    weekday: int
    nth: int


class CronLine(Struct, frozen=True, kw_only=True):
    """The times that a line names. Weekdays: 0 is Sunday. `is_both`: a day must fit the month's days and the weekdays.

    Otherwise, as in Debian's cron, where both are restricted either is enough. `is_wall`: it names its minutes and
    hours, so each time it names comes once a day; one with a star for either goes by real time.
    """

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: tuple[int, ...]
    weekdays: frozenset[int]
    nths: frozenset[Nth]
    is_both: bool
    is_wall: bool

    @property
    def is_any_day(self) -> bool:
        """Tell whether every day of the month fits."""
        return self.days >= set(range(1, 32))

    @property
    def is_any_weekday(self) -> bool:
        """Tell whether every weekday fits."""
        return len(self.weekdays) == 7


def is_cron(text: str) -> bool:
    """Tell whether the text is meant as a cron line, well formed or not."""
    parts = text.split()
    if text.startswith("@"):
        return len(parts) == 1
    return len(parts) >= 4 and ("*" in parts or all(_SHAPE.fullmatch(part) for part in parts))


@lru_cache(maxsize=512)
def parse(text: str) -> CronLine:
    """The line, or an alias such as @daily; ToolFailed says what is wrong with it, or that it never comes."""
    plain = ALIASES.get(text.strip().lower()) or _spelled(text)
    fields = plain.split()
    if text.strip().startswith("@") and len(fields) != 5:
        raise ToolFailed(f"{text!r} is no time that comes again. Known: {', '.join(ALIASES)}.")
    if len(fields) != 5:
        raise ToolFailed(f"{text!r} has {len(fields)} fields; a cron line has five: {FIELDS}.")
    try:
        sim = CronSim(plain, _EPOCH)
    except CronSimError as error:
        raise ToolFailed(_refusal(text, fields, str(error))) from error
    if next(sim, None) is None:
        raise ToolFailed(_never(text))
    return CronLine(
        text=plain,
        minutes=tuple(sorted(sim.minutes)),
        hours=tuple(sorted(sim.hours)),
        days=frozenset(sim.days),
        months=tuple(sorted(sim.months)),
        weekdays=frozenset(one % 7 for one in sim.weekdays if isinstance(one, int)),
        nths=frozenset(Nth(one[0] % 7, one[1]) for one in sim.weekdays if isinstance(one, tuple)),
        is_both=sim.day_and,
        is_wall=not (fields[0].startswith("*") or fields[1].startswith("*")),
    )


def wall_times(line: CronLine, after: datetime) -> Iterator[datetime]:
    """The wall clock's times (no zone) that the line names after this one, whatever clocks do; ends after 50 years."""
    return CronSim(line.text, after)


def _spelled(text: str) -> str:
    """Upper case, one space; `?` is a star, and a range that ends on Sunday ends on 7."""
    fields = text.upper().replace("?", "*").split()
    if len(fields) == 5:
        fields[4] = re.sub(r"\b([1-6]|MON|TUE|WED|THU|FRI|SAT)-(?:SUN|0)\b", r"\1-7", fields[4])
    return " ".join(fields)


def _refusal(text: str, fields: list[str], why: str) -> str:
    """A line is wrong, or only names a day that none of its months has: cronsim says the same of both."""
    try:
        CronSim(" ".join([*fields[:3], "*", fields[4]]), _EPOCH)
        CronSim(" ".join(["0 0 1", fields[3], "*"]), _EPOCH)
    except CronSimError:
        return f"{text!r} is no cron line: {why.lower()}. Its five fields: {FIELDS}."
    return _never(text)


def _never(text: str) -> str:
    return f"{text!r} never comes: none of its months has such a day."
