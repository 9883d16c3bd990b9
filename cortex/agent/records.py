"""A call as it is kept, and as its person is asked about it. Pure; called by `agent/execute.py`."""

from msgspec.structs import replace

from cortex.agent.arguments import CheckedCall, destination, digest, visible
from cortex.base.hidden import show_hidden
from cortex.base.messages import ToolCall
from cortex.ports.loop import ApprovalRequest, CallFacts, CallRecord, Readers, UndoOffer
from cortex.toolkit.context import UndoNote
from cortex.toolkit.spec import Tool

HERE = "this server"
ARGUMENTS_CHARS_MAX = 8_000
WRITTEN = "a call that the model wrote as text"


def of_call(facts: CallFacts, call: ToolCall) -> CallFacts:
    """The facts of exactly this call: one that was written as text came from outside, whatever was read before."""
    if not call.is_written:
        return facts
    source = facts.taint_source if facts.is_tainted else WRITTEN
    return replace(facts, is_tainted=True, is_written=True, taint_source=source)


def asks(facts: CallFacts, checked: CheckedCall, readers: tuple[Readers, ...]) -> bool:
    """Tell whether the person has to be asked before this call, where nothing was allowed beforehand."""
    return bool(readers) or _asks_by_itself(facts, checked)


def _asks_by_itself(facts: CallFacts, checked: CheckedCall) -> bool:
    """Tell whether this call would ask wherever it writes."""
    tool = checked.tool
    is_told_to = tool.confirm or tool.name in facts.asks_first
    changes = not tool.free and (tool.effect == "write" or checked.sends_out)
    is_doubtful = facts.is_tainted and (checked.risk == "medium" or (facts.is_written and changes))
    return is_told_to or checked.risk == "high" or is_doubtful


def request_of(
    facts: CallFacts, checked: CheckedCall, record: CallRecord, readers: tuple[Readers, ...]
) -> ApprovalRequest:
    """Return what the card says: what it does, where to, the whole of it, because of what."""
    tool = checked.tool
    read = f": {facts.taint_title}" if facts.taint_title else ""
    because = "others will read this, and " if readers else ""
    holds = "private data and external content" if readers else "external content"
    why = f"Asked because {because}this conversation contains {holds}{read}" if facts.is_tainted else ""
    if facts.is_written:
        why = "Asked because the model wrote this call as text, which may repeat words from outside"
    return ApprovalRequest(
        tool=tool.name,
        verb=record.title,
        destination=destination(checked) or show_hidden("; ".join(one.words for one in readers)) or HERE,
        detail=record.shown or visible(checked),
        why=why,
        risk=checked.risk,
        readers=readers,
        is_grantable=not _asks_by_itself(facts, checked) if facts.is_tainted else True,
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


def offer_of(tool: Tool, note: UndoNote) -> UndoOffer:
    """Return what the card's button will take back."""
    return UndoOffer(
        category=tool.category, target=note.target, before=note.before, expected=note.expected, label=note.label
    )
