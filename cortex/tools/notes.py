"""The assistant's private notes: one page a role and user, which it keeps for itself between conversations."""

from typing import Any

from cortex.storage.home import Home
from cortex.storage.preferences import Preferences
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.examples import said
from cortex.toolkit.page import Page
from cortex.toolkit.spec import Output, Phrase

SUMMARY = "your own lasting notes about this user: read, write, add to, empty"
PREFIXES = ("agent_notes_",)
NEEDS = ("Home", "Preferences")
FOLDER = "agent_notes"


@tool(effect="read", reads_private=True)
async def agent_notes_read(ctx: Ctx, offset: int = 0) -> Output:
    """Read what you noted for yourself about this user.

    Args:
        offset: Character to start at.
    """
    return await _page(ctx).read(offset)


@tool(idempotent=True)
async def agent_notes_write(ctx: Ctx, text: str) -> str:
    """Replace all of your own notes about this user.

    Args:
        text: The new notes, in Markdown.
    """
    return await _page(ctx).write(text)


@tool()
async def agent_notes_append(ctx: Ctx, text: str) -> str:
    """Keep a lasting fact about the user in your own notes.

    Args:
        text: The fact, in one line.
    """
    return await _page(ctx).append(text)


@tool(idempotent=True)
async def agent_notes_clear(ctx: Ctx) -> str:
    """Forget all of your own notes about this user."""
    return await _page(ctx).clear()


async def undo(ctx: Ctx, target: str, before: dict[str, Any] | None, expected: str) -> str:
    """Put the notes back as they were before a call, also those of another role. Conflict when they changed since."""
    return await _page(ctx, target).undo(before, expected)


def _page(ctx: Ctx, path: str = "") -> Page:
    where = path or f"{FOLDER}/{ctx.role}.md"
    return Page(ctx=ctx, texts=ctx.use(Home), marks=ctx.use(Preferences), path=where, title="notes")


PHRASES = (
    Phrase(text="agent notes", weight=1.2),
    Phrase(text="your notes", weight=1.0),
    Phrase(text="private notes", weight=1.0),
    Phrase(text="your own notes", weight=1.2),
    Phrase(text="keep in mind that", weight=0.9, tools=("agent_notes_append",)),
    Phrase(
        text="for the future", weight=0.5, tools=("agent_notes_append",), unless=("savings", "plans for the future")
    ),
    Phrase(
        text="from now on", weight=0.7, tools=("agent_notes_append",), unless=("lights", "every day", "every morning")
    ),
    Phrase(text="remember that i", weight=0.9, tools=("agent_notes_append",), unless=("remind me",)),
    Phrase(text="what do you know about me", weight=1.2, tools=("agent_notes_read",)),
    Phrase(text="forget what you noted", weight=1.1, tools=("agent_notes_clear",)),
)

EXAMPLES = (
    *said(
        "agent_notes_read",
        """
        what do you know about me | read your notes | what have you noted down about my habits
        do you remember how I like my summaries | check your private notes first | did I ever tell you my shoe size
        what have i told you about my allergies | look in your own notes for the vet | show agent notes
        you should know this about me already, look it up | whats in ur notes
        which preferences of mine you have saved
        """,
    ),
    *said(
        "agent_notes_write",
        """
        rewrite your notes about me | replace your private notes with this list
        tidy up what you noted, keep the essentials | your notes on me are outdated, write them new
        condense your notes to five lines | set your notes to: prefers metric | overwrite agent notes
        correct your notes, I moved, everything about the old flat goes
        make your notes about my project match this summary | please to write new your notes over me
        redo the whole page you keep on me | merge the doubles in your own notes
        """,
    ),
    *said(
        "agent_notes_append",
        """
        keep in mind that I am vegetarian | remember that I prefer short answers | from now on call me Jo
        note for yourself: my sister is called Lena | for the future, I use metric units
        don't ever suggest cilantro again, I hate it | i have a nut alergy, keep this
        my work days are tuesday to friday btw | add to your notes that the car is a diesel
        you should know I'm colour blind, so avoid red green | save that for next time, I always fly from Porto
        make yourself a note that the dog is named Pixel
        """,
    ),
    *said(
        "agent_notes_clear",
        """
        forget everything you noted about me | clear your notes | delete your private notes | wipe agent notes
        i want you to start from zero with what you know of me | empty your own notes page
        erase what you remember about my preferences | throw away your notes on me
        please clean your memory notes completly | none of what you wrote about me is true any more, drop it all
        reset what you've learned about me | get rid of the notes you keep on me
        """,
    ),
)
