"""The user's one scratchpad: a text file of theirs that the assistant reads and writes too."""

from typing import Any

from cortex.storage.home import Home
from cortex.storage.preferences import Preferences
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.examples import said
from cortex.toolkit.page import Page
from cortex.toolkit.spec import Output, Phrase

SUMMARY = "the user's scratchpad: read, write, add to, empty"
PREFIXES = ("scratch_",)
NEEDS = ("Home", "Preferences")
PATH = "scratchpad.md"


@tool(effect="read", reads_private=True)
async def scratch_read(ctx: Ctx, offset: int = 0) -> Output:
    """Read the user's scratchpad.

    Args:
        offset: Character to start at.
    """
    return await _page(ctx).read(offset)


@tool(idempotent=True)
async def scratch_write(ctx: Ctx, text: str) -> str:
    """Replace all that is on the user's scratchpad.

    Args:
        text: The new content, in Markdown.
    """
    return await _page(ctx).write(text)


@tool()
async def scratch_append(ctx: Ctx, text: str) -> str:
    """Jot something down at the end of the user's scratchpad.

    Args:
        text: The lines to add.
    """
    return await _page(ctx).append(text)


@tool(idempotent=True)
async def scratch_clear(ctx: Ctx) -> str:
    """Empty the user's scratchpad."""
    return await _page(ctx).clear()


async def undo(ctx: Ctx, target: str, before: dict[str, Any] | None, expected: str) -> str:
    """Put the scratchpad back as it was before a call. Conflict when it changed since."""
    return await _page(ctx).undo(before, expected)


def _page(ctx: Ctx) -> Page:
    return Page(ctx=ctx, texts=ctx.use(Home), marks=ctx.use(Preferences), path=PATH, title="scratchpad")


PHRASES = (
    Phrase(text="scratchpad", weight=1.2),
    Phrase(text="scratch pad", weight=1.2),
    Phrase(text="scratch note", weight=1.0),
    Phrase(text="notepad", weight=0.8, unless=("notepad++", "notepad.exe")),
    Phrase(text="jot down", weight=1.0, tools=("scratch_append",)),
    Phrase(text="jot this down", weight=1.1, tools=("scratch_append",)),
    Phrase(text="jot that down", weight=1.1, tools=("scratch_append",)),
    Phrase(text="note that", weight=0.6, tools=("scratch_append",), unless=("please note that", "a note that")),
    Phrase(text="note this down", weight=0.9, tools=("scratch_append",)),
    Phrase(text="write this down", weight=0.9, tools=("scratch_append",)),
    Phrase(text="write that down", weight=0.9, tools=("scratch_append",)),
)

EXAMPLES = (
    *said(
        "scratch_read",
        """
        what's on my scratchpad | read the scratchpad to me | show my scratch notes | whats in the notepad right now
        did I jot down the door code | pull up what I scribbled earlier | can you read back my scratch pad please
        what was that number i wrote down this morning | open scrachpad | anything on my scratchpad about the trip
        i want look at the things I have noted quickly | tell me the stuff on the pad
        """,
    ),
    *said(
        "scratch_write",
        """
        replace my scratchpad with this | put only the shopping budget on the scratchpad | rewrite my notepad tidily
        overwrite the scratchpad: call bank, 3pm | set scratchpad to the new wifi password
        clean up the wording on my scratch pad and save it | make the pad say just the address
        please change the whole scratchpad by this text | swap everything on it for the agenda
        start the scratchpad fresh with these three points | sort the lines on my scratchpad alphabetically
        the pad should have nothing but today's plan, write it
        """,
    ),
    *said(
        "scratch_append",
        """
        jot down 4417 as the gate code | note this: paint colour is RAL 9010
        add "ask Ben about the van" to the scratchpad | write down that the meter reads 10482
        quick note, the wine was a rioja | stick that on my scratchpad as well
        scribble down the tracking number for me | put this thought on the pad before I lose it
        can you keep this link on my notepad | plz note down room 12b | append the totals to my scratch notes
        remember this line for me on the pad: hold music is awful
        """,
    ),
    *said(
        "scratch_clear",
        """
        clear my scratchpad | empty the notepad | wipe the scratch pad | delete everything on my scratchpad
        i don't need the scribbles anymore, throw them out | reset the pad | scratchpad can go, its all done
        make my scratchpad blank | get rid of whats on the notepad | please to erase all from the scratchpad
        start with an empty pad again | bin all my scratch notes
        """,
    ),
)
