"""Finds the calendar, the appointment and the time that a call's words mean; where several fit, it names them.

A time of the day alone is meant by 24 hours: an appointment that is moved to 11:00 stays on its day.
"""

import re
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta

from msgspec import Struct

from cortex.base.errors import ToolFailed
from cortex.base.ids import is_named
from cortex.base.zone import day_begins, day_ends, local
from cortex.ports.calendars import CalendarName, Calendars, Occasion
from cortex.ports.schedule import Timings
from cortex.toolkit.appointments import line
from cortex.toolkit.context import Ctx

LOOKED = timedelta(days=400)
NO_CALENDAR = "No calendar is connected. The user connects one on the page Calendar."
PAST = "{words!r} is in the past or never comes. Give a time to come, with its date if need be."
OFTEN = "{words!r} comes again and again. Give the first time in when, and how often in repeat."
MORNING = 7  # a bare hour before it is one of the afternoon, unless it is written 02:30
_CLOCK = re.compile(r"(?:at\s+)?(\d{1,2})(?:[:.](\d{2}))?\s*(am|pm)?", re.IGNORECASE)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


class MeantTime(Struct, frozen=True):
    """When something is. `is_day`: the words name a day and no time of it; then it is the begin of that day."""

    at: datetime
    is_day: bool = False


async def calendars_of(ctx: Ctx) -> Sequence[CalendarName]:
    """Every calendar that the user may see, their own first; ToolFailed where there is none."""
    names = await ctx.use(Calendars).names()
    if not names:
        raise ToolFailed(NO_CALENDAR)
    return names


def named(names: Sequence[CalendarName], wanted: str) -> list[CalendarName]:
    """Those that a name means: a calendar's, or a person's; ToolFailed names what there is."""
    key = wanted.strip().casefold()
    ways = (
        [one for one in names if key in (one.label.casefold(), one.name.casefold(), one.owner.casefold())],
        [one for one in names if key in one.label.casefold()],
    )
    found = next((one for one in ways if one), [])
    if not found:
        known = ", ".join(one.label for one in names)
        raise ToolFailed(
            f"There is no calendar {wanted!r}. There are: {known}.", is_tainted=any(one.owner for one in names)
        )
    return found


def writable(names: Sequence[CalendarName], wanted: str) -> CalendarName:
    """The user's own calendar of this name, the first for ""; ToolFailed where Cortex may not write there."""
    found = [one for one in (named(names, wanted) if wanted else names) if not one.owner]
    open_ones = [one for one in found if one.access == "write"]
    if not open_ones:
        raise ToolFailed("Cortex may not write there: the user sets that on the page Calendar, Accounts.")
    return open_ones[0]


async def meant(ctx: Ctx, wanted: str, on: date | None) -> Occasion:
    """The one date that is meant: of the user's own before others', and of a series the next that has not ended."""
    key = " ".join(wanted.casefold().split()).removeprefix("#")
    if not key:
        raise ToolFailed("Say which appointment: its id, or words of its title.")
    since = day_begins(on, ctx.user.time_zone) or today(ctx) - timedelta(days=1)
    until = day_ends(on, ctx.user.time_zone) or since + LOOKED
    rows = [one for one in await ctx.use(Calendars).between(since, until) if one.id]
    hits = _hits([row for row in rows if not row.calendar.owner], key) or _hits(rows, key)
    if not hits:
        there = f"on {on.isoformat()}" if on else "to come"
        raise ToolFailed(f"No appointment {there} is called {wanted!r}. calendar_list shows what there is.")
    if len({one.id for one in hits}) > 1:
        lines = "\n".join(line(ctx, one, is_several=False) for one in hits[:8])
        raise ToolFailed(f"Several fit; say the id:\n{lines}", is_tainted=True)
    return next((one for one in hits if one.ends_at > ctx.now), hits[-1])


def _hits(rows: Sequence[Occasion], key: str) -> list[Occasion]:
    ways = (
        [row for row in rows if is_named(row.id, key)],
        [row for row in rows if row.title.casefold() == key],
        [row for row in rows if key in row.title.casefold()],
        [row for row in rows if set(key.split()) <= set(row.title.casefold().split())],
    )
    return next((one for one in ways if one), [])


def moment_of(ctx: Ctx, words: str, *, on: date | None = None, repeats: bool = False) -> MeantTime:
    """When it is; a time alone on the day `on`, else the next such. ToolFailed for the past.

    repeats: it may be said as a rhythm, of which this is the first.
    """
    if (day := _day(ctx, words)) is not None:
        return MeantTime(day, is_day=True)
    zone, clock = ctx.user.time_zone, clock_of(words)
    if clock is not None:
        here = local(ctx.now, zone)
        found = datetime.combine(on or here.date(), clock, here.tzinfo)
        if on is None and found <= ctx.now:
            found += timedelta(days=1)
        if found <= ctx.now:
            raise ToolFailed(PAST.format(words=words))
        return MeantTime(found)
    timings = ctx.use(Timings)
    timing = timings.read(words, ctx.now, zone)
    if timing.kind != "at" and not repeats:
        raise ToolFailed(OFTEN.format(words=words))
    times = timings.following(timing, ctx.now, 1)
    if not times:
        raise ToolFailed(PAST.format(words=words))
    return MeantTime(begin_of_day(ctx, times[0]), is_day=True) if timing.is_day else MeantTime(times[0])


def begin_of_day(ctx: Ctx, at: datetime) -> datetime:
    """When the day of a moment began."""
    return day_begins(local(at, ctx.user.time_zone).date(), ctx.user.time_zone) or at


def _day(ctx: Ctx, words: str) -> datetime | None:
    """The begin of the day that is today, or a date alone; None for other words. ToolFailed for the past."""
    text = words.strip().casefold()
    if text == "today":
        return today(ctx)
    if not _DAY.fullmatch(text):
        return None
    try:
        found = day_begins(date.fromisoformat(text), ctx.user.time_zone)
    except ValueError as error:
        raise ToolFailed(f"{words!r} is no day.") from error
    if found is None or found < today(ctx):
        raise ToolFailed(PAST.format(words=words))
    return found


def today(ctx: Ctx) -> datetime:
    """When the user's day began."""
    return begin_of_day(ctx, ctx.now)


def clock_of(words: str, *, is_literal: bool = False) -> time | None:
    """A time of the day, where the words are nothing else. is_literal: a bare 2 is of the night."""
    found = _CLOCK.fullmatch(words.strip())
    if found is None:
        return None
    hour, minute, half = int(found[1]), int(found[2] or 0), (found[3] or "").casefold()
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    elif hour < MORNING and len(found[1]) == 1 and hour and not is_literal:
        hour += 12
    return time(hour, minute) if hour < 24 and minute < 60 else None
