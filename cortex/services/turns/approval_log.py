"""Approvals and calls as a conversation's log has them, and the end of questions that nobody can answer any more."""

from collections.abc import Collection
from datetime import datetime

from cortex.agent.records import HERE
from cortex.ports.loop import ApprovalRequest, CallRecord
from cortex.services.turns.answer_writer import Row
from cortex.services.turns.approval_weight import Weight
from cortex.storage.approvals import ApprovalRow, ApprovalsRepository
from cortex.storage.calls import CallsRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Opener
from cortex.storage.notices import NoticesRepository, NoticeValues
from cortex.toolkit.words import cut

GRANT_CHARS = 100
SHOWN_CHARACTERS = 20_000
NOBODY = "Nobody answered in time, so nothing was done."
CLOSED = "Its chat was deleted, or its message changed, before you answered, so nothing was done."
DENIED = "You did not allow it."
TIMER = "approvals"  # the key of the hub on which the timer of requests waits


def scope_of(destination: str, detail: str, arguments_hash: str) -> str:
    """Return what a grant is bound to: the place outside, else these very arguments, with words to know them by."""
    if destination != HERE:
        return destination
    words = " ".join(detail.split())
    return f"{words[:GRANT_CHARS]}{'…' if len(words) > GRANT_CHARS else ''} #{arguments_hash[:16]}"


def call_payload(call: CallRecord, turn_id: str, round_number: int) -> dict[str, object]:
    """The call as the log has it."""
    return {
        "turn": turn_id,
        "round": round_number,
        "call": call.id,
        "name": call.tool,
        "arguments": call.arguments,
        "title": call.title,
        "shown": cut(call.shown, SHOWN_CHARACTERS),
        "risk": call.risk,
    }


def answer_payload(row: ApprovalRow, state: str) -> dict[str, object]:
    """The approval as the log has it."""
    return {
        "turn": row.turn_id,
        "call": row.call_id,
        "approval": row.id,
        "state": state,
        "tool": row.tool,
        "verb": row.verb,
        "destination": row.destination,
        "detail": row.detail,
        "why": row.why,
        "risk": row.risk,
        "expires_at": row.expires_at.isoformat(),
    }


def notice_values(
    asked: ApprovalRow | ApprovalRequest, weight: Weight, conversation_id: str, expires_at: datetime
) -> NoticeValues:
    """Return what a request for approval notifies of.

    What weighs heavily is allowed on its card alone: whoever finds a phone may press what stands on its lock screen.
    """
    return NoticeValues(
        kind="approval",
        title=f"Needs your OK: {asked.verb}",
        text="\n".join(part for part in (asked.detail, asked.why) if part),
        path=f"/c/{conversation_id}",
        urgency="important",
        actions=("deny",) if weight == "high" else ("approve", "deny"),
        is_tainted=bool(asked.why),
        expires_at=expires_at,
    )


async def close_alone(repository: Opener, row: ApprovalRow, words: str = NOBODY) -> None:
    """Close a question whose turn has ended, if nobody has answered it: its card says so and offers to ask again."""
    if await repository(ApprovalsRepository).expire(row.id, is_alone=True):
        await repository(NoticesRepository).settle(row.id)
        await end_call(repository, row, "expired", words)


async def close_of_turns(repository: Opener, conversation_id: str, turn_ids: Collection[str]) -> None:
    """Close what these turns still ask, which are out of view or deleted now."""
    for row in await repository(ApprovalsRepository).asked_in(conversation_id):
        if row.turn_id in turn_ids:
            await close_alone(repository, row, CLOSED)


async def end_call(repository: Opener, row: ApprovalRow, state: str, words: str) -> None:
    """End the call of a question whose turn has ended, without an effect, on its card too."""
    await repository(CallsRepository).finish(row.call_id, "refused", text=words, is_error=True, is_tainted=False)
    rows: list[Row] = [
        ("approval", answer_payload(row, state), row.turn_id),
        ending_row(row.turn_id, row.call_id, row.tool, "refused", words),
    ]
    await repository(ConversationsRepository).append(row.conversation_id, rows)


def ending_row(turn_id: str, call_id: str, name: str, state: str, words: str) -> Row:
    """The end of a call that gave nothing, in words for its person."""
    payload = {"turn": turn_id, "call": call_id, "name": name, "state": state, "text": "", "words": words}
    return "tool.result", payload, turn_id
