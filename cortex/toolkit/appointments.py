"""What appointments say to a model and to a person: when they are, what changes, and which hours are free. Pure."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.errors import ToolFailed
from cortex.base.ids import short
from cortex.base.zone import day_ends, local
from cortex.ports.calendars import Details, Draft, Occasion
from cortex.toolkit.context import Ctx

_OFTEN = {"daily": "day", "weekly": "week", "monthly": "month", "yearly": "year"}
_EVERY = re.compile(
    r"(?:(daily|weekly|monthly|yearly)|every\s+(?:(\d{1,2})\s+|(other)\s+)?(day|week|month|year)s?)"
    r"(?:,?\s+until\s+(\d{4}-\d{2}-\d{2}))?",
    re.IGNORECASE,
)


class Rhythm(Struct, frozen=True, kw_only=True):
    """A repetition: each `every`th time of `often` (daily, weekly …), up to the day `until`."""

    often: str
    every: int = 1
    until: date | None = None

    def __str__(self) -> str:
        unit = _OFTEN[self.often]
        said = f"every {unit}" if self.every == 1 else f"every {self.every} {unit}s"
        return f"{said} until {self.until.isoformat()}" if self.until else said


def rhythm_of(words: str) -> Rhythm | None:
    """Return what a call says in `repeat`; None for nothing. ToolFailed for what is no rhythm."""
    text = " ".join(words.split())
    if not text:
        return None
    found = _EVERY.fullmatch(text)
    try:
        until = date.fromisoformat(found[5]) if found and found[5] else None
    except ValueError:
        found = None
    every = int(found[2] or (2 if found[3] else 1)) if found else 0
    if found is None or not every:
        raise ToolFailed(f"{words!r} is no repeat. Say it as: weekly, every 2 weeks, monthly until 2026-12-31.")
    often = found[1] or next(name for name, unit in _OFTEN.items() if unit == found[4].lower())
    return Rhythm(often=often.lower(), every=every, until=until)


def timed(
    ctx: Ctx, draft: Draft, begins: datetime, length: timedelta, *, all_day: bool, last_day: date | None = None
) -> Draft:
    """The draft with its times: from then on, for so long or up to the last day, in the wall time of the user's zone.

    ToolFailed where the last day comes before the first.
    """
    here = local(begins, ctx.user.time_zone)
    if all_day:
        last = last_day or here.date() + max(length - timedelta(days=1), timedelta())
        if last < here.date():
            raise ToolFailed(f"The last day, {last.isoformat()}, is before the first, {here.date().isoformat()}.")
        return replace(draft, starts=here.date().isoformat(), ends=last.isoformat(), is_all_day=True)
    wall, ends = here.replace(tzinfo=None), local(begins + length, ctx.user.time_zone).replace(tzinfo=None)
    if ends <= wall:  # the clock goes back in between: its hand is meant, which an end ahead of the begin is not
        ends = wall + length
    return replace(
        draft,
        starts=wall.isoformat(timespec="minutes"),
        ends=ends.isoformat(timespec="minutes"),
        zone=ctx.user.time_zone or "UTC",
    )


def span_of(one: Occasion) -> timedelta:
    """Return how long it takes; of whole days by their days, which are not all of 24 hours."""
    if one.day:
        return date.fromisoformat(one.last_day) - date.fromisoformat(one.day) + timedelta(days=1)
    return one.ends_at - one.starts_at


def rule_of(ctx: Ctx, rhythm: Rhythm, begins: datetime, *, whole: bool) -> str:
    """The rule of repetition as calendars write it. ToolFailed where it ends before it begins."""
    parts = [f"FREQ={rhythm.often.upper()}", f"INTERVAL={rhythm.every}" if rhythm.every > 1 else ""]
    until = rhythm.until
    if until is not None:
        if until < local(begins, ctx.user.time_zone).date():
            raise ToolFailed(f"The series would end on {until.isoformat()}, before its first date.")
        end = (day_ends(until, ctx.user.time_zone) or begins).astimezone(UTC) - timedelta(seconds=1)
        parts.append(f"UNTIL={until:%Y%m%d}" if whole else f"UNTIL={end:%Y%m%dT%H%M%SZ}")
    return ";".join(filter(None, parts))


def free_times(
    ctx: Ctx, since: datetime, days: int, busy: Sequence[Occasion], length: timedelta, hours: tuple[int, int]
) -> list[tuple[datetime, datetime]]:
    """Gaps between what is busy, inside the hours of each day, none of them past."""
    free: list[tuple[datetime, datetime]] = []
    for count in range(days):
        midnight = local(since + timedelta(days=count, hours=12), ctx.user.time_zone).replace(
            hour=0, minute=0, second=0, microsecond=0
        )
        at = max(midnight + timedelta(hours=hours[0]), local(ctx.now, ctx.user.time_zone))
        end = midnight + timedelta(hours=hours[1])
        for one in sorted(
            (one for one in busy if one.ends_at > at and one.starts_at < end), key=lambda one: one.starts_at
        ):
            if one.starts_at - at >= length:
                free.append((at, one.starts_at))
            at = max(at, one.ends_at)
        if end - at >= length:
            free.append((at, end))
    return free


def when_of(draft: Draft) -> str:
    """Return when it will be, in words."""
    if draft.is_all_day:
        return str(draft.starts) if draft.starts == draft.ends else f"{draft.starts} to {draft.ends}"
    return f"{str(draft.starts).replace('T', ' ')} to {str(draft.ends)[11:]}"


def news_of(draft: Draft) -> str:
    """Return what changes, in words."""
    given = [f"{name} {value}" for name, value in (("title", draft.title), ("place", draft.place)) if value is not None]
    given += ["notes"] if draft.text is not None else []
    return ", ".join([*given, *([when_of(draft)] if draft.starts else [])])


def span(ctx: Ctx, begins: datetime, ends: datetime) -> str:
    """Return from when to when."""
    here, there = local(begins, ctx.user.time_zone), local(ends, ctx.user.time_zone)
    until = f"{there:%H:%M}" if there.date() == here.date() else f"{there:%a} {there.day} {there:%b} {there:%H:%M}"
    return f"{here:%a} {here.day} {here:%b} {here.year} {here:%H:%M} to {until}"


def fact(ctx: Ctx, one: Occasion) -> str:
    """Its title and its time."""
    at = (one.day if one.day == one.last_day else f"{one.day} to {one.last_day}") if one.day else ""
    return f"{one.title or 'No title'}, {at or span(ctx, one.starts_at, one.ends_at)}"


def line(ctx: Ctx, one: Occasion, *, is_several: bool) -> str:
    """One line of a list; where several calendars are seen, with the name of its own."""
    parts = [fact(ctx, one), one.place, "repeats" if one.repeats else "", one.calendar.label if is_several else ""]
    name = f" (#{short(one.id)})" if one.id else ""
    return f"- {'; '.join(part for part in parts if part)}{name}"


def said_of(one: Occasion, said: Details) -> list[str]:
    """Return what else one says, in a line, or nothing."""
    people = ", ".join(f"{each.name or each.address} ({each.answer})" for each in said.people[:10])
    parts = [f"invited: {people}" if people else "", f"by {said.organizer}" if said.is_invitation else "", said.note]
    told = "; ".join([*filter(None, parts), *([said.text[:500]] if said.text else [])])
    return [f"  {one.title}: {told}"] if told else []
