"""A phrase about time while it is read: finders take out what they understand; what is left was not understood."""

import re
from typing import Literal

from msgspec import Struct

from cortex.base.errors import ToolFailed

Unit = Literal["minute", "hour", "day", "week", "month", "year"]
DayPart = Literal["", "morning", "afternoon", "evening", "night"]
SUCH_AS = (
    "Write such as 'every weekday at 7:30', 'tomorrow at 9', 'in 20 minutes', 'last Friday of the month at 17:00', "
    "'25 December at 10', or a cron line such as '30 7 * * 1-5'."
)
YEARS = range(1970, 2201)  # of dates that are taken: no clock is known further on
_TAKEN = " ~ "  # no finder reads across it
_FILLERS = re.compile(
    r"\b(?:on|at|the|of|in(?= ?~)|and|please|exactly|about|around|sharp|time|also|for|once|a|s)\b|[~,&'-]|\+ ?(?=\s)"
)


class Clock(Struct, frozen=True, kw_only=True):
    """A time of day. `is_bare`: it was said without morning or evening, so that 7 may mean 19."""

    hour: int
    minute: int
    is_bare: bool = False


class Delay(Struct, frozen=True, kw_only=True):
    """A time from now: months and days by the calendar, seconds in real time."""

    months: int = 0
    days: int = 0
    seconds: int = 0


class OnDate(Struct, frozen=True, kw_only=True):
    """A day and month, with its year if that was said."""

    year: int | None
    month: int
    day: int


class Days(Struct, frozen=True, kw_only=True):
    """Days as they are named. Weekdays: 0 is Sunday; `nths`: (which, weekday or `day` or `weekday`), -1 is the last."""

    date: OnDate | None = None
    offset: int | None = None
    ahead: Literal["", "this", "next"] = ""
    ahead_unit: Literal["", "week", "month", "year"] = ""
    weekdays: frozenset[int] = frozenset()
    nths: tuple[tuple[int, int | str], ...] = ()
    monthdays: tuple[int, ...] = ()
    months: tuple[int, ...] = ()
    is_repeating: bool = False


class Parts(Struct, frozen=True, kw_only=True):
    """All that a phrase says. `every`: (2, `week`); `times_in`: (2, `day`), twice a day; `mark`: minute of the hour."""

    every: tuple[int, Unit] | None
    times_in: tuple[int, Unit] | None
    delay: Delay | None
    window: tuple[Clock, Clock] | None
    mark: int | None
    days: Days
    part: DayPart
    clocks: tuple[Clock, ...]
    is_repeating: bool

    @property
    def is_day(self) -> bool:
        """Tell whether it names days and nothing of a time of day: `tomorrow`, `every Friday`, `in 3 days`."""
        is_often = self.times_in is not None or (self.every is not None and self.every[1] in ("minute", "hour"))
        is_soon = self.delay is not None and self.delay.seconds > 0
        return not (self.clocks or self.part or self.window or is_often or is_soon)


class UnreadPhrase:
    """The words of a phrase (`spoken.plain`) that are still to be read."""

    def __init__(self, words: str, text: str) -> None:
        """`words`: as they were written, for refusals."""
        self.words = words
        self.text = text

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The first match, taken out; None when there is none."""
        found = pattern.search(self.text)
        if found:
            self.text = " ".join((self.text[: found.start()] + _TAKEN + self.text[found.end() :]).split())
        return found

    def take_all(self, pattern: re.Pattern[str]) -> list[re.Match[str]]:
        """Every match, taken out."""
        out = []
        while found := self.take(pattern):
            out.append(found)
        return out

    def done(self) -> None:
        """ToolFailed when words are left that mean something."""
        left = " ".join(_FILLERS.sub(" ", self.text).split())
        if left:
            place = "" if left == self.words.casefold() else f" in {self.words!r}"
            raise ToolFailed(f"I can't read {left!r}{place} as a time. {SUCH_AS}")

    def refusal(self, why: str) -> ToolFailed:
        """A refusal that quotes the phrase and says what is wrong with it."""
        return refused(self.words, why)


def refused(words: str, why: str) -> ToolFailed:
    """A refusal that quotes the words and says what is wrong with them."""
    return ToolFailed(f"I can't take {words!r}: {why}")
