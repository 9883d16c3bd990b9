"""The user's one scratchpad: a text file of theirs that the assistant reads and writes too."""

from typing import Any

from cortex.storage.home import Home
from cortex.storage.preferences import PreferencesRepository
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.examples import examples_for
from cortex.toolkit.page import Page
from cortex.toolkit.spec import Output, TriggerPhrase

SUMMARY = "the user's page for quick notes"
PREFIXES = ("scratch_",)
NEEDS = ("Home", "Preferences")
PATH = "scratchpad.md"


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


@tool(words="Clear the scratchpad", idempotent=True)
async def scratch_clear(ctx: Ctx) -> str:
    """Empty the user's scratchpad."""
    return await _page(ctx).clear()


async def undo(ctx: Ctx, target: str, before: dict[str, Any] | None, expected: str) -> str:
    """Put the scratchpad back as it was before a call. Conflict when it changed since."""
    return await _page(ctx).undo(before, expected)


def _page(ctx: Ctx) -> Page:
    return Page(ctx=ctx, texts=ctx.use(Home), marks=ctx.use(PreferencesRepository), path=PATH, title="scratchpad")


PHRASES = (
    TriggerPhrase(text="scratchpad", weight=1.2),
    TriggerPhrase(text="scratch pad", weight=1.2),
    TriggerPhrase(text="scratch note", weight=1.0),
    TriggerPhrase(text="notepad", weight=0.8, unless=("notepad++", "notepad.exe")),
    TriggerPhrase(text="jot down", weight=1.0, tools=("scratch_append",)),
    TriggerPhrase(text="jot this down", weight=1.1, tools=("scratch_append",)),
    TriggerPhrase(text="jot that down", weight=1.1, tools=("scratch_append",)),
    TriggerPhrase(text="note that", weight=0.6, tools=("scratch_append",), unless=("please note that", "a note that")),
    TriggerPhrase(text="note this down", weight=0.9, tools=("scratch_append",)),
    TriggerPhrase(text="write this down", weight=0.9, tools=("scratch_append",)),
    TriggerPhrase(text="write that down", weight=0.9, tools=("scratch_append",)),
)

EXAMPLES = examples_for(__file__)
