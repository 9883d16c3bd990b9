"""What a turn had done when it was cut off, in a sentence for its person: counted from its calls, never assumed."""

from collections import Counter
from collections.abc import Sequence

from cortex.services.turns.answer_writer import Row
from cortex.services.turns.approval_log import ending_row
from cortex.storage.calls import CallRow, CallState

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
