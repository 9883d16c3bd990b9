"""What a turn had done when it was cut off, in a sentence for its person: counted from its calls, never assumed."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from cortex.storage.calls import CallRow, CallState

NO_CALL = "It had used no tool."
CHECK = "Check before you repeat it."
NOT_BEGUN = "The answer ended before this began, so it was not done."
IN_DOUBT = "The answer ended while this ran: it may or may not have happened."

_Kind = Literal["done", "failed", "unknown", "not run"]
_KINDS: dict[CallState, _Kind] = {
    "done": "done",
    "failed": "failed",
    "unknown": "unknown",
    "intended": "unknown",
    "decided": "not run",
    "refused": "not run",
}


def done_so_far(calls: Sequence[CallRow]) -> str:
    """The sentences about all calls of a turn that nobody goes on with."""
    if not calls:
        return NO_CALL
    counts = Counter(_KINDS[call.state] for call in calls)
    parts = [
        f"{counts['done']} done" if counts["done"] else "",
        f"{counts['failed']} failed" if counts["failed"] else "",
        f"{counts['unknown']} with unknown outcome" if counts["unknown"] else "",
        f"{counts['not run']} not run" if counts["not run"] else "",
    ]
    total = f"{len(calls)} tool call{'s' if len(calls) > 1 else ''}"
    return f"{total}: {', '.join(filter(None, parts))}.{f' {CHECK}' if counts['unknown'] else ''}"


def ending_of(call: CallRow) -> dict[str, Any] | None:
    """What the log says of a call whose turn ended first; None for one that has its own ending."""
    if call.state not in ("decided", "intended"):
        return None
    is_begun = call.state == "intended"
    return {
        "turn": call.turn_id,
        "call": call.id,
        "name": call.name,
        "state": "unknown" if is_begun else "refused",
        "text": "",
        "words": IN_DOUBT if is_begun else NOT_BEGUN,
    }
