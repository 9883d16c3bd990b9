"""Says what a turn had done when it was cut off, or before its answer was made anew: to its person, and to the model.

Counted from its calls, never assumed; what was done stands, and nobody should do it twice.
"""

from collections import Counter
from collections.abc import Sequence

from cortex.agent.arguments import title_of
from cortex.base.fact import FROM_OUTSIDE
from cortex.base.messages import DONE_ALREADY
from cortex.services.turns.answer_writer import Row
from cortex.services.turns.approval_log import ending_row
from cortex.storage.calls import CallRow, CallState
from cortex.toolkit.registry import Registry

CALLS_SHOWN = 20
ARGUMENTS_CHARACTERS = 300
NO_CALL = "It had used no tool."
CHECK = "Check before you repeat it."
NOT_BEGUN = "The answer ended before this began, so it was not done."
IN_DOUBT = "The answer ended while this ran: it may or may not have happened."

_UNSURE = "with unknown outcome"
_WORDS: dict[CallState, str] = {
    "done": "done",
    "failed": "failed",
    "unknown": _UNSURE,
    "intended": _UNSURE,
    "decided": "not run",
    "refused": "not run",
}


def done_so_far(calls: Sequence[CallRow]) -> str:
    """The sentences about all calls of a turn that nobody goes on with."""
    if not calls:
        return NO_CALL
    counts = Counter(_WORDS[call.state] for call in calls)
    parts = [f"{counts[words]} {words}" for words in dict.fromkeys(_WORDS.values()) if counts[words]]
    total = f"{len(calls)} tool call{'s' if len(calls) > 1 else ''}"
    return f"{total}: {', '.join(parts)}.{f' {CHECK}' if counts[_UNSURE] else ''}"


def ending_of(call: CallRow) -> Row | None:
    """Return what the log says of a call whose turn ended first; None for one that has its own ending."""
    match call.state:
        case "intended":
            return ending_row(call.turn_id, call.id, call.name, "unknown", IN_DOUBT)
        case "decided":
            return ending_row(call.turn_id, call.id, call.name, "refused", NOT_BEGUN)
    return None


def changes(registry: Registry, calls: Sequence[CallRow]) -> Sequence[CallRow]:
    """Those of the calls that changed something."""
    kept = ((call, registry.get(call.name)) for call in calls)
    return [call for call, tool in kept if tool is not None and tool.effect == "write" and not tool.free]


def for_model(done: Sequence[CallRow], *, is_from_outside: bool) -> str:
    """Write what the model reads behind the message; "" for none. The arguments repeat what the turn had read."""
    if not done:
        return ""
    mark = f" {FROM_OUTSIDE}" if is_from_outside else ""
    lines = [f"- {call.name} {call.arguments[:ARGUMENTS_CHARACTERS]}{mark}" for call in done[-CALLS_SHOWN:]]
    return "\n".join([DONE_ALREADY, *lines])


def for_person(registry: Registry, done: Sequence[CallRow]) -> str:
    """The same in a line of the page."""
    titles = "; ".join(dict.fromkeys(title_of(registry, call.name, call.arguments) for call in done))
    return f"An earlier version did this already, and it was kept: {titles}."
