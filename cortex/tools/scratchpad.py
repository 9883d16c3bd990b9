"""The user's notes and their one scratchpad: text files of theirs that the assistant writes too."""

from typing import Any

from cortex.base.errors import ToolFailed
from cortex.base.note_names import NOTES, SCRATCHPAD, SUFFIX, note_name, note_path
from cortex.storage.home import Home, HomeEntry
from cortex.storage.preferences import PreferencesRepository
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.page import Page, mark_of
from cortex.toolkit.spec import Output

SUMMARY = "the user's notes and their scratchpad"
PREFIXES = ("scratch_", "notes_")
NEEDS = ("Home", "Preferences")
ROLES = {"orchestrator": ("scratchpad",)}
TESTED = "real folders and files"
NAMES_MAX = 100


@tool(words="Read the scratchpad", effect="read", reads_private=True)
async def scratch_read(ctx: Ctx, offset: int = 0) -> Output:
    """Read the user's scratchpad.

    Args:
        offset: Character to start at.
    """
    return await _page(ctx).read(offset)


@tool(words="Replace the scratchpad: {text}", idempotent=True)
async def scratch_write(ctx: Ctx, text: str) -> str:
    """Replace all that is on the user's scratchpad.

    Args:
        text: The new content, in Markdown.
    """
    return await _page(ctx).write(text)


@tool(words="Add to the scratchpad: {text}")
async def scratch_append(ctx: Ctx, text: str) -> str:
    """Jot something down at the end of the user's scratchpad.

    Args:
        text: The lines to add.
    """
    return await _page(ctx).append(text)


@tool(words="Clear the scratchpad", ends=True, idempotent=True)
async def scratch_clear(ctx: Ctx) -> str:
    """Empty the user's scratchpad."""
    return await _page(ctx).clear()


@tool(words="Read notes[: {note}]", effect="read", reads_private=True)
async def notes_read(ctx: Ctx, note: str = "", offset: int = 0) -> Output:
    """Read one of the user's notes, or list their names.

    Args:
        note: The note's name; empty lists them.
        offset: Character to start at.
    """
    if not note:
        marked = await ctx.use(PreferencesRepository).names(mark_of(f"{NOTES}/"))
        return Output(text=await _names(ctx), is_tainted=bool(marked))
    page = await _note(ctx, note)
    if not await page.exists():
        raise ToolFailed(f"There is no {page.title}. Without a name, notes_read lists them.")
    return await page.read(offset)


@tool(words="Add to the note “{note}”: {text}")
async def notes_append(ctx: Ctx, text: str, note: str = "Notes") -> str:
    """Add to one of the user's notes; a new name makes a new note.

    Args:
        text: The lines to add, in Markdown.
        note: The note's name.
    """
    return await (await _note(ctx, note)).append(text)


async def undo(ctx: Ctx, target: str, before: dict[str, Any] | None, expected: str) -> str:
    """Put the scratchpad or a note back as it was before a call. Conflict when it changed since."""
    return await _page(ctx, target).undo(before, expected)


async def _names(ctx: Ctx) -> str:
    """The notes' names, the latest changed first."""
    entries = sorted(await _notes(ctx), key=lambda entry: entry.changed_at, reverse=True)
    names = [entry.name.removesuffix(SUFFIX) for entry in entries]
    more = f"\n… and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    listed = "\n".join(f"- {name}" for name in names[:NAMES_MAX])
    return f"The user's notes, the latest changed first:\n{listed}{more}" if names else "The user has no notes yet."


async def _notes(ctx: Ctx) -> list[HomeEntry]:
    entries = await ctx.use(Home).list(NOTES)
    return [entry for entry in entries if entry.name.endswith(SUFFIX) and not entry.is_folder]


async def _note(ctx: Ctx, name: str) -> Page:
    """The note of this name, in whatever case the user wrote it; a new one. ToolFailed when none can be called so."""
    try:
        wanted = note_name(name)
    except ValueError as error:
        raise ToolFailed(str(error)) from error
    there = [entry.name.removesuffix(SUFFIX) for entry in await _notes(ctx)]
    same = [one for one in there if one.casefold() == wanted.casefold()]
    return _page(ctx, note_path(wanted if wanted in there else (*same, wanted)[0]))


def _page(ctx: Ctx, path: str = SCRATCHPAD) -> Page:
    name = path.removeprefix(f"{NOTES}/").removesuffix(SUFFIX)
    is_note = path != SCRATCHPAD
    return Page(
        ctx=ctx,
        texts=ctx.use(Home),
        marks=ctx.use(PreferencesRepository),
        path=path,
        title=f"note “{name}”" if is_note else "scratchpad",
        heading=f"# {name}\n" if is_note else "",
    )
