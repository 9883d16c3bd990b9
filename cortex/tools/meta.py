"""The way to tools that were not sent: find one, and call it. The executor unwraps `tool_call` before it gets here."""

from typing import Any

from cortex.base.errors import ToolFailed
from cortex.ports.system import Discovery
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.spec import Output

SUMMARY = "find tools that are not shown yet, and call them"
PREFIXES = ("tools_", "tool_")
NEEDS = ("Discovery",)
TESTED = "the real registry"


@tool(words="Look for a tool: {query}", effect="read", free=True)
async def tools_discover(ctx: Ctx, query: str) -> Output:
    """Find a tool you need but were not given.

    Args:
        query: What it should do, in a few words.
    """
    if not query.strip():
        raise ToolFailed("Say in a few words what the tool should do.")
    found = await ctx.use(Discovery).discover(ctx.turn_id, query)
    return Output(text=found.text, found=found.names, is_tainted=found.is_tainted)


@tool(words="Use {name}", effect="write", free=True)
async def tool_call(ctx: Ctx, name: str, arguments: dict[str, Any]) -> str:
    """Call a tool that tools_discover or the list has named.

    Args:
        name: The tool's name.
        arguments: Its arguments, as its schema says.
    """
    raise ToolFailed(f"No tool {name!r} can be called here. Look for one with tools_discover.")
