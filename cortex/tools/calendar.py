"""The user's calendars, and what others let them see: look, find free time, add, change, take away, answer.

A change is made ready ahead of the question and kept (`aim`, `Ctx.target`), so what was asked about is what is written,
once. Where others are invited their server tells them, so such a call says so (`tell_guests`) and asks; where it sends
nothing nobody is invited, and a change says that nobody is told.
"""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Annotated, Any

from pydantic import Field

from cortex.base.errors import ToolFailed
from cortex.base.zone import day_begins
from cortex.ports.calendars import Answer, Calendars, Details, Occasion, Written
from cortex.ports.loop import Readers
from cortex.toolkit.appointment_changes import to_add, to_answer, to_change, to_remove
from cortex.toolkit.appointments import free_times, line, said_of, span
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.occasions import LOOKED, calendars_of, meant, named, today, writable
from cortex.toolkit.server_changes import make, readers_of, take_back
from cortex.toolkit.spec import Output, Risk
from cortex.toolkit.words import counted

SUMMARY = "calendars and appointments"
NEEDS = ("Calendars", "Timings")
ROLES = {"orchestrator": ("calendar",)}
TESTED = "Radicale and Xandikos, the real servers"
SHOWN, SAID_OF = 60, 3
MINUTES_LEAST, DAYS_MOST, DAY_HOURS = 5, 92, 24
Days = Annotated[int, Field(ge=1, le=DAYS_MOST)]


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
    minutes: int = 60,
    first: date | None = None,
    days: int = 7,
    from_hour: int = 8,
    to_hour: int = 20,
    people: str = "",
) -> str:
    """Find times when the user, and others of the household, are free.

    Args:
        minutes: How long.
        first: The first day; else today.
        days: How many days from it.
        from_hour: Not earlier on a day.
        to_hour: Not later on a day.
        people: Who else must be free; names.
    """
    if not (minutes >= MINUTES_LEAST and 1 <= days <= DAYS_MOST and 0 <= from_hour < to_hour <= DAY_HOURS):
        raise ToolFailed(f"From {MINUTES_LEAST} minutes, 1 to {DAYS_MOST} days, between hours of one day.")
    names = await calendars_of(ctx)
    asked = [one for one in names if not one.owner]
    for person in filter(None, map(str.strip, people.split(","))):
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
    return str(arguments.get("guests") or "")


async def _read_there(ctx: Ctx, calendar: str = "", **_: Any) -> list[Readers]:
    """Return who else of the household reads the calendar that is written to."""
    return readers_of(writable(await calendars_of(ctx), calendar))


async def _read_of(ctx: Ctx, appointment: str, day: date | None = None, **_: Any) -> list[Readers]:
    return readers_of((await meant(ctx, appointment, day)).calendar)


async def _where_added(ctx: Ctx, **given: Any) -> str:
    return str((await to_add(ctx, given))["aim"])


@tool(
    words="Add {title}, {when}[, inviting {guests}]",
    idempotent=True,
    risk_of=_asks,
    sends_to=_to,
    read_by=_read_there,
    aim=_where_added,
)
async def calendar_add(
    ctx: Ctx,
    title: str,
    when: str,
    repeat: str = "",
    place: str = "",
    notes: str = "",
    calendar: str = "",
    guests: str = "",
) -> str:
    """Put an appointment into the user's calendar.

    Args:
        title: What it is.
        when: Tomorrow 9:00 to 11:30; Friday at 10 for 30 minutes; days alone are whole.
        repeat: Weekly; every 2 weeks until 2026-12-01.
        place: Where.
        notes: More words.
        calendar: Its name; else the usual one.
        guests: Addresses or contacts.
    """
    given = {
        "title": title, "when": when, "repeat": repeat, "place": place, "notes": notes, "calendar": calendar,
        "guests": guests,
    }  # fmt: skip
    return await _written(ctx, await to_add(ctx, given), "Added", "Take it out again")


async def _where_changed(ctx: Ctx, **given: Any) -> str:
    return str((await to_change(ctx, given))["aim"])


@tool(
    words="Change {appointment}[ of {day}][ to {when}]",
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
    when: str = "",
    place: str | None = None,
    notes: str | None = None,
    all_dates: bool = False,
    tell_guests: bool = False,
) -> str:
    """Move or change an appointment.

    Args:
        appointment: Its id, or title words.
        day: Its day now.
        title: New.
        when: New: Friday at 10, 11:00, for 30 minutes.
        place: New.
        notes: New.
        all_dates: All its dates.
        tell_guests: If others are invited.
    """
    given = {
        "appointment": appointment, "day": day, "title": title, "when": when, "place": place, "notes": notes,
        "all_dates": all_dates, "tell_guests": tell_guests,
    }  # fmt: skip
    return await _written(ctx, await to_change(ctx, given), "Changed", "Change it back")


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
    return await take_back(ctx, ctx.use(Calendars), target, before, expected)


async def _written(ctx: Ctx, target: dict[str, Any], said: str, label: str) -> str:
    return await make(ctx, ctx.use(Calendars), Written, target, said, label)
