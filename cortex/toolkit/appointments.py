"""What appointments say to a model and to a person: when they are, what changes, and which hours are free. Pure."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from cortex.base.ids import short
from cortex.base.zone import local
from cortex.ports.calendars import Details, Draft, Occasion
from cortex.toolkit.context import Ctx


def timed(ctx: Ctx, draft: Draft, begins: datetime, length: timedelta, *, all_day: bool) -> Draft:
    """The draft with its times: from then on, for so long, in the wall time of the user's zone."""
    here = local(begins, ctx.user.time_zone)
    if all_day:
        last = here.date() + max(length - timedelta(days=1), timedelta())
        return replace(draft, starts=here.date().isoformat(), ends=last.isoformat(), is_all_day=True)
    ends = local(begins + length, ctx.user.time_zone)
    return replace(
        draft,
        starts=here.replace(tzinfo=None).isoformat(timespec="minutes"),
        ends=ends.replace(tzinfo=None).isoformat(timespec="minutes"),
        zone=ctx.user.time_zone or "UTC",
    )


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
    """When it will be, in words."""
    if draft.is_all_day:
        return str(draft.starts) if draft.starts == draft.ends else f"{draft.starts} to {draft.ends}"
    return f"{str(draft.starts).replace('T', ' ')} to {str(draft.ends)[11:]}"


def news_of(draft: Draft) -> str:
    """What changes, in words."""
    given = [f"{name} {value}" for name, value in (("title", draft.title), ("place", draft.place)) if value is not None]
    given += ["notes"] if draft.text is not None else []
    return ", ".join([*given, *([when_of(draft)] if draft.starts else [])])


def span(ctx: Ctx, begins: datetime, ends: datetime) -> str:
    """From when to when."""
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
    """What else one says, in a line, or nothing."""
    people = ", ".join(f"{each.name or each.address} ({each.answer})" for each in said.people[:10])
    parts = [f"invited: {people}" if people else "", f"by {said.organizer}" if said.is_invitation else "", said.note]
    told = "; ".join([*filter(None, parts), *([said.text[:500]] if said.text else [])])
    return [f"  {one.title}: {told}"] if told else []
