"""Looks ahead of a call's act: what it would do, and who else will read it.

Called by `agent/execute.py`, whose `run_tool` is handed in. What a look finds is for the gate and the person; no model
reads it.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from msgspec.structs import replace
from pydantic import BaseModel

from cortex.agent.arguments import CheckedCall
from cortex.ports.loop import CallFacts, Readers
from cortex.toolkit.context import Ctx
from cortex.toolkit.spec import CallPreview, Output, Tool

Run = Callable[[Tool, Ctx, BaseModel], Awaitable[tuple[Output, str]]]


async def preview_of(checked: CheckedCall, ctx: Ctx, run: Run) -> CallPreview | None:
    """Return what the call would do, looked up for the person; None where its tool cannot say."""
    look = checked.tool.preview
    if look is None:
        return None
    found: list[CallPreview] = []

    async def previews(ctx: Ctx, **arguments: Any) -> str:
        found.append(await look(ctx, **arguments))
        return ""

    looking = replace(checked.tool, function=previews)
    _, state = await run(looking, ctx, checked.arguments)
    return found[0] if state == "ok" else None


async def readers_of(facts: CallFacts, checked: CheckedCall, ctx: Ctx, run: Run) -> tuple[Readers, ...] | Output:
    """Tell who else will read what the call writes, where that has to be asked; what went wrong, where nobody can say.

    It has to be once the turn has read private data and words from outside: whatever is written then may carry the one
    on the say of the other, in its words, its numbers, or by being written at all. A call that itself brings private
    data there (`Ctx.note_private`), unread by the turn, is the same.
    """
    look = checked.tool.read_by
    if look is None or not facts.is_tainted:
        return ()
    found: list[Sequence[Readers]] = []

    async def looks(ctx: Ctx, **arguments: Any) -> str:
        found.append(await look(ctx, **arguments))
        return ""

    looking = replace(checked.tool, function=looks, reads_untrusted=False)
    output, state = await run(looking, ctx, checked.arguments)
    if not (facts.has_read_private or ctx.private_looks):
        return ()
    return tuple(dict.fromkeys(found[0])) if state == "ok" else output
