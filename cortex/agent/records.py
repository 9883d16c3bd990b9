"""A call as it is kept, and as its person is asked about it. Pure; called by `agent/execute.py`."""

from cortex.agent.arguments import CheckedCall, destination, digest, visible
from cortex.base.hidden import show_hidden
from cortex.base.messages import ToolCall
from cortex.ports.loop import ApprovalRequest, CallFacts, CallRecord

HERE = "this server"
ARGUMENTS_CHARS_MAX = 8_000


def question(facts: CallFacts, checked: CheckedCall, record: CallRecord) -> ApprovalRequest | None:
    """What to ask the person before this call, or None when nothing need be asked."""
    tool = checked.tool
    is_told_to = tool.confirm or tool.name in facts.asks_first
    asks = is_told_to or checked.risk == "high" or (checked.risk == "medium" and facts.is_tainted)
    return request_of(facts, checked, record) if asks else None


def request_of(facts: CallFacts, checked: CheckedCall, record: CallRecord) -> ApprovalRequest:
    """What the card says: what it does, where to, the whole of it, because of what."""
    tool = checked.tool
    read = f": {facts.taint_title}" if facts.taint_title else ""
    why = f"Asked because this conversation contains external content{read}" if facts.is_tainted else ""
    return ApprovalRequest(
        tool=tool.name,
        verb=record.title,
        destination=destination(checked) or HERE,
        detail=record.shown or visible(checked),
        why=why,
        risk=checked.risk,
    )


def record_of(call_id: str, call: ToolCall, checked: CheckedCall, words: str = "") -> CallRecord:
    """The row of a checked call."""
    return CallRecord(
        id=call_id,
        wire_id=call.id,
        tool=checked.tool.name,
        arguments=checked.canonical,
        hash=digest(checked.tool.name, checked.canonical),
        risk=checked.risk,
        title=words,
    )


def unchecked_record(call_id: str, call: ToolCall) -> CallRecord:
    """The row of a call that names no tool, or has wrong arguments."""
    return CallRecord(
        id=call_id,
        wire_id=call.id,
        tool=call.name[:80],
        arguments=call.arguments[:ARGUMENTS_CHARS_MAX],
        hash="",
        risk="low",
        title=show_hidden(call.name[:80]).replace("_", " ").capitalize(),
    )
