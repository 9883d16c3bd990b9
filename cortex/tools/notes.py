"""The assistant's private notes: one page a role and user, which it keeps for itself between conversations."""

from typing import Any

from cortex.storage.home import Home
from cortex.storage.preferences import PreferencesRepository
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.page import Page
from cortex.toolkit.spec import Output

SUMMARY = "your own notes about this user"
PREFIXES = ("agent_notes_",)
NEEDS = ("Home", "Preferences")
ROLES = {"orchestrator": ("notes",)}
TESTED = "real folders and files"
FOLDER = "agent_notes"


@tool(words="Read its own notes", effect="read", reads_private=True)
async def agent_notes_read(ctx: Ctx, offset: int = 0) -> Output:
    """Read what you noted for yourself about this user.

    Args:
        offset: Character to start at.
    """
    return await _page(ctx).read(offset)


@tool(words="Replace its own notes: {text}", idempotent=True)
async def agent_notes_write(ctx: Ctx, text: str) -> str:
    """Replace all of your own notes about this user.

    Args:
        text: The new notes, in Markdown.
    """
    return await _page(ctx).write(text)


@tool(words="Add to its own notes: {text}")
async def agent_notes_append(ctx: Ctx, text: str) -> str:
    """Keep a lasting fact about the user in your own notes.

    Args:
        text: The fact, in one line.
    """
    return await _page(ctx).append(text)


@tool(words="Clear its own notes", ends=True, idempotent=True)
async def agent_notes_clear(ctx: Ctx) -> str:
    """Forget all of your own notes about this user."""
    return await _page(ctx).clear()


async def undo(ctx: Ctx, target: str, before: dict[str, Any] | None, expected: str) -> str:
    """Put the notes back as they were before a call, also those of another role. Conflict when they changed since."""
    return await _page(ctx, target).undo(before, expected)


def _page(ctx: Ctx, path: str = "") -> Page:
    where = path or f"{FOLDER}/{ctx.role}.md"
    return Page(ctx=ctx, texts=ctx.use(Home), marks=ctx.use(PreferencesRepository), path=where, title="notes")
