"""Reminders and alarms: a text that is told at its time. Words of time are read by the `Timings` port."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from cortex.base.errors import Conflict, ToolFailed
from cortex.base.ids import derived_id, is_named, short
from cortex.base.record import as_dict
from cortex.base.zone import day, local
from cortex.ports.schedule import Reminder, Reminders, Timing, Timings
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.people import read_by_them, somebody, whom
from cortex.toolkit.spec import Output
from cortex.toolkit.words import NO_CHANGE
from cortex.toolkit.words import short as shown

SUMMARY = "reminders, alarms, timers"
NEEDS = ("Reminders", "Timings")
ROLES = {"orchestrator": ("reminders",)}
TESTED = "its tables, on SQLite and PostgreSQL"
SAMPLES = {"reminders_add": {"text": "dentist", "when": "tomorrow at 9"}}
SHOWN = 40
TEXT_CHARACTERS = 500


def _words(text: str) -> str:
    words = text.strip()
    if not 0 < len(words) <= TEXT_CHARACTERS:
        raise ToolFailed(f"A reminder has 1 to {TEXT_CHARACTERS} characters.")
    return words


def _first(ctx: Ctx, when: str) -> tuple[Timing, datetime]:
    """The timing that the words mean and its first moment; ToolFailed when there is none."""
    timings = ctx.use(Timings)
    timing = timings.read(when, ctx.now, ctx.user.time_zone)
    times = timings.following(timing, ctx.now, 1)
    if not times:
        raise ToolFailed(f"{when!r} is in the past or never comes. Give a time to come, with its date if need be.")
    return timing, times[0]


async def _can_add(ctx: Ctx, text: str, when: str, person: str) -> None:
    _words(text)
    _first(ctx, when)
    await somebody(ctx, person)


def _deed(arguments: Mapping[str, Any]) -> str:
    return f"Remind {whom(arguments, 'you')} {shown(arguments['when'])}: {shown(arguments['text'])}"


@tool(words=_deed, idempotent=True, check=_can_add, read_by=read_by_them)
async def reminders_add(ctx: Ctx, text: str, when: str, person: str = "") -> str:
    """Remind the user at a time; alarms and timers too.

    Args:
        text: What to tell them.
        when: Such as tomorrow at 9, in 20 minutes, every Friday.
        person: Name of a housemate to tell instead.
    """
    words = _words(text)

    async def find() -> dict[str, Any]:
        timing, first_at = _first(ctx, when)
        for_id, name = await somebody(ctx, person)
        return {"timing": as_dict(timing), "next_at": first_at.isoformat(), "for_id": for_id, "name": name}

    target = await ctx.target(find)
    timing, next_at = Timing(**target["timing"]), datetime.fromisoformat(target["next_at"])
    for_id, name = target.get("for_id", ""), target.get("name", "")  # a call from before names nobody else
    made = await ctx.use(Reminders).add(
        derived_id(ctx.call_id, "reminder"), words, timing, next_at, ctx.is_tainted, for_id
    )
    before = {"for_id": for_id} if for_id else None
    ctx.leave_undo(target=made.id, before=before, expected=str(made.version), label="Remove the reminder again")
    whom = f" {name}" if name else ""
    return f"Will remind{whom}: {_fact(ctx, replace(made, text=words))}"


@tool(words="Look at your reminders[, for {query}]", effect="read", reads_private=True)
async def reminders_list(ctx: Ctx, query: str = "") -> Output:
    """Show the reminders, alarms and timers to come.

    Args:
        query: Words in the text.
    """
    words = query.casefold().split()
    rows = [row for row in await ctx.use(Reminders).list() if all(word in row.text.casefold() for word in words)]
    lines = [f"- {_fact(ctx, row)}" for row in rows[:SHOWN]]
    if len(rows) > SHOWN:
        lines.append(f"... and {len(rows) - SHOWN} more: narrow it by query.")
    nothing = f"No reminder has {query!r}." if query else "There is no reminder. Add one with reminders_add."
    tainted = any(row.is_tainted for row in rows[:SHOWN])
    return Output(text="\n".join(lines) or nothing, words=_counted(len(rows)), is_tainted=tainted)


@tool(words="Delete the reminder {reminder}", ends=True, idempotent=True, reads_private=True)
async def reminders_remove(ctx: Ctx, reminder: str) -> Output:
    """Delete a reminder, alarm or timer.

    Args:
        reminder: Its id, or words of its text.
    """

    async def find() -> dict[str, Any]:
        found = await _find(ctx, reminder)
        return {"id": found.id, "fact": _fact(ctx, found), "is_tainted": found.is_tainted}

    target = await ctx.target(find)
    await ctx.use(Reminders).remove([target["id"]])
    ctx.leave_undo(target=target["id"], before={"ids": [target["id"]]}, expected="", label="Put the reminder back")
    return Output(text=f"Removed: {target['fact']}", is_tainted=target["is_tainted"])


@tool(words="Delete all upcoming reminders", ends=True, idempotent=True)
async def reminders_clear(ctx: Ctx) -> str | Output:
    """Delete all reminders, alarms and timers."""
    reminders = ctx.use(Reminders)

    async def find() -> dict[str, Any]:
        return {"ids": [row.id for row in await reminders.list()]}

    ids = (await ctx.target(find))["ids"]
    if not ids:
        return Output(text="There was no reminder.", words=NO_CHANGE)
    await reminders.remove(ids)
    ctx.leave_undo(target="all", before={"ids": ids}, expected="", label="Put the reminders back")
    return f"Removed {_counted(len(ids))}."


async def undo(ctx: Ctx, target: str, before: dict[str, Any] | None, expected: str) -> str:
    """Put removed reminders back, or take a new one out again. Conflict when it changed since or is gone."""
    reminders = ctx.use(Reminders)
    if before is not None and "for_id" in before:
        if not await reminders.take_back(target, before["for_id"], int(expected)):
            raise Conflict("The reminder was sent or changed since and was left as it is.")
        return "Removed the reminder again."
    if before is not None and "again" in before:
        await reminders.remove(ids := [str(one) for one in before["again"]])
        ctx.leave_redo(target=target, before={"ids": ids}, expected="")
        return f"Removed {_counted(len(ids))} again."
    if before is not None:
        ctx.leave_redo(target=target, before={"again": before["ids"]}, expected="")
        return f"Put {_counted(await reminders.restore([str(one) for one in before['ids']]))} back."
    found = next((row for row in await reminders.list() if row.id == target), None)
    if found is None or str(found.version) != expected:
        raise Conflict("The reminder was sent or changed since and was left as it is.")
    await reminders.remove([target])
    ctx.leave_redo(target=target, before={"ids": [target]}, expected="")
    return f"Removed the reminder {found.text!r} again."


async def _find(ctx: Ctx, wanted: str) -> Reminder:
    """The one reminder that is meant; ToolFailed names the candidates when it is not one."""
    key = " ".join(wanted.casefold().split()).removeprefix("#")
    if not key:
        raise ToolFailed("Say which reminder: its id, or words of its text.")
    rows = await ctx.use(Reminders).list()
    ways = (
        [row for row in rows if is_named(row.id, key)],
        [row for row in rows if row.text.casefold() == key],
        [row for row in rows if key in row.text.casefold()],
        [row for row in rows if set(key.split()) <= {word.strip("(),") for word in _fact(ctx, row).casefold().split()}],
    )
    for hits in ways:
        if len(hits) == 1:
            return hits[0]
        if hits:
            names = "; ".join(_fact(ctx, row) for row in hits[:5])
            told = f"{len(hits)} reminders fit {wanted!r}: {names}. Use the id."
            raise ToolFailed(told, is_tainted=any(row.is_tainted for row in hits))
    raise ToolFailed(f"No reminder fits {wanted!r}. Look with reminders_list.")


def _fact(ctx: Ctx, row: Reminder) -> str:
    """`call mum (id 1a2b3c, 2026-11-21 (tomorrow) 09:00)`, with the rule of one that comes again."""
    here = local(row.next_at, ctx.user.time_zone)
    at = f"{day(here.date(), local(ctx.now, ctx.user.time_zone).date())} {here:%H:%M}"
    again = "" if row.timing.kind == "at" else f", {row.timing.words_in(ctx.user.time_zone)}"
    return f"{row.text} (id {short(row.id)}, {at}{again})"


def _counted(count: int) -> str:
    return f"{count} reminder{'' if count == 1 else 's'}"
