"""Tools that tell something to another person of the house: whom a name means, and that they read it.

What arrives bears the sender's name. Once a turn has read private data and words from outside, each such call asks.
"""

from collections.abc import Mapping
from typing import Any

from cortex.base.errors import ToolFailed
from cortex.ports.loop import Readers
from cortex.ports.outgoing import Housemates
from cortex.toolkit.context import Ctx
from cortex.toolkit.words import short

OWN = ("", "me", "myself", "user", "the user")


async def somebody(ctx: Ctx, person: str) -> tuple[str, str]:
    """Id and name of the other person who is meant, two empty words for the user; ToolFailed for nobody known."""
    wanted = person.strip().casefold()
    if wanted in (*OWN, ctx.user.name.casefold()):
        return "", ""
    others = await ctx.use(Housemates).others()
    found = [(id, name) for id, name in others.items() if name.casefold() == wanted]
    if not found:
        there = f"Others here: {', '.join(others.values())}." if others else "Nobody else has an account here."
        raise ToolFailed(f"Nobody here is called {short(person)!r}, so nobody was told. {there}")
    return found[0]


async def read_by_them(ctx: Ctx, person: str = "", **_: Any) -> list[Readers]:
    """Name the person who is told, for the gate; nobody where that is the user."""
    for_id, name = await somebody(ctx, person)
    return [Readers(key=f"person:{for_id}", words=f"{name}, who is told")] if for_id else []


def whom(arguments: Mapping[str, Any], own: str) -> str:
    """Return how a call's title names who is told; `own`: the words for the user."""
    person = str(arguments["person"]).strip()
    return own if person.casefold() in OWN else short(person)
