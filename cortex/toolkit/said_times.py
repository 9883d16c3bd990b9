"""Reads when an appointment is, as one sentence says it: its begin, and then its end, its length or its last day.

"tomorrow 9:00 to 11:30", "Friday at 10 for 30 minutes", "2026-12-27 to 2026-12-30"; days alone are whole days.
"""

import re
from datetime import UTC, date, datetime, timedelta

from msgspec import Struct

from cortex.base.errors import ToolFailed
from cortex.base.zone import local
from cortex.toolkit.context import Ctx
from cortex.toolkit.occasions import clock_of, moment_of

SHORTEST, LONGEST, DAYS_MOST = timedelta(minutes=5), timedelta(days=14), 366
NO_TIME = "{words!r} names no time of day. Give one in when, or leave its length out: a whole day."
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_FOR = re.compile(r"(?:(.+?)\s+)?for\s+(\d{1,5})\s*(m|h|d|w)(?:in(?:ute)?s?|(?:ou)?rs?|ays?|eeks?)?", re.IGNORECASE)
_TO = re.compile(r"(.+?)(?<!quarter)(?<!half)(?<!minutes)\s+(?:to|till|–|-)\s+(.+)", re.IGNORECASE)  # noqa: RUF001
_HOURS = re.compile(r"(.*?)(\d{1,2}(?:[:.]\d{2})?)\s*[-–]\s*(\d{1,2}[:.]\d{2})", re.IGNORECASE)  # noqa: RUF001
_FROM = re.compile(r"\bfrom\s+(?=\d)", re.IGNORECASE)


class SaidTime(Struct, frozen=True, kw_only=True):
    """The words of a time in parts. `begin`: "" where it is not said; `end`: "" without; `length`: where it is said."""

    words: str
    begin: str
    end: str = ""
    length: timedelta | None = None


def parted(words: str) -> SaidTime:
    """Take a sentence apart."""
    text = _FROM.sub("at ", " ".join(words.split()))
    if found := _FOR.fullmatch(text):
        length = int(found[2]) * _UNITS[found[3].lower()]
        return SaidTime(words=words, begin=found[1] or "", length=length)
    found = _TO.fullmatch(text) or _HOURS.fullmatch(text)
    if found is None:
        return SaidTime(words=words, begin=text)
    begin = "".join(found.groups()[:-1])
    return SaidTime(words=words, begin=begin.strip(), end=found[found.lastindex or 0])


def length_of(ctx: Ctx, begins: datetime, said: SaidTime) -> timedelta | None:
    """Return how long it takes that begins then at a time of day; None where nothing is said of it."""
    length = _until(ctx, begins, said) if said.end else said.length
    if length is not None and not SHORTEST <= length <= LONGEST:
        raise ToolFailed(f"{said.words!r}: an appointment with times takes from 5 minutes to 14 days.")
    return length


def last_day_of(ctx: Ctx, begins: datetime, said: SaidTime) -> date | None:
    """The last of the whole days that begin then; None where nothing is said of it."""
    first, last = local(begins, ctx.user.time_zone).date(), None
    if said.length is not None:
        if said.length % timedelta(days=1):
            raise ToolFailed(NO_TIME.format(words=said.words))
        last = first + said.length - timedelta(days=1)
    elif said.end:
        end = moment_of(ctx, said.end)
        if not end.is_day:
            raise ToolFailed(NO_TIME.format(words=said.words))
        last = local(end.at, ctx.user.time_zone).date()
    if last is not None and (last - first).days >= DAYS_MOST:
        raise ToolFailed(f"{said.words!r}: whole days are at most {DAYS_MOST}.")
    return last


def _until(ctx: Ctx, begins: datetime, said: SaidTime) -> timedelta:
    here, clock, literal = local(begins, ctx.user.time_zone), clock_of(said.end), clock_of(said.end, is_literal=True)
    if clock is not None and literal is not None:
        ends = datetime.combine(here.date(), clock, here.tzinfo)
        if ends <= here:
            ends = datetime.combine(here.date() + timedelta(days=1), literal, here.tzinfo)
    else:
        end = moment_of(ctx, said.end)
        if end.is_day:
            raise ToolFailed(f"{said.words!r} ends on a day: say at what time.")
        ends = end.at
    return ends.astimezone(UTC) - begins.astimezone(UTC)
