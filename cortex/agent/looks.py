"""Runs a tool under its time limit, and looks by it ahead of its act: what it would do, and who else will read it.

Called by `agent/execute.py`. What a look finds is for the gate and the person; no model reads it.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from cortex.agent.arguments import CheckedCall
from cortex.base.errors import CortexError, DatabaseUnavailable, ToolFailed, ToolRetry
from cortex.ports.loop import CallFacts, Readers
from cortex.toolkit.context import Ctx
from cortex.toolkit.spec import CallPreview, Output, Tool

CALL_TIMEOUT_S = 150.0

log = logging.getLogger(__name__)


async def run_tool(
    tool: Tool, ctx: Ctx, arguments: BaseModel, *, timeout_s: float = CALL_TIMEOUT_S
) -> tuple[Output, str]:
    """Call the function under a time limit; every failure becomes words the model can act on."""
    values = {name: getattr(arguments, name) for name in type(arguments).model_fields}
    try:
        async with asyncio.timeout(timeout_s):
            given = await tool.function(ctx, **values)
    except TimeoutError:
        return Output(text=f"{tool.name} took longer than {timeout_s:g} s and was stopped."), "err"
    except DatabaseUnavailable:
        raise  # the step is done again when the database is back
    except ToolRetry as error:
        return Output(text=f"{error.message} Expected: {tool.line}"), "err"
    except ToolFailed as error:
        state = "unknown" if error.is_unknown else "err"
        return Output(text=error.message, is_tainted=tool.reads_untrusted or error.is_tainted), state
    except CortexError as error:
        return Output(text=error.message, is_tainted=tool.reads_untrusted), "err"
    except Exception:  # the executor's broad except: a tool's fault must not end the turn
        log.exception("tool %s failed", tool.name)
        return Output(text=f"{tool.name} failed unexpectedly; the log has the details."), "err"
    return (given if isinstance(given, Output) else Output(text=given)), "ok"


async def preview_of(checked: CheckedCall, ctx: Ctx, timeout_s: float) -> CallPreview | None:
    """What the call would do, looked up for the person; None where its tool cannot say."""
    look = checked.tool.preview
    if look is None:
        return None
    found: list[CallPreview] = []

    async def previews(ctx: Ctx, **arguments: Any) -> str:
        found.append(await look(ctx, **arguments))
        return ""

    looking = replace(checked.tool, function=previews)
    _, state = await run_tool(looking, ctx, checked.arguments, timeout_s=timeout_s)
    return found[0] if state == "ok" else None


async def readers_of(
    facts: CallFacts, checked: CheckedCall, ctx: Ctx, timeout_s: float
) -> tuple[Readers, ...] | Output:
    """Who else will read what the call writes, where that has to be asked; what went wrong, where nobody can say.

    It has to be once the turn has read private data and words from outside: whatever is written then may carry the one
    on the say of the other, in its words, its numbers, or by being written at all.
    """
    look = checked.tool.read_by
    if look is None or not (facts.is_tainted and facts.has_read_private):
        return ()
    found: list[Sequence[Readers]] = []

    async def looks(ctx: Ctx, **arguments: Any) -> str:
        found.append(await look(ctx, **arguments))
        return ""

    looking = replace(checked.tool, function=looks, reads_untrusted=False)
    output, state = await run_tool(looking, ctx, checked.arguments, timeout_s=timeout_s)
    return tuple(dict.fromkeys(found[0])) if state == "ok" else output
