"""Changes of appointments made ready and kept, ahead of any question: what was asked about is what is written, once.

Each gives what the call acts on (`Ctx.target`): the resource as it will be, the fact in words, where to (`aim`).
"""

import re
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any, Literal

from msgspec.structs import replace

from cortex.base.errors import ToolFailed
from cortex.base.ids import derived_id
from cortex.base.record import as_dict
from cortex.base.zone import local
from cortex.ports.calendars import Answer, CalendarName, Calendars, Details, Draft, Occasion, Person, Written
from cortex.toolkit.appointments import (
    fact,
    length_of,
    news_of,
    rhythm,
    rule_of,
    timed,
    when_of,
)
from cortex.toolkit.context import Ctx
from cortex.toolkit.occasions import calendars_of, day_of, meant, moment_of, writable

TITLE_CHARACTERS = 300
TEXT_CHARACTERS = 4_000
GUESTS_MOST = 20
SEEN = "which others here see"
Repeat = Literal["", "daily", "weekly", "monthly", "yearly"]
_ADDRESS = re.compile(r"[^\s@,;<>\"]{1,64}@[^\s@,;<>\"]{1,190}\.[^\s@,;<>\".]{2,24}")


async def to_add(ctx: Ctx, given: Mapping[str, Any]) -> dict[str, Any]:
    """Make the appointment of these arguments ready; what "tomorrow" means does not change until the answer."""
    repeat, every, until, last_day = (given[name] for name in ("repeat", "every", "until", "last_day"))
    starts, place, notes, guests = (given[name] for name in ("starts", "place", "notes", "guests"))

    async def ready() -> dict[str, Any]:
        there = writable(await calendars_of(ctx), given["calendar"])
        people = [Person(address=_guest(one)) for one in guests or ()]
        if len(people) > GUESTS_MOST:
            raise ToolFailed(f"At most {GUESTS_MOST} guests are invited by one call.")
        whole = given["all_day"] or last_day is not None
        begins = day_of(ctx, starts, repeats=bool(repeat)) if whole else moment_of(ctx, starts, repeats=bool(repeat))
        draft = Draft(
            title=_bounded(given["title"], TITLE_CHARACTERS, "title"),
            place=_bounded(place, TITLE_CHARACTERS, "place") if place else None,
            text=_bounded(notes, TEXT_CHARACTERS, "notes") if notes else None,
            rule=rule_of(ctx, repeat, every, until, begins, whole=whole),
            people=people or None,
        )
        draft = timed(ctx, draft, begins, timedelta(minutes=given["minutes"]), all_day=whole, last_day=last_day)
        uid = f"{derived_id(ctx.call_id, 'appointment')}@cortex"
        written = await ctx.use(Calendars).ready_new(there.id, uid, draft)
        told = f"; invited: {', '.join(one.address for one in people)}" if people else ""
        often = f", {rhythm(repeat, every, until)}" if repeat else ""
        fact = f"{draft.title}, {when_of(draft)}{often}, in {there.label}{told}"
        return _target(written, fact, f"{there.label}: {fact}", there)

    return await ctx.target(ready)


async def to_change(ctx: Ctx, given: Mapping[str, Any]) -> dict[str, Any]:
    """Make the change of one date, or of the whole series, ready and keep it."""
    title, starts, minutes, all_dates = (given[name] for name in ("title", "starts", "minutes", "all_dates"))

    async def ready() -> dict[str, Any]:
        found, said = await _changed(ctx, given["appointment"], given["day"], tell_guests=given["tell_guests"])
        draft = Draft(title=None if title is None else _bounded(title, TITLE_CHARACTERS, "title"), place=given["place"])
        draft = replace(draft, text=given["notes"])
        if starts is not None or minutes is not None:
            length = timedelta(minutes=minutes) if minutes is not None else length_of(found)
            on = local(found.starts_at, ctx.user.time_zone).date()
            begins = moment_of(ctx, starts, on=on) if starts is not None else found.starts_at
            draft = timed(ctx, draft, begins, length, all_day=bool(found.day) and minutes is None)
        if draft == Draft():
            raise ToolFailed("Say what is to change: title, starts, minutes, place or notes.")
        written = await ctx.use(Calendars).ready_change(found, draft, all_dates=all_dates)
        told = f"{fact(ctx, found)}{_which(found, all_dates=all_dates)}: {news_of(draft)}"
        return _target(written, told, f"{found.calendar.label}: {fact(ctx, found)}{_guests(said)}", found.calendar)

    return await ctx.target(ready)


async def to_remove(
    ctx: Ctx, appointment: str, day: date | None = None, all_dates: bool = False, tell_guests: bool = False
) -> dict[str, Any]:
    """Make taking away one date, or the whole series, ready and keep it."""

    async def ready() -> dict[str, Any]:
        found, said = await _changed(ctx, appointment, day, tell_guests=tell_guests)
        written = await ctx.use(Calendars).ready_removal(found, all_dates=all_dates or not found.key)
        told = f"{fact(ctx, found)}{_which(found, all_dates=all_dates)}"
        return _target(written, told, f"{found.calendar.label}: {told}{_guests(said)}", found.calendar)

    return await ctx.target(ready)


async def to_answer(ctx: Ctx, appointment: str, answer: Answer, day: date | None = None) -> dict[str, Any]:
    """Make the answer to an invitation ready and keep it; ToolFailed where nobody invited the user."""

    async def ready() -> dict[str, Any]:
        found = await meant(ctx, appointment, day)
        said = await ctx.use(Calendars).details(found)
        if not said.is_invitation:
            raise ToolFailed("Nobody invited the user to it: there is nothing to answer.")
        written = await ctx.use(Calendars).ready_answer(found, answer)
        at = fact(ctx, found)
        return _target(written, f"{answer}: {at}", f"{said.organizer}: {at}", found.calendar)

    return await ctx.target(ready)


def _target(written: Written, fact: str, aim: str, calendar: CalendarName) -> dict[str, Any]:
    """Return what a call does, as it is kept. `aim`: where to, as the person is asked."""
    seen = f" ({SEEN})" if calendar.readers else ""
    return {"written": as_dict(written), "fact": fact, "aim": f"{aim}{seen}"}


async def _changed(ctx: Ctx, appointment: str, day: date | None, *, tell_guests: bool) -> tuple[Occasion, Details]:
    """The one that is meant, which may be changed; ToolFailed where others are invited and nobody said so."""
    found = await meant(ctx, appointment, day)
    said = await ctx.use(Calendars).details(found)
    if said.is_invitation:
        raise ToolFailed(
            f"{said.organizer} made this appointment: only they can change it. It can be answered.", is_tainted=True
        )
    if said.people and not tell_guests:
        names = ", ".join(one.name or one.address for one in said.people[:5])
        raise ToolFailed(f"{names} are invited to it and will be told. Call again with tell_guests.", is_tainted=True)
    return found, said


def _which(found: Occasion, *, all_dates: bool) -> str:
    return "" if not found.key else ", all its dates" if all_dates else ", this date alone"


def _guests(said: Details) -> str:
    return f"; told: {', '.join(one.address for one in said.people[:5])}" if said.people else ""


def _guest(text: str) -> str:
    if not _ADDRESS.fullmatch(text.strip()):
        raise ToolFailed(f"{text[:80]!r} is no e-mail address. Guests are invited by their addresses.")
    return text.strip().lower()


def _bounded(text: str, most: int, what: str) -> str:
    words = text.strip()
    if not 0 < len(words) <= most:
        raise ToolFailed(f"The {what} of an appointment has 1 to {most} characters.")
    return words
