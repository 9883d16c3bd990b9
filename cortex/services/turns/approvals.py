"""Approvals: asks on the page, waits durably, takes the person's answer once. Also serves `agent/execute.py`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from cortex.agent.execute import HERE
from cortex.base.errors import Conflict, UserError
from cortex.base.turn import Answer, Turn
from cortex.base.user import User
from cortex.ports.loop import ApprovalRequest, CallRecord
from cortex.ports.steps import step
from cortex.ports.stored_names import StepName
from cortex.services.notifier import Notifier, PageOnlyNotifier, PendingNotice
from cortex.services.runtime import Runtime
from cortex.storage.api_tokens import ApiTokensRepository
from cortex.storage.approvals import ApprovalRow, ApprovalsRepository, GrantsRepository
from cortex.storage.approvals import GrantRow as GrantRow
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.notices import NoticesRepository, NoticeValues
from cortex.storage.turns import TurnRow, TurnsRepository

WATCHED_MINUTES = 5
PARKED_MINUTES = 12 * 60  # a run that nobody watches: until its person looks
CHATS = ("chat", "result")
PARKED_CHATS = 2  # of the three chat turns that go on at once for each user: one place stays free to talk
GRANT_HOURS = 12
GRANT_CHARS = 100
ENDED = "This turn has ended."


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalsService:
    """Implements the `Approvals` port, and the page's side. `is_watched`: whether a user has a conversation open."""

    runtime: Runtime
    notifier: Notifier = field(default_factory=PageOnlyNotifier)
    is_watched: Callable[[str, str], bool] = lambda user_id, conversation_id: True

    async def is_asked(self, turn: Turn, call: CallRecord) -> bool:
        """Whether the card of this call is up already."""
        return await self.runtime.db.repository(ApprovalsRepository, turn.user_id).of_call(call.id) is not None

    async def granted(self, turn: Turn, call: CallRecord, request: ApprovalRequest) -> bool:
        """Whether a live grant of this conversation covers this call; the gate asks in an untainted turn only."""
        scope = scope_of(request.destination, request.detail, call.hash)
        return (
            await self.runtime.db.repository(GrantsRepository, turn.user_id).find(
                request.tool, scope, turn.conversation_id
            )
            is not None
        )

    async def ask(self, turn: Turn, call: CallRecord, request: ApprovalRequest) -> str:
        """Put the card up; the approval's id. One row per call: a repeat shows nothing twice.

        Where nobody watches, the person is notified in the same commit, and has longer to answer. Conflict, with
        nothing asked, when the turn was ended meanwhile.
        """
        is_seen = turn.channel in CHATS and self.is_watched(turn.user_id, turn.conversation_id)
        expires_at = self.runtime.clock() + await self._patience(turn, is_seen=is_seen)
        draft = None if is_seen else await self._draft(turn, call, request, expires_at)
        async with self.runtime.transaction_then_notify(turn.user_id, turn.conversation_id) as repository:
            is_new = await repository(ApprovalsRepository).of_call(call.id) is None
            row = await repository(ApprovalsRepository).ask(
                call_id=call.id,
                turn_id=turn.id,
                tool=request.tool,
                arguments_hash=call.hash,
                destination=request.destination,
                verb=request.verb,
                detail=request.detail,
                why=request.why,
                risk=request.risk,
                expires_at=expires_at,
            )
            if is_new:
                if await repository(TurnsRepository).move(turn.id, "waiting") is None:
                    raise Conflict(ENDED)
                asked = {**answer_payload(row, "asked"), "can_be_granted": self._can_be_granted(row)}
                await repository(ConversationsRepository).append(turn.conversation_id, [("approval", asked, turn.id)])
                if draft is not None:
                    await replace(draft, values=replace(draft.values, subject_id=row.id)).write(repository)
        if draft is not None:
            self.notifier.wake(turn.user_id)
        return row.id

    async def _patience(self, turn: Turn, *, is_seen: bool) -> timedelta:
        """How long the person has: a program that asks says so itself, by its token."""
        if turn.channel == "api":
            token = await self.runtime.db.repository(ApiTokensRepository, turn.user_id).of_turn(turn.id)
            return timedelta(seconds=token.wait_s if token is not None else 0)
        is_short = is_seen or await self._has_parked_enough(turn)
        return timedelta(minutes=WATCHED_MINUTES if is_short else PARKED_MINUTES)

    def _can_be_granted(self, row: ApprovalRow) -> bool:
        """Whether a grant could ever hold: not where outside text was read, nor for a tool that itself brings some."""
        tool = self.runtime.registry.get(row.tool)
        return not row.why and tool is not None and not tool.reads_untrusted

    async def _has_parked_enough(self, turn: Turn) -> bool:
        """Whether this chat turn must not wait long: others of this person do already."""
        if turn.channel not in CHATS:
            return False
        return (
            await self.runtime.db.repository(ApprovalsRepository, turn.user_id).others_waiting(turn.id, CHATS)
            >= PARKED_CHATS
        )

    async def _draft(
        self, turn: Turn, call: CallRecord, request: ApprovalRequest, expires_at: datetime
    ) -> PendingNotice:
        values = NoticeValues(
            kind="approval",
            title=f"{request.verb}?",
            text=f"{request.tool} needs your approval. {request.detail} {request.why}".strip(),
            path=f"/c/{turn.conversation_id}",
            urgency="high",
            actions=("approve", "deny"),
            is_tainted=bool(request.why),
            expires_at=expires_at,
        )
        return await self.notifier.draft(turn.user_id, f"approval:{call.id}", values)

    async def wait_for_answer(self, turn: Turn, approval_id: str) -> Answer:
        """The answer, or expired; a durable wait, so a restart goes on waiting, to the end that was first given."""
        approvals = self.runtime.db.repository(ApprovalsRepository, turn.user_id)
        row = await self.runtime.outages.wait_out(lambda: approvals.get(approval_id))
        left_s = max((row.expires_at - self.runtime.clock()).total_seconds(), 0.0)
        value = await self.runtime.signals.wait_for_signal(f"approval:{approval_id}", left_s)
        if value in ("allowed", "denied"):
            return "allowed" if value == "allowed" else "denied"
        return "expired"

    async def consume(self, turn: Turn, approval_id: str, arguments_hash: str) -> bool:
        """Use the approval up: True once, if allowed, unexpired and for exactly these arguments."""
        return await self.runtime.db.repository(ApprovalsRepository, turn.user_id).consume(approval_id, arguments_hash)

    @step(StepName.SETTLE)
    async def settle(self, turn: Turn, approval_id: str, heard: Answer) -> Answer:
        """After the wait: the turn runs again, and an unanswered card expires on the page.

        The answer that counts is the row's: one that was given in the last moment is not lost. Conflict when the turn
        was ended meanwhile: it neither wakes nor acts on an answer.
        """
        async with self.runtime.transaction_then_notify(turn.user_id, turn.conversation_id) as repository:
            if await repository(TurnsRepository).move(turn.id, "running") is None:
                raise Conflict(ENDED)
            is_expired = heard == "expired" and await repository(ApprovalsRepository).expire(approval_id)
            row = await repository(ApprovalsRepository).get(approval_id)
            if is_expired:
                await repository(NoticesRepository).settle(approval_id)
                await repository(ConversationsRepository).append(
                    turn.conversation_id, [("approval", answer_payload(row, "expired"), turn.id)]
                )
        return "allowed" if row.state in ("allowed", "used") else "denied" if row.state == "denied" else "expired"

    async def pending(self, user: User) -> Sequence[ApprovalRow]:
        """What waits for this user's word, oldest first."""
        return await self.runtime.db.repository(ApprovalsRepository, user.id).pending()

    async def answer(self, user: User, approval_id: str, choice: str) -> None:
        """The person's word: once | conversation | deny. Conflict when it was answered before or came too late.

        `conversation` also allows the same again in this conversation, up to 12 hours: this tool to this
        destination or, where nothing leaves, exactly this call. UserError where the turn read words from outside.
        """
        if choice not in ("once", "conversation", "deny"):
            raise UserError(f"Choose once, conversation or deny, not {choice!r}.")
        state: Literal["allowed", "denied"] = "denied" if choice == "deny" else "allowed"
        waiting = await self.runtime.db.repository(ApprovalsRepository, user.id).get(approval_id)
        if choice == "conversation" and not self._can_be_granted(waiting):
            raise UserError(
                "Text from outside is in this conversation, or comes with this call, so each call is asked for."
            )
        async with self.runtime.transaction_then_notify(user.id, waiting.conversation_id) as repository:
            row = await repository(ApprovalsRepository).answer(approval_id, state, user.id)
            if choice == "conversation":
                await repository(GrantsRepository).add(
                    tool=row.tool,
                    destination=scope_of(row.destination, row.detail, row.arguments_hash),
                    conversation_id=row.conversation_id,
                    expires_at=self.runtime.clock() + timedelta(hours=GRANT_HOURS),
                )
            await repository(NoticesRepository).settle(approval_id)
            await repository(ConversationsRepository).append(
                row.conversation_id, [("approval", answer_payload(row, state), row.turn_id)]
            )
        self.notifier.wake(user.id)
        await self._signal(row)  # after the commit; if this process dies in between, `signal_again` makes up for it

    async def signal_again(self, turn: TurnRow) -> None:
        """Send on what was answered: the process that took the answer may have died before it did. Heard once."""
        for row in await self.runtime.db.repository(ApprovalsRepository, turn.owner_id).of_turn(turn.id):
            if row.state in ("allowed", "denied"):
                await self._signal(row)

    async def _signal(self, row: ApprovalRow) -> None:
        await self.runtime.signals.signal(row.turn_id, f"approval:{row.id}", row.state)

    async def grants(self, user: User) -> Sequence[GrantRow]:
        """What the user allowed beyond a single call and is still in force, the newest first."""
        return await self.runtime.db.repository(GrantsRepository, user.id).list()

    async def revoke(self, user: User, grant_id: str) -> None:
        """Take a standing yes back; NotFound when it is absent or another user's."""
        await self.runtime.db.repository(GrantsRepository, user.id).revoke(grant_id)


def scope_of(destination: str, detail: str, arguments_hash: str) -> str:
    """What a grant is bound to: the place outside, else these very arguments, with words to know them by."""
    if destination != HERE:
        return destination
    words = " ".join(detail.split())
    return f"{words[:GRANT_CHARS]}{'…' if len(words) > GRANT_CHARS else ''} #{arguments_hash[:16]}"


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
