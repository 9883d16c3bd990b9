"""To-do lists, shared ones too: list, create, update, complete. Rules of the table itself stand in `storage/tasks.py`.

No tool shares a list: people do, on the page. Who else reads a list is what `read_by` says of each call that writes.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Any

from pydantic import Field

from cortex.base import portable
from cortex.base.errors import Conflict, NotFound, ToolFailed
from cortex.base.ids import derived_id, is_named
from cortex.base.ids import short as short_id
from cortex.base.zone import day, local
from cortex.ports.loop import Readers, Targets
from cortex.ports.outgoing import ListSignal
from cortex.storage.tasks import INBOX, TaskListRow, TaskRow, TasksRepository
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.spec import Output
from cortex.toolkit.words import NO_CHANGE, counted, short

SUMMARY = "to-do and shopping lists"
PREFIXES = ("task_",)
NEEDS = ("Tasks",)
ROLES = {"orchestrator": ("tasks",)}
TESTED = "its tables, on SQLite and PostgreSQL"
SAMPLES = {"task_create": {"title": "milk", "list_name": "Shopping"}}
SHOWN = 40

TITLE_CHARACTERS = 300
_SHARED = re.compile(r"(?:(?:the|my|our)\s+)?(?:our|shared|common|family)\s+", re.IGNORECASE)
_THEIRS = re.compile(r"^(.+?)['\u2019]s\s+(.+)$")
_LIST = re.compile(r"^(?:the|my)\s+|\s+list\s*$", re.IGNORECASE)
Priority = Annotated[int, Field(ge=0, le=3)]


@tool(words="Look at your tasks[ on {list_name}][, for {query}][, due by {due_by}]", effect="read", reads_private=True)
async def task_list(
    ctx: Ctx, list_name: str | None = None, query: str = "", due_by: date | None = None, done: bool = False
) -> Output:
    """Show the user's tasks, or what is on one of their lists.

    Args:
        list_name: Such as shopping; all when left out.
        query: Words in the task.
        due_by: Due on or before this day.
        done: Finished ones instead of open ones.
    """
    tasks = ctx.use(TasksRepository)
    lists = await tasks.lists()
    name = _known_list(lists, list_name) if list_name else None
    rows = list(await tasks.list(list_name=name, is_done=done, query=query))
    shared = [one for one in lists if one.with_whom and (name is None or one.label == name)]
    if due_by is not None:
        rows = [row for row in rows if row.due is not None and row.due <= due_by]
    if not rows:
        return _nothing(lists, name, done, is_narrowed=bool(query or due_by))
    lines = [_line(ctx, row, show_list=name is None) for row in rows[:SHOWN]]
    if len(rows) > SHOWN:
        lines.append(f"... and {len(rows) - SHOWN} more: narrow it by list_name, query or due_by.")
    labels = {row.list_label for row in rows[:SHOWN]}
    lines += [f"The list {one.label} is {_shared(one)}." for one in shared if one.label in labels]
    tainted = any(row.is_tainted for row in rows[:SHOWN])
    return Output(text="\n".join(lines), words=counted(len(rows), "task"), is_tainted=tainted)


async def _read_there(ctx: Ctx, list_name: str = INBOX, **_: Any) -> list[Readers]:
    lists = await ctx.use(TasksRepository).lists()
    return _readers(lists, _known_list(lists, list_name.strip() or INBOX))


async def _read_of(ctx: Ctx, task: str, list_name: str | None = None, **_: Any) -> list[Readers]:
    """Return who reads the list on which the task stands, and the one that it moves to."""
    tasks = ctx.use(TasksRepository)
    kept = await ctx.use(Targets).target(ctx.call_id)
    row = await tasks.get(kept["id"]) if kept else await _find(tasks, task)
    lists = await tasks.lists()
    there = _known_list(lists, list_name) if list_name else row.list_label
    if there != row.list_label and _readers(lists, there):
        ctx.note_private("the task that moves to where others read it")
    return _readers(lists, row.list_label, there)


def _readers(lists: Sequence[TaskListRow], *labels: str) -> list[Readers]:
    shared = [one for one in lists if one.shared and one.label in labels and one.shared.readers]
    return [Readers(key=one.shared.readers, words=one.shared.read_by) for one in shared if one.shared]


@tool(words="Add {title}[ to {list_name}][, due {due}]", idempotent=True, read_by=_read_there)
async def task_create(
    ctx: Ctx, title: str, due: date | None = None, list_name: str = "inbox", priority: Priority = 0, notes: str = ""
) -> str:
    """Add a task or an item to one of the user's lists.

    Args:
        title: What to do or to buy.
        due: Day it is due.
        list_name: Such as shopping; a new name makes a new list.
        priority: 3 is high.
        notes: More words.
    """
    tasks = ctx.use(TasksRepository)
    lists = await tasks.lists()
    known = _known_list(lists, list_name.strip() or INBOX)
    row = await tasks.create(
        derived_id(ctx.call_id, "task"),
        title=_title(title),
        list_name=known,
        due=due,
        priority=priority,
        notes=notes.strip(),
        is_tainted=ctx.is_tainted,
    )
    ctx.leave_undo(target=row.id, before=None, expected=str(row.version), label="Remove the task again")
    is_shared = any(one.label == row.list_label and one.with_whom for one in lists)
    await ctx.use(ListSignal).tell_readers(_place(row), is_shared=is_shared)
    return f"Added: {_fact(ctx, row, lists)}"


def _change(arguments: Mapping[str, Any]) -> str:
    shown = {"title": "rename to", "due": "due", "list_name": "move to", "priority": "priority", "notes": "notes"}
    given = [f"{words} {short(arguments[name])}" for name, words in shown.items() if arguments[name] is not None]
    given += ["no due day"] if arguments["clear_due"] else []
    return f"Change task {short(arguments['task'])}: {', '.join(given)}"


@tool(words=_change, idempotent=True, reads_private=True, read_by=_read_of)
async def task_update(
    ctx: Ctx,
    task: str,
    title: str | None = None,
    due: date | None = None,
    clear_due: bool = False,
    list_name: str | None = None,
    priority: Priority | None = None,
    notes: str | None = None,
) -> Output:
    """Change a task: rename it, move it, or set its due date.

    Args:
        task: Its id, or words of its title.
        title: New title.
        due: New due day.
        clear_due: No due day any more.
        list_name: List to move it to.
        priority: 3 is high.
        notes: New notes.
    """
    tasks = ctx.use(TasksRepository)
    wanted: dict[str, Any] = {
        "title": None if title is None else _title(title),
        "due": due,
        "priority": priority,
        "notes": notes,
    }
    lists = await tasks.lists()
    if list_name:
        wanted["list_name"] = _known_list(lists, list_name)

    async def find() -> dict[str, Any]:
        row = await _find(tasks, task)
        changes = {key: value for key, value in wanted.items() if value is not None and value != _value(row, key)}
        if clear_due and row.due is not None:
            changes["due"] = None
        before = {key: _plain(_value(row, key)) for key in changes}
        made = {key: _plain(value) for key, value in changes.items()}
        return {"id": row.id, "version": row.version, "before": before, "changes": made}

    target = await ctx.target(find)
    row, changes = await tasks.get(target["id"]), _typed(target["changes"])
    if not changes:
        text = f"Nothing to change: {_fact(ctx, row, lists)}"
        return Output(text=text, words=NO_CHANGE, is_tainted=row.is_tainted)
    if not _is_made(row, target["version"], changes):
        marked = {**changes, "is_tainted": True} if ctx.is_tainted else changes
        was, row = row, await tasks.update(row.id, expected_version=target["version"], **marked)
        await ctx.use(ListSignal).tell_readers(_place(was), _place(row))
    undone_by = {"target": row.id, "before": target["before"], "expected": str(row.version)}
    ctx.leave_undo(**undone_by, label="Put the task back as it was")
    return Output(text=f"Changed: {_fact(ctx, row, lists)}", is_tainted=row.is_tainted)


@tool(words="Tick off {task}", idempotent=True, reads_private=True, read_by=_read_of)
async def task_complete(ctx: Ctx, task: str) -> Output:
    """Tick a task off as done.

    Args:
        task: Its id, or words of its title.
    """
    tasks = ctx.use(TasksRepository)

    async def find() -> dict[str, Any]:
        row = await _find(tasks, task)
        return {"id": row.id, "version": row.version}

    target = await ctx.target(find)
    row = await tasks.get(target["id"])
    if not _is_made(row, target["version"], {"is_done": True}):
        if row.is_done:
            by = f" by {row.doer}" if row.doer else ""
            text = f"It was done already{by}: {row.title}"
            return Output(text=text, words=NO_CHANGE, is_tainted=row.is_tainted)
        row = await tasks.complete(row.id, target["version"])
        await ctx.use(ListSignal).tell_readers(_place(row))
    ctx.leave_undo(target=row.id, before={"is_done": False}, expected=str(row.version), label="Open the task again")
    left = await tasks.list(list_name=row.list_label, is_done=False)
    return Output(text=f"Done: {row.title} ({len(left)} left on {row.list_label})", is_tainted=row.is_tainted)


async def undo(ctx: Ctx, target: str, before: dict[str, Any] | None, expected: str) -> str:
    """Put a task back: removed if the call made it, else as `before` says. Conflict when it changed since."""
    tasks = ctx.use(TasksRepository)
    if before is not None and "removed" in before:
        back = await tasks.put(portable.read(TaskRow, before["removed"]))
        ctx.leave_redo(target=target, before=None, expected=str(back.version))
        await ctx.use(ListSignal).tell_readers(_place(back))
        return f"{back.title!r} is back."
    row = await tasks.get(target)
    if str(row.version) != expected:
        raise Conflict(f"{row.title!r} has changed since and was left as it is.")
    if before is None:
        await tasks.remove(target, row.version)
        ctx.leave_redo(target=target, before={"removed": portable.plain(row)}, expected="")
        await ctx.use(ListSignal).tell_readers(_place(row))
        return f"Removed {row.title!r} again."
    fields = _typed(before)
    was = {key: _plain(_value(row, key)) for key in fields}
    now = await tasks.update(target, expected_version=row.version, **fields)
    ctx.leave_redo(target=target, before=was, expected=str(now.version))
    await ctx.use(ListSignal).tell_readers(_place(row), _place(now))
    if fields.keys() == {"is_done"}:
        return f"{row.title!r} is {'done' if fields['is_done'] else 'open'} again."
    return f"{row.title!r} is as it was."


def _known_list(lists: Sequence[TaskListRow], wanted: str) -> str:
    """The list as the user's lists have it: "Shopping list" and "shopping" mean the list that is there.

    The user's own first, unless only a shared one has the name, or they say that they mean a shared one.
    """
    is_shared_meant = bool(_SHARED.match(wanted))
    short = _LIST.sub("", _SHARED.sub("", wanted)).strip()
    theirs = _THEIRS.sub(r"\2 (\1)", short)  # "Ada's shopping" is "shopping (Ada)"
    for key in (_key(wanted), _key(short), _key(theirs)):
        own = [one for one in lists if not one.owner and _key(one.name) == key]
        others = [one for one in lists if one.owner and key in (_key(one.label), _key(one.name))]
        shared = [one for one in (*own, *others) if one.with_whom]
        found = shared if is_shared_meant and shared else own or (others if key != INBOX else [])
        if len(found) > 1 and not found[0].owner:
            return next((one.name for one in found if one.name == wanted), found[0].name)
        if len(found) > 1:
            names = ", ".join(one.label for one in found)
            raise ToolFailed(f"Several shared lists have this name: {names}. Say which.", is_tainted=True)
        if found:
            return found[0].label
    return short.casefold() or INBOX


def _shared(one: TaskListRow) -> str:
    return f"shared with {', '.join(one.with_whom)}"


def _place(row: TaskRow) -> tuple[str, str]:
    return row.owner_id, row.list_name


def _value(row: TaskRow, key: str) -> object:
    """A field as calls name it: a list by what the user calls it."""
    return row.list_label if key == "list_name" else getattr(row, key)


def _title(words: str) -> str:
    """The title without outer spaces; ToolFailed when nothing or a whole letter is left."""
    short = words.strip()
    if not 0 < len(short) <= TITLE_CHARACTERS:
        raise ToolFailed(f"A title has 1 to {TITLE_CHARACTERS} characters: put the rest into notes.")
    return short


def _key(name: str) -> str:
    return "".join(name.casefold().split())


async def _find(tasks: TasksRepository, wanted: str) -> TaskRow:
    """The one task that is meant; ToolFailed names the candidates when it is not one."""
    key = wanted.strip().casefold().removeprefix("#")
    if not key:
        raise ToolFailed("Say which task: its id, or words of its title.")
    rows = await tasks.list(is_done=False)
    ways = (
        [row for row in rows if is_named(row.id, key)],
        [row for row in rows if row.title.casefold() == key],
        [row for row in rows if key in row.title.casefold()],
        [row for row in rows if set(key.split()) <= set(row.title.casefold().split())],
    )
    for hits in ways:
        if len(hits) == 1:
            return hits[0]
        if hits:
            names = "; ".join(f"{row.title} (id {short_id(row.id)}, {row.list_label})" for row in hits[:5])
            told = f"{len(hits)} tasks fit {wanted!r}: {names}. Use the id."
            raise ToolFailed(told, is_tainted=any(row.is_tainted for row in hits))
    try:
        return await tasks.get(key)
    except NotFound:
        raise ToolFailed(f"No open task fits {wanted!r}. Look with task_list.") from None


def _nothing(lists: Sequence[TaskListRow], name: str | None, done: bool, *, is_narrowed: bool) -> Output:
    """Say that there is nothing to show, with the lists that do exist."""
    others = [other.label for other in lists if other.label != name]
    where = f" on the list {name!r}" if name else ""
    what = "finished task" if done else "open task"
    hint = f" Lists: {', '.join(others[:20])}." if others else " Add one with task_create."
    text = f"There is no {what}{where}{' that fits' if is_narrowed else ''}.{hint}"
    return Output(text=text, words="no tasks", is_tainted=any(one.is_tainted for one in lists))


def _line(ctx: Ctx, row: TaskRow, *, show_list: bool) -> str:
    """One task in one line: `- [ ] Buy milk (id 1a2b3c, shopping, due 2026-11-22 (tomorrow), priority 2)`."""
    today = local(ctx.now, ctx.user.time_zone).date()
    facts = [f"id {short_id(row.id)}"]
    if show_list:
        facts.append(row.list_label)
    if row.due is not None:
        facts.append(f"due {row.due.isoformat() if row.is_done else day(row.due, today)}")
    if row.priority:
        facts.append(f"priority {row.priority}")
    facts += [f"added by {row.adder}"] if row.adder else []
    facts += [f"done by {row.doer}"] if row.doer else []
    notes = f": {row.notes[:200]}" if row.notes else ""
    return f"- [{'x' if row.is_done else ' '}] {row.title} ({', '.join(facts)}){notes}"


def _fact(ctx: Ctx, row: TaskRow, lists: Sequence[TaskListRow]) -> str:
    """One task for the result of a change, with whom its list is shared."""
    shared = [f"; {_shared(one)}" for one in lists if one.label == row.list_label and one.with_whom]
    return _line(ctx, row, show_list=True)[len("- [ ] ") :] + "".join(shared)


def _plain(value: object) -> object:
    """A field as portable JSON."""
    return value.isoformat() if isinstance(value, date) else value


def _typed(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields from portable JSON."""
    due = fields.get("due")
    return {**fields, "due": date.fromisoformat(due)} if isinstance(due, str) else fields


def _is_made(row: TaskRow, from_version: int, changes: dict[str, Any]) -> bool:
    """Tell whether the task is what these changes made of that version: an earlier try of this call did it."""
    return row.version == from_version + 1 and all(_value(row, key) == value for key, value in changes.items())
