"""The user's journals and their entries: list, search, read, write, extend, disable. Disabling is soft."""

from datetime import date
from typing import Annotated, Any

from msgspec.structs import replace
from pydantic import Field

from cortex.base.errors import NotFound, ToolFailed
from cortex.base.ids import derived_id, is_named, short
from cortex.base.zone import local, moment
from cortex.ports.aether import EntryChange, Journal, JournalEntry, JournalPlace, Journals
from cortex.ports.loop import Readers
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.spec import Output
from cortex.toolkit.stretch import stretch

SUMMARY = "the user's journals and diaries"
PREFIXES = ("ae_journal_",)
NEEDS = ("Journals",)
ROLES = {"orchestrator": ("aether",)}
TESTED = "its tables, on SQLite and PostgreSQL; a server made from docs/aether.md"
SHOWN = 20
TITLE_CHARACTERS = 200
ENTRY_CHARACTERS = 100_000
Count = Annotated[int, Field(ge=1, le=50)]


@tool(words="Look at your journals", effect="read", reads_private=True)
async def ae_journal_list(ctx: Ctx) -> Output:
    """List the user's journals."""
    journals = await ctx.use(Journals).list()
    lines = [f"- {one.name} ({one.entries} entr{'y' if one.entries == 1 else 'ies'})" for one in journals]
    text = "\n".join(lines) or "There is no journal yet. ae_journal_entry_create makes one with its first entry."
    return Output(text=text, is_tainted=any(one.is_tainted for one in journals))


async def _read_on_server(ctx: Ctx, **_: Any) -> list[Readers]:
    """Whoever runs the server that keeps the journals; what is looked for there too. Nobody where Cortex keeps them."""
    host = await ctx.use(JournalPlace).server()
    return [Readers(key=f"journals:{host}", words=f"your journals on {host}")] if host else []


@tool(words="Search the journal[ {journal}]: {query}", effect="read", reads_private=True, read_by=_read_on_server)
async def ae_journal_search(ctx: Ctx, query: str, journal: str = "") -> Output:
    """Search the user's journals for words.

    Args:
        query: Words that must all be in an entry.
        journal: Only this one.
    """
    if not query.strip():
        raise ToolFailed("Say which words to look for; ae_journal_entries_list shows the newest entries.")
    return await _entries(ctx, journal, query.strip(), None, None, SHOWN)


@tool(
    words="List entries of the journal[ {journal}][, from {since}][, until {until}]",
    effect="read",
    reads_private=True,
    read_by=_read_on_server,
)
async def ae_journal_entries_list(
    ctx: Ctx, journal: str = "", since: date | None = None, until: date | None = None, count: Count = SHOWN
) -> Output:
    """List the newest journal entries.

    Args:
        journal: Only this one.
        since: First day.
        until: Last day.
        count: How many.
    """
    return await _entries(ctx, journal, "", since, until, count)


@tool(words="Read the journal entry {entry}", effect="read", reads_private=True, read_by=_read_on_server)
async def ae_journal_entry_read(ctx: Ctx, entry: str, offset: int = 0) -> Output:
    """Read a journal entry.

    Args:
        entry: Its id, or words of its title.
        offset: Character to start at.
    """
    row = await _find(ctx, entry)
    shown = stretch(row.text, offset, "ae_journal_entry_read")
    return Output(text=f"{_fact(ctx, row)}\n{shown}", is_tainted=row.is_tainted)


@tool(
    words="Write a journal entry[ in {journal}]: {title} {text}",
    idempotent=True,
    reads_private=True,
    read_by=_read_on_server,
)
async def ae_journal_entry_create(ctx: Ctx, text: str, journal: str = "", title: str = "") -> Output:
    """Write a new entry into a journal or diary.

    Args:
        text: The entry, in Markdown.
        journal: Which; may be left out when there is one. A new name makes a new one.
        title: Its title.
    """
    journals = ctx.use(Journals)
    head = _title(title) or f"{local(ctx.now, ctx.user.time_zone):%Y-%m-%d}"
    name = await _journal_to_write(journals, journal)
    row = await journals.write(derived_id(ctx.call_id, "entry"), name, head, _text(text), ctx.is_tainted)
    ctx.leave_undo(
        target=row.id, before={"is_enabled": False}, expected=str(row.version), label="Remove the entry again"
    )
    return Output(text=f"Written: {_fact(ctx, row)}", is_tainted=row.is_tainted)


@tool(words="Change the journal entry {entry}", idempotent=True, reads_private=True, read_by=_read_on_server)
async def ae_journal_entry_update(ctx: Ctx, entry: str, text: str | None = None, title: str | None = None) -> Output:
    """Replace the text or title of a journal entry.

    Args:
        entry: Its id, or words of its title.
        text: The whole new text.
        title: New title.
    """
    if text is None and not title:
        raise ToolFailed("Give a new text or title. ae_journal_entry_append adds without replacing.")
    target = await ctx.target(lambda: _target(ctx, entry))
    row = await ctx.use(Journals).entry(target["id"])
    new = {"text": None if text is None else _text(text), "title": _title(title or "") or None}
    made = {key: value for key, value in new.items() if value is not None}
    if not (ctx.is_again and _is_made(row, target["version"], made)):
        return await _change(ctx, replace(row, version=target["version"]), new["text"], new["title"])
    before = {key: target[key] for key in made}
    ctx.leave_undo(target=row.id, before=before, expected=str(row.version), label="Put the entry back as it was")
    return Output(text=f"Changed: {_fact(ctx, row)}", is_tainted=row.is_tainted)


@tool(words="Add to the journal entry {entry}: {text}", reads_private=True, read_by=_read_on_server)
async def ae_journal_entry_append(ctx: Ctx, entry: str, text: str) -> Output:
    """Add text at the end of a journal entry.

    Args:
        entry: Its id, or words of its title.
        text: What to add.
    """
    row = await _find(ctx, entry)
    return await _change(ctx, row, _text(f"{row.text.rstrip()}\n{_text(text)}"), None)


@tool(words="Add to the beginning of the journal entry {entry}: {text}", reads_private=True, read_by=_read_on_server)
async def ae_journal_entry_prepend(ctx: Ctx, entry: str, text: str) -> Output:
    """Add text at the beginning of a journal entry.

    Args:
        entry: Its id, or words of its title.
        text: What to add.
    """
    row = await _find(ctx, entry)
    return await _change(ctx, row, _text(f"{_text(text)}\n{row.text.lstrip()}"), None)


@tool(words="Delete the journal entry {entry}", ends=True, idempotent=True, reads_private=True, read_by=_read_on_server)
async def ae_journal_entry_disable(ctx: Ctx, entry: str) -> Output:
    """Remove a journal entry; it can be brought back.

    Args:
        entry: Its id, or words of its title.
    """
    target = await ctx.target(lambda: _target(ctx, entry))
    version = target["version"] + 1
    if not ctx.is_again or await _is_enabled(ctx, target["id"]):  # else an earlier try has removed it
        change = EntryChange(is_enabled=False)
        version = (await ctx.use(Journals).change(target["id"], target["version"], change)).version
    before = {"is_enabled": True}
    ctx.leave_undo(target=target["id"], before=before, expected=str(version), label="Restore the entry")
    return Output(text=f"Removed: {target['fact']}", is_tainted=target["is_tainted"])


async def undo(ctx: Ctx, target: str, before: dict[str, Any] | None, expected: str) -> str:
    """Put an entry's title, text or presence back. Conflict when it changed since."""
    row = await ctx.use(Journals).change(target, int(expected), EntryChange(**(before or {})))
    return f"The entry {row.title!r} is as it was."


async def _entries(ctx: Ctx, journal: str, query: str, since: date | None, until: date | None, count: int) -> Output:
    """Entries, a line each, with how they begin."""
    journals = ctx.use(Journals)
    found = await _journal(journals, journal) if journal.strip() else None
    rows = await journals.entries(found.id if found else None, query, since, until, count)
    lines = [f"- {_fact(ctx, row)}: {_around(row.text, query)}" for row in rows]
    if len(rows) == count:
        lines.append("[there may be more: narrow it by journal, words or days]")
    where = f" in {found.name!r}" if found else ""
    text = "\n".join(lines) or f"No entry{where} fits. ae_journal_list shows the journals."
    is_named_outside = found is not None and found.is_tainted
    return Output(text=text, is_tainted=is_named_outside or any(row.is_tainted for row in rows))


async def _journal(journals: Journals, wanted: str) -> Journal:
    """The journal of this name, however it is written; ToolFailed names those that are there."""
    known = await journals.list()
    key = _key(wanted)
    hits = [one for one in known if _key(one.name) == key] or [one for one in known if key in _key(one.name)]
    if key and len(hits) == 1:
        return hits[0]
    names = ", ".join(one.name for one in (hits or known)[:20])
    raise ToolFailed(
        f"{'Several journals fit' if hits else 'There is no journal'} {wanted!r}. Journals: {names or 'none'}.",
        is_tainted=any(one.is_tainted for one in hits or known),
    )


async def _journal_to_write(journals: Journals, wanted: str) -> str:
    """The name of the journal to write into: a known one as it is spelled, the only one, or a new one."""
    known = await journals.list()
    if not wanted.strip():
        if len(known) > 1:
            names = ", ".join(one.name for one in known[:20])
            raise ToolFailed(f"Say which journal: {names}.", is_tainted=any(one.is_tainted for one in known))
        return known[0].name if known else "Journal"
    hits = [one.name for one in known if _key(one.name) == _key(wanted)]
    return hits[0] if hits else _title(wanted)


async def _find(ctx: Ctx, wanted: str) -> JournalEntry:
    """The one entry that is meant; ToolFailed names the candidates when it is not one."""
    journals = ctx.use(Journals)
    key = " ".join(wanted.split()).removeprefix("#")
    if not key:
        raise ToolFailed("Say which entry: its id, or words of its title.")
    try:
        return await journals.entry(key)
    except NotFound:
        rows = await journals.entries(None, "", None, None, 1_000)
    words = key.casefold()
    ways = (
        [row for row in rows if is_named(row.id, words)],
        [row for row in rows if row.title.casefold() == words],
        [row for row in rows if words in row.title.casefold()],
        [row for row in rows if set(words.split()) <= set(f"{row.title} {row.journal}".casefold().split())],
    )
    for hits in ways:
        if len(hits) == 1:
            return hits[0]
        if hits:
            names = "; ".join(_fact(ctx, row) for row in hits[:5])
            told = f"{len(hits)} entries fit {wanted!r}: {names}. Use the id."
            raise ToolFailed(told, is_tainted=any(row.is_tainted for row in hits))
    raise ToolFailed(f"No entry fits {wanted!r}. Look with ae_journal_search.")


async def _target(ctx: Ctx, wanted: str) -> dict[str, Any]:
    """The entry that is meant, as it stands now."""
    row = await _find(ctx, wanted)
    kept = {name: getattr(row, name) for name in ("id", "version", "title", "text", "is_tainted")}
    return {**kept, "fact": _fact(ctx, row)}


def _is_made(row: JournalEntry, from_version: int, changes: dict[str, str]) -> bool:
    """Tell whether the entry is what these changes made of that version: an earlier try of this call did it."""
    return row.version == from_version + 1 and all(getattr(row, key) == value for key, value in changes.items())


async def _is_enabled(ctx: Ctx, id: str) -> bool:
    """Tell whether the entry can still be read."""
    try:
        await ctx.use(Journals).entry(id)
    except NotFound:
        return False
    return True


async def _change(ctx: Ctx, row: JournalEntry, text: str | None, title: str | None) -> Output:
    """Write the change down with its way back."""
    change = EntryChange(text=text, title=title, is_tainted=ctx.is_tainted)
    made = await ctx.use(Journals).change(row.id, row.version, change)
    before = {key: old for key, old, new in (("text", row.text, text), ("title", row.title, title)) if new is not None}
    ctx.leave_undo(target=row.id, before=before, expected=str(made.version), label="Put the entry back as it was")
    return Output(text=f"Changed: {_fact(ctx, made)}", is_tainted=made.is_tainted)


def _text(words: str) -> str:
    short = words.strip()
    if not 0 < len(short) <= ENTRY_CHARACTERS:
        raise ToolFailed(f"An entry has 1 to {ENTRY_CHARACTERS} characters.")
    return short


def _title(words: str) -> str:
    return " ".join(words.split())[:TITLE_CHARACTERS]


def _key(name: str) -> str:
    short = name.casefold().strip()
    for word in (" journal", " diary"):
        short = short.removesuffix(word)
    return "".join(short.removeprefix("my ").split())


def _fact(ctx: Ctx, row: JournalEntry) -> str:
    """`First frost (id 1a2b3c, Garden, 2026-11-20 23:30)`."""
    return f"{row.title} (id {short(row.id)}, {row.journal}, {moment(row.written_at, ctx.user.time_zone)})"


def _around(text: str, query: str) -> str:
    """A stretch of the text that begins a little before the first word looked for."""
    flat = " ".join(text.split())
    at = min((place for word in query.casefold().split() if (place := flat.casefold().find(word)) >= 0), default=0)
    start = max(0, at - 40)
    return f"{'...' if start else ''}{flat[start : start + 160]}{'...' if len(flat) > start + 160 else ''}"
