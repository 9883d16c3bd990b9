"""What was done for a message before its answer was made anew: it stands, and nobody should do it twice."""

from collections.abc import Sequence

from cortex.agent.arguments import title_of
from cortex.base.fact import FROM_OUTSIDE
from cortex.base.messages import DONE_ALREADY
from cortex.storage.calls import CallRow
from cortex.toolkit.registry import Registry

CALLS_SHOWN = 20
ARGUMENTS_CHARACTERS = 300


def changes(registry: Registry, calls: Sequence[CallRow]) -> Sequence[CallRow]:
    """Those of the calls that changed something."""
    kept = ((call, registry.get(call.name)) for call in calls)
    return [call for call, tool in kept if tool is not None and tool.effect == "write" and not tool.free]


def for_model(done: Sequence[CallRow], *, is_from_outside: bool) -> str:
    """What the model reads of them behind the message; "" for none. The arguments repeat what the turn had read."""
    if not done:
        return ""
    mark = f" {FROM_OUTSIDE}" if is_from_outside else ""
    lines = [f"- {call.name} {call.arguments[:ARGUMENTS_CHARACTERS]}{mark}" for call in done[-CALLS_SHOWN:]]
    return "\n".join([DONE_ALREADY, *lines])


def for_person(registry: Registry, done: Sequence[CallRow]) -> str:
    """The same in a line of the page."""
    titles = "; ".join(dict.fromkeys(title_of(registry, call.name, call.arguments) for call in done))
    return f"An earlier version did this already, and it was kept: {titles}."
