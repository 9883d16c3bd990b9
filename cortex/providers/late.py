"""Tools that came after the prefix was cached, told on a wire that can declare them late without touching it.

Used by `pydantic.py`; which models do it by themselves stands in `selection/late_tools.py`.
"""

import hashlib
from typing import Literal

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ToolAvailabilityDeltaPart,
    ToolCallPart,
    ToolReturnPart,
    ToolSearchReturnPart,
)

from cortex.base.messages import Reveal
from cortex.ports.loop import Request

# Anthropic: late tools stand in `tools` behind `defer_loading`, outside of what is cached, and a `tool_reference` in
# the history brings the schema: in the result of a search; else `by_reference` in a `tool_addition` of the system's
# (newer models) or `by_exchange` in a search written into the history. OpenAI's Responses: `with_definitions`, the
# schema itself travels in the history.
Late = Literal["none", "by_reference", "by_exchange", "with_definitions"]
SEARCH = "tools_discover"


def places(request: Request, late: Late) -> dict[int, tuple[str, ...]]:
    """Index of a message -> the late tools that it reveals; the last message counts that names a tool.

    A late tool that no message reveals (its message was cut off) is in none of them and has to be declared plainly.
    """
    if late == "none" or not request.late_from:
        return {}
    opening, came = request.tools[: request.late_from], {tool.name for tool in request.tools[request.late_from :]}
    if late == "by_exchange" and all(tool.name != SEARCH for tool in opening):
        return {}
    told: dict[str, int] = {}
    for at, message in enumerate(request.messages):
        for part in message.parts:
            if isinstance(part, Reveal):
                told |= dict.fromkeys((name for name in part.names if name in came), at)
    found: dict[int, tuple[str, ...]] = {}
    for name, at in told.items():
        found[at] = (*found.get(at, ()), name)
    return found


def reveal(
    sent: list[ModelMessage], asked: list[ModelRequestPart], names: tuple[str, ...], late: Late
) -> list[ModelRequestPart]:
    """The parts that go on being gathered once these tools are revealed behind `asked`."""
    if late in ("by_reference", "by_exchange"):
        for at, part in enumerate(asked):
            if isinstance(part, ToolReturnPart) and part.tool_name == SEARCH and part.outcome == "success":
                return [*asked[:at], _found(part.tool_call_id, names), *asked[at + 1 :]]
    if late == "by_exchange":
        call_id = f"late_{hashlib.sha256(' '.join(names).encode()).hexdigest()[:20]}"
        call = ToolCallPart(tool_name=SEARCH, args={"query": ", ".join(names)}, tool_call_id=call_id)
        sent += [ModelRequest(parts=asked), ModelResponse(parts=[call])]
        return [_found(call_id, names)]
    return [*asked, ToolAvailabilityDeltaPart(tools_added=list(names))]


def _found(call_id: str, names: tuple[str, ...]) -> ToolSearchReturnPart:
    content = {"discovered_tools": [{"name": name} for name in names]}
    return ToolSearchReturnPart(tool_name=SEARCH, content=content, tool_call_id=call_id)  # type: ignore[arg-type]  # our own search, under its own name
