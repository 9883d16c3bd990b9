"""The user's calendars, and what others let them see: look, find free time, add, change, take away, answer.

A change is made ready ahead of the question and kept (`aim`, `Ctx.target`), so what was asked about is what is written,
once. Where others are invited their server tells them, so such a call says so (`tell_guests`) and asks; where it sends
nothing nobody is invited, and a change says that nobody is told.
"""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Annotated, Any

from msgspec import convert
from msgspec.structs import replace
from pydantic import Field

from cortex.base.errors import Conflict, ToolFailed
from cortex.base.record import as_dict
from cortex.base.zone import day_begins
from cortex.ports.calendars import Answer, Calendars, Details, Occasion, Written
from cortex.ports.loop import Readers
from cortex.toolkit.appointment_changes import SEEN, Repeat, to_add, to_answer, to_change, to_remove
from cortex.toolkit.appointments import free_times, line, said_of, span
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.occasions import LOOKED, calendars_of, meant, named, today, writable
from cortex.toolkit.spec import Output, Risk
from cortex.toolkit.words import counted

SUMMARY = "calendars and appointments"
NEEDS = ("Calendars", "Timings")
ROLES = {"orchestrator": ("calendar",)}
TESTED = "Radicale and Xandikos, the real servers"
SHOWN, SAID_OF = 60, 3
Days = Annotated[int, Field(ge=1, le=92)]
Minutes = Annotated[int, Field(ge=5, le=60 * 24 * 14)]
Every = Annotated[int, Field(ge=1, le=60)]
Hour = Annotated[int, Field(ge=0, le=24)]


@tool(words="Look at the calendar[ from {first}][, for {query}]", effect="read", reads_private=True)
async def calendar_list(
    ctx: Ctx, first: date | None = None, days: Days = 7, query: str = "", calendar: str = ""
) -> Output:
    """Show appointments: what is on, when, where, with whom.

    Args:
        first: The first day; today when left out.
        days: How many days from it.
        query: Words in the title or place; looks a year ahead.
        calendar: Name of one calendar, or of a person.
    """
    since = day_begins(first, ctx.user.time_zone) or today(ctx)
    until = since + (LOOKED if query else timedelta(days=days))
    names = await calendars_of(ctx)
    asked = {one.id for one in (named(names, calendar) if calendar else names)}
    found = [one for one in await ctx.use(Calendars).between(since, until, words=query) if one.calendar.id in asked]
    stale = [
        f"{one.label} could not be reached lately: {one.is_stale}" for one in names if one.is_stale and one.id in asked
    ]
    if not found:
        return Output(text="\n".join(["No appointment then.", *stale]), words="no appointment")
    lines = [line(ctx, one, is_several=len(names) > 1) for one in found[:SHOWN]]
    if len(found) > SHOWN:
        lines.append(f"... and {len(found) - SHOWN} more: ask for fewer days, or by query.")
    said = {one.id: await ctx.use(Calendars).details(one) for one in found[:SHOWN] if _is_looked_into(one, found)}
    if len(found) <= SAID_OF:
        lines += [line for one in found for line in said_of(one, said.get(one.id, Details()))]
    tainted = any(one.calendar.owner or _is_birthday(one) for one in found[:SHOWN])
    tainted |= any(one.is_foreign for one in said.values())
    return Output(
        text="\n".join([*lines, *stale]), words=counted(len(found), "appointment"), is_tainted=tainted or bool(stale)
    )


def _is_birthday(one: Occasion) -> bool:
    """Tell whether its words are of an address book, which others write into."""
    return one.calendar.is_outside and not one.id


def _is_looked_into(one: Occasion, found: Sequence[Occasion]) -> bool:
    """Tell whether more of it is read: it is one of few, or its words may be of somebody else."""
    return bool(one.id) and (len(found) <= SAID_OF or one.has_organizer or one.calendar.is_outside)


@tool(words="Find {minutes} free minutes[ from {first}]", effect="read", reads_private=True)
async def calendar_find(
    ctx: Ctx,
    minutes: Minutes = 60,
    first: date | None = None,
    days: Days = 7,
    from_hour: Hour = 8,
    to_hour: Hour = 20,
    people: list[str] | None = None,
) -> str:
    """Find times when the user, and others of the household, are free.

    Args:
        minutes: How long.
        first: The first day; today when left out.
        days: How many days from it.
        from_hour: Not earlier on a day.
        to_hour: Not later on a day.
        people: Names of others who must be free too.
    """
    names = await calendars_of(ctx)
    asked = [one for one in names if not one.owner]
    for person in people or []:
        asked += named(names, person)
    since = day_begins(first, ctx.user.time_zone) or today(ctx)
    until = since + timedelta(days=days)
    ids = {one.id for one in asked}
    busy = [one for one in await ctx.use(Calendars).between(since, until) if one.calendar.id in ids and not one.is_free]
    free = free_times(ctx, since, days, busy, timedelta(minutes=minutes), (from_hour, to_hour))
    if not free:
        return f"No {minutes} minutes are free for everybody then. Look at more days, or at other hours."
    lines = [f"- {span(ctx, begins, ends)}" for begins, ends in free[:20]]
    return "\n".join(["Free:", *lines])


def _asks(arguments: Mapping[str, Any]) -> Risk:
    """Whoever invites others, or changes what they are invited to, is asked."""
    return "high" if arguments.get("guests") or arguments.get("tell_guests") else "low"


def _to(arguments: Mapping[str, Any]) -> str:
    return ", ".join(arguments.get("guests") or [])


async def _read_there(ctx: Ctx, calendar: str = "", **_: Any) -> list[Readers]:
    """Return who else of the household reads the calendar that is written to."""
    found = writable(await calendars_of(ctx), calendar)
    return [Readers(key=found.readers, words=f"{found.name}, {SEEN}")] if found.readers else []


async def _read_of(ctx: Ctx, appointment: str, day: date | None = None, **_: Any) -> list[Readers]:
    shown = (await meant(ctx, appointment, day)).calendar
    return [Readers(key=shown.readers, words=f"{shown.name}, {SEEN}")] if shown.readers else []


async def _where_added(ctx: Ctx, **given: Any) -> str:
    return str((await to_add(ctx, given))["aim"])


@tool(
    words="Add {title}, {starts}[, for {minutes} minutes][, inviting {guests}]",
    idempotent=True,
    risk_of=_asks,
    sends_to=_to,
    read_by=_read_there,
    aim=_where_added,
)
async def calendar_add(
    ctx: Ctx,
    title: str,
    starts: str,
    minutes: Minutes | None = None,
    all_day: bool = False,
    last_day: date | None = None,
    repeat: Repeat = "",
    every: Every = 1,
    until: date | None = None,
    place: str = "",
    notes: str = "",
    calendar: str = "",
    guests: list[str] | None = None,
) -> str:
    """Put an appointment into the user's calendar.

    Args:
        title: What it is.
        starts: Such as tomorrow at 9, or 2026-12-01 16:00; a day alone is a whole day.
        minutes: How long; an hour when left out.
        all_day: A whole day.
        last_day: Last of several whole days.
        repeat: How often again.
        every: 2 with weekly is every other week.
        until: Last day of the series.
        place: Where.
        notes: More words.
        calendar: Name of the calendar; the usual one when left out.
        guests: Addresses or contacts.
    """
    given = {
        "title": title, "starts": starts, "minutes": minutes, "all_day": all_day, "last_day": last_day,
        "repeat": repeat, "every": every, "until": until, "place": place, "notes": notes, "calendar": calendar,
        "guests": guests,
    }  # fmt: skip
    target = await to_add(ctx, given)
    return await _written(ctx, target, "Added", "Take it out again")


async def _where_changed(ctx: Ctx, **given: Any) -> str:
    return str((await to_change(ctx, given))["aim"])


@tool(
    words="Change {appointment}[ of {day}][ to {starts}]",
    idempotent=True,
    reads_private=True,
    risk_of=_asks,
    read_by=_read_of,
    aim=_where_changed,
)
async def calendar_change(
    ctx: Ctx,
    appointment: str,
    day: date | None = None,
    title: str | None = None,
    starts: str | None = None,
    minutes: Minutes | None = None,
    place: str | None = None,
    notes: str | None = None,
    all_dates: bool = False,
    tell_guests: bool = False,
) -> str:
    """Move or change an appointment.

    Args:
        appointment: Its id, or words of its title.
        day: Its day now, where several have these words.
        title: New title.
        starts: New time, such as Friday at 10; 11:00 is that on its day, Friday its time on that day.
        minutes: New length.
        place: New place.
        notes: New notes.
        all_dates: The whole series, not one date.
        tell_guests: True where others are invited to it.
    """
    given = {
        "appointment": appointment, "day": day, "title": title, "starts": starts, "minutes": minutes, "place": place,
        "notes": notes, "all_dates": all_dates, "tell_guests": tell_guests,
    }  # fmt: skip
    target = await to_change(ctx, given)
    return await _written(ctx, target, "Changed", "Change it back")


async def _where_removed(ctx: Ctx, **given: Any) -> str:
    return str((await to_remove(ctx, **given))["aim"])


@tool(
    words="Take {appointment} out of the calendar[, of {day}]",
    ends=True,
    idempotent=True,
    reads_private=True,
    risk_of=_asks,
    read_by=_read_of,
    aim=_where_removed,
)
async def calendar_remove(
    ctx: Ctx, appointment: str, day: date | None = None, all_dates: bool = False, tell_guests: bool = False
) -> str:
    """Take an appointment out of the calendar.

    Args:
        appointment: Its id, or words of its title.
        day: Its day, where several have these words.
        all_dates: The whole series, not one date.
        tell_guests: True where others are invited to it.
    """
    target = await to_remove(ctx, appointment, day, all_dates=all_dates, tell_guests=tell_guests)
    return await _written(ctx, target, "Removed", "Put it back")


async def _who_is_answered(ctx: Ctx, **given: Any) -> str:
    return str((await to_answer(ctx, **given))["aim"])


@tool(
    words="Answer the invitation {appointment}: {answer}",
    idempotent=True,
    risk="high",
    reads_private=True,
    reads_untrusted=True,
    aim=_who_is_answered,
)
async def calendar_answer(ctx: Ctx, appointment: str, answer: Answer, day: date | None = None) -> str:
    """Accept or decline an invitation.

    Args:
        appointment: Its id, or words of its title.
        answer: What to say.
        day: Its day, where several have these words.
    """
    return await _written(ctx, await to_answer(ctx, appointment, answer, day), "Answered", "Take the answer back")


async def undo(ctx: Ctx, target: str, before: dict[str, Any] | None, expected: str) -> str:
    """Have an appointment as it was. Conflict when it changed since."""
    written = convert((before or {})["written"], Written)
    version = await ctx.use(Calendars).put_back(written, expected)
    back = replace(written, data=written.before, before=written.data, etag=expected, stamp="")
    ctx.leave_redo(target=target, before={"written": as_dict(back)}, expected=version)
    return f"As it was before: {target}"


async def _written(ctx: Ctx, target: dict[str, Any], said: str, label: str) -> str:
    written, fact = convert(target["written"], Written), str(target["fact"])
    try:
        version = await ctx.use(Calendars).write(written)
    except Conflict as error:
        raise ToolFailed(f"{error.message} Look at it again first.") from error
    ctx.leave_undo(target=fact, before={"written": as_dict(written)}, expected=version, label=label)
    return f"{said}: {fact}"
