"""The user's calendars, and what others let them see: look, find free time, add, change, take away, answer.

A change is made ready ahead of the question and kept (`Ctx.target`), so what was asked about is what is written, once.
Where others are invited their server tells them, so such a call says so (`tell_guests`) and asks.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Literal

from msgspec import convert
from msgspec.structs import replace
from pydantic import Field

from cortex.base.errors import Conflict, ToolFailed
from cortex.base.ids import derived_id, is_named
from cortex.base.record import as_dict
from cortex.base.zone import day_begins, day_ends, local
from cortex.ports.calendars import Answer, CalendarName, Calendars, Details, Draft, Occasion, Person, Written
from cortex.ports.loop import Readers
from cortex.ports.schedule import Timings
from cortex.toolkit.appointments import fact, free_times, line, news_of, said_of, span, timed, when_of
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.spec import Output, Risk
from cortex.toolkit.words import counted

SUMMARY = "calendars and appointments"
NEEDS = ("Calendars", "Timings")
ROLES = {"orchestrator": ("calendar",)}
TESTED = "Radicale and Xandikos, the real servers"
SAMPLES = {"calendar_add": {"title": "dentist", "starts": "tomorrow at 9"}}
SHOWN = 60
TITLE_CHARACTERS = 300
TEXT_CHARACTERS = 4_000
GUESTS_MOST = 20
LOOKED = timedelta(days=400)
NO_CALENDAR = "No calendar is connected. The user connects one on the page Calendar."
Days = Annotated[int, Field(ge=1, le=92)]
Minutes = Annotated[int, Field(ge=5, le=60 * 24 * 14)]
Hour = Annotated[int, Field(ge=0, le=24)]
_ADDRESS = re.compile(r"[^\s@,;<>\"]{1,64}@[^\s@,;<>\"]{1,190}\.[^\s@,;<>\".]{2,24}")
_RULES = {"daily": "FREQ=DAILY", "weekly": "FREQ=WEEKLY", "monthly": "FREQ=MONTHLY", "yearly": "FREQ=YEARLY"}
Repeat = Literal["", "daily", "weekly", "monthly", "yearly"]


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
    since = day_begins(first, ctx.user.time_zone) or _today(ctx)
    until = since + (LOOKED if query else timedelta(days=days))
    names = await _names(ctx)
    asked = {one.id for one in (_named(names, calendar) if calendar else names)}
    found = [one for one in await ctx.use(Calendars).between(since, until, words=query) if one.calendar.id in asked]
    stale = [
        f"{one.label} could not be reached lately: {one.is_stale}" for one in names if one.is_stale and one.id in asked
    ]
    if not found:
        return Output(text="\n".join(["No appointment then.", *stale]), words="no appointment")
    lines = [line(ctx, one, is_several=len(names) > 1) for one in found[:SHOWN]]
    if len(found) > SHOWN:
        lines.append(f"... and {len(found) - SHOWN} more: ask for fewer days, or by query.")
    details = [await ctx.use(Calendars).details(one) for one in found[:3]] if len(found) <= 3 else []
    lines += [line for one, said in zip(found, details, strict=False) for line in said_of(one, said)]
    tainted = any(one.calendar.owner for one in found[:SHOWN]) or any(one.is_foreign for one in details)
    return Output(
        text="\n".join([*lines, *stale]), words=counted(len(found), "appointment"), is_tainted=tainted or bool(stale)
    )


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
    names = await _names(ctx)
    asked = [one for one in names if not one.owner]
    for person in people or []:
        asked += _named(names, person)
    since = day_begins(first, ctx.user.time_zone) or _today(ctx)
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
    found = _writable(await _names(ctx), calendar)
    return [Readers(key=found.readers, words=f"{found.name}, which others here see")] if found.readers else []


async def _read_of(ctx: Ctx, appointment: str, day: date | None = None, **_: Any) -> list[Readers]:
    found = await _find(ctx, appointment, day)
    shown = found.calendar
    return [Readers(key=shown.readers, words=f"{shown.name}, which others here see")] if shown.readers else []


@tool(
    words="Add {title}, {starts}[, for {minutes} minutes][, inviting {guests}]",
    idempotent=True,
    risk_of=_asks,
    sends_to=_to,
    read_by=_read_there,
)
async def calendar_add(
    ctx: Ctx,
    title: str,
    starts: str,
    minutes: Minutes = 60,
    all_day: bool = False,
    repeat: Repeat = "",
    place: str = "",
    notes: str = "",
    calendar: str = "",
    guests: list[str] | None = None,
) -> str:
    """Put an appointment into the user's calendar.

    Args:
        title: What it is.
        starts: Such as tomorrow at 9, or 2026-12-01 16:00.
        minutes: How long.
        all_day: A whole day; with minutes, several.
        repeat: How often again.
        place: Where.
        notes: More words.
        calendar: Name of the calendar; the first one when left out.
        guests: E-mail addresses to invite.
    """
    calendars = ctx.use(Calendars)

    async def ready() -> dict[str, Any]:
        there = _writable(await _names(ctx), calendar)
        begins = _moment(ctx, starts)
        draft = Draft(
            title=_bounded(title, TITLE_CHARACTERS, "title"),
            place=_bounded(place, TITLE_CHARACTERS, "place") if place else None,
            text=_bounded(notes, TEXT_CHARACTERS, "notes") if notes else None,
            rule=_RULES.get(repeat) or None,
            people=[Person(address=_guest(one)) for one in guests[:GUESTS_MOST]] if guests else None,
        )
        draft = timed(ctx, draft, begins, timedelta(minutes=minutes), all_day=all_day)
        uid = f"{derived_id(ctx.call_id, 'appointment')}@cortex"
        written = await calendars.ready_new(there.id, uid, draft)
        at = when_of(draft)
        return {"written": as_dict(written), "fact": f"{draft.title}, {at}, in {there.label}"}

    target = await ctx.target(ready)
    return await _written(ctx, target, "Added", "Take it out again")


@tool(
    words="Change {appointment}[ of {day}][ to {starts}]",
    idempotent=True,
    reads_private=True,
    risk_of=_asks,
    read_by=_read_of,
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
        starts: New time, such as Friday at 10.
        minutes: New length.
        place: New place.
        notes: New notes.
        all_dates: The whole series, not one date.
        tell_guests: True where others are invited to it.
    """

    async def ready() -> dict[str, Any]:
        found, _ = await _changed(ctx, appointment, day, tell_guests=tell_guests)
        draft = Draft(title=title, place=place, text=notes)
        if starts is not None or minutes is not None:
            length = timedelta(minutes=minutes) if minutes is not None else found.ends_at - found.starts_at
            begins = _moment(ctx, starts) if starts is not None else found.starts_at
            draft = timed(ctx, draft, begins, length, all_day=bool(found.day) and minutes is None)
        if draft == Draft():
            raise ToolFailed("Say what is to change: title, starts, minutes, place or notes.")
        written = await ctx.use(Calendars).ready_change(found, draft, all_dates=all_dates)
        return {"written": as_dict(written), "fact": f"{fact(ctx, found)}: {news_of(draft)}"}

    return await _written(ctx, await ctx.target(ready), "Changed", "Change it back")


@tool(
    words="Take {appointment} out of the calendar[, of {day}]",
    ends=True,
    idempotent=True,
    reads_private=True,
    risk_of=_asks,
    read_by=_read_of,
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

    async def ready() -> dict[str, Any]:
        found, _ = await _changed(ctx, appointment, day, tell_guests=tell_guests)
        written = await ctx.use(Calendars).ready_removal(found, all_dates=all_dates or not found.key)
        return {"written": as_dict(written), "fact": fact(ctx, found)}

    return await _written(ctx, await ctx.target(ready), "Removed", "Put it back")


@tool(words="Answer the invitation {appointment}: {answer}", idempotent=True, risk="high", reads_private=True)
async def calendar_answer(ctx: Ctx, appointment: str, answer: Answer, day: date | None = None) -> str:
    """Accept or decline an invitation; its sender is told.

    Args:
        appointment: Its id, or words of its title.
        answer: What to say.
        day: Its day, where several have these words.
    """

    async def ready() -> dict[str, Any]:
        found = await _find(ctx, appointment, day)
        written = await ctx.use(Calendars).ready_answer(found, answer)
        return {"written": as_dict(written), "fact": f"{answer}: {fact(ctx, found)}"}

    return await _written(ctx, await ctx.target(ready), "Answered", "Take the answer back")


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


async def _changed(ctx: Ctx, appointment: str, day: date | None, *, tell_guests: bool) -> tuple[Occasion, Details]:
    """The one that is meant, which may be changed; ToolFailed where others are invited and nobody said so."""
    found = await _find(ctx, appointment, day)
    said = await ctx.use(Calendars).details(found)
    if said.is_invitation:
        raise ToolFailed(f"{said.organizer} made this appointment: only they can change it. It can be answered.")
    if said.people and not tell_guests:
        names = ", ".join(one.name or one.address for one in said.people[:5])
        raise ToolFailed(f"{names} are invited to it and will be told. Call again with tell_guests.")
    return found, said


async def _names(ctx: Ctx) -> Sequence[CalendarName]:
    names = await ctx.use(Calendars).names()
    if not names:
        raise ToolFailed(NO_CALENDAR)
    return names


def _named(names: Sequence[CalendarName], wanted: str) -> list[CalendarName]:
    """Those that a name means: a calendar's, or a person's; ToolFailed names what there is."""
    key = wanted.strip().casefold()
    for ways in ((one for one in names if key in (one.label.casefold(), one.name.casefold(), one.owner.casefold())),):
        if found := list(ways):
            return found
    found = [one for one in names if key in one.label.casefold()]
    if not found:
        raise ToolFailed(f"There is no calendar {wanted!r}. There are: {', '.join(one.label for one in names)}.")
    return found


def _writable(names: Sequence[CalendarName], wanted: str) -> CalendarName:
    found = [one for one in (_named(names, wanted) if wanted else names) if not one.owner]
    open_ones = [one for one in found if one.access == "write"]
    if not open_ones:
        raise ToolFailed("Cortex may not write there: the user sets that on the page Calendar, Accounts.")
    return open_ones[0]


async def _find(ctx: Ctx, wanted: str, on: date | None) -> Occasion:
    """The one date that is meant, the next one first; ToolFailed names the candidates when several fit."""
    key = " ".join(wanted.casefold().split()).removeprefix("#")
    if not key:
        raise ToolFailed("Say which appointment: its id, or words of its title.")
    since = day_begins(on, ctx.user.time_zone) or _today(ctx) - timedelta(days=1)
    until = day_ends(on, ctx.user.time_zone) or since + LOOKED
    rows = [one for one in await ctx.use(Calendars).between(since, until) if one.id]
    ways = (
        [row for row in rows if is_named(row.id, key)],
        [row for row in rows if row.title.casefold() == key],
        [row for row in rows if key in row.title.casefold()],
        [row for row in rows if set(key.split()) <= set(row.title.casefold().split())],
    )
    hits = next((one for one in ways if one), [])
    if not hits:
        raise ToolFailed(f"No appointment to come is called {wanted!r}. calendar_list shows what there is.")
    if len({one.id for one in hits}) > 1:
        lines = "\n".join(line(ctx, one, is_several=False) for one in hits[:8])
        raise ToolFailed(f"Several fit; say the id:\n{lines}", is_tainted=True)
    return hits[0]


def _moment(ctx: Ctx, words: str) -> datetime:
    timings = ctx.use(Timings)
    times = timings.following(timings.read(words, ctx.now, ctx.user.time_zone), ctx.now, 1)
    if not times:
        raise ToolFailed(f"{words!r} is in the past or never comes. Give a time to come, with its date if need be.")
    return times[0]


def _guest(text: str) -> str:
    if not _ADDRESS.fullmatch(text.strip()):
        raise ToolFailed(f"{text[:80]!r} is no e-mail address. Guests are invited by their addresses.")
    return text.strip().lower()


def _bounded(text: str, most: int, what: str) -> str:
    words = text.strip()
    if not 0 < len(words) <= most:
        raise ToolFailed(f"The {what} of an appointment has 1 to {most} characters.")
    return words


def _today(ctx: Ctx) -> datetime:
    return day_begins(local(ctx.now, ctx.user.time_zone).date(), ctx.user.time_zone) or ctx.now
