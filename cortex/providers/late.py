"""Tools that came after the prefix was cached, told on a wire that can declare them late without touching it.

Which models do it by themselves stands in `services/models/endpoint_caches.py`.
"""

import hashlib
from collections.abc import Sequence
from typing import Literal

from cortex.base.messages import Message, Reveal, ToolCall
from cortex.ports.loop import Request

# Anthropic: late tools stand in `tools` behind `defer_loading`, outside of what is cached, and a `tool_reference` in
# the history brings the schema: in the result of a search; else `by_reference` in a `tool_addition` of the system's
# (newer models) or `by_exchange` in a search written into the history. OpenAI's Responses: `with_definitions`, the
# schema itself travels in the history.
Late = Literal["none", "by_reference", "by_exchange", "with_definitions"]
SEARCH = "tools_discover"


def places(request: Request, messages: Sequence[Message], late: Late) -> dict[int, tuple[str, ...]]:
    """Index of a message -> the late tools that it reveals; the last message counts that names a tool.

    A late tool that no message reveals (its message was cut off) is in none of them and has to be declared plainly.
    """
    if late == "none" or not request.late_from:
        return {}
    opening, came = request.tools[: request.late_from], {tool.name for tool in request.tools[request.late_from :]}
    if late == "by_exchange" and all(tool.name != SEARCH for tool in opening):
        return {}
    told: dict[str, int] = {}
    for at, message in enumerate(messages):
        for part in message.parts:
            if isinstance(part, Reveal):
                told |= dict.fromkeys((name for name in part.names if name in came), at)
    found: dict[int, tuple[str, ...]] = {}
    for name, at in told.items():
        found[at] = (*found.get(at, ()), name)
    return found


def search_for(names: Sequence[str]) -> ToolCall:
    """The search that finds these tools, written into the history of a model that is told no other way."""
    digest = hashlib.sha256(" ".join(names).encode()).hexdigest()[:20]
    return ToolCall(id=f"late_{digest}", name=SEARCH, arguments=f'{{"query":"{", ".join(names)}"}}')
