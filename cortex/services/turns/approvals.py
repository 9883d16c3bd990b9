"""Approvals: asks on the page, waits durably, takes the person's answer once. Also serves `agent/execute.py`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from cortex.agent.records import HERE
from cortex.base.errors import Conflict, NotFound, UserError
from cortex.base.ids import changed_id
from cortex.base.turn import Answer, Turn
from cortex.base.user import User
from cortex.ports.loop import ApprovalRequest, CallRecord, ChangedCall
from cortex.ports.steps import step
from cortex.ports.stored_names import StepName
from cortex.services.notifier import Notifier, PageOnlyNotifier, PendingNotice
from cortex.services.runtime import Runtime
from cortex.services.turns.answer_writer import Row
from cortex.services.turns.reader_grants import GRANT_HOURS, ReaderGrants, keys_of
from cortex.storage.api_tokens import ApiTokensRepository
from cortex.storage.approvals import ApprovalRow, ApprovalsRepository, GrantsRepository
from cortex.storage.approvals import GrantRow as GrantRow
from cortex.storage.calls import CallRow, CallsRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.notices import NoticesRepository, NoticeValues
from cortex.storage.turns import TurnRow, TurnsRepository
from cortex.toolkit.words import cut

WATCHED_MINUTES = 5
PARKED_MINUTES = 12 * 60  # a run that nobody watches: until its person looks
CHATS = ("chat", "result")
PARKED_CHATS = 2  # of the three chat turns that go on at once for each user: one place stays free to talk
GRANT_CHARS = 100
SHOWN_CHARACTERS = 20_000
ENDED = "This turn has ended."
CHANGED = "The person changed the arguments: another call ran in its place."


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalsService:
    """Implements the `Approvals` port, and the page's side. `is_watched`: whether a user has a conversation open."""

    runtime: Runtime
    notifier: Notifier = field(default_factory=PageOnlyNotifier)
    is_watched: Callable[[str, str], bool] = lambda user_id, conversation_id: True

    @property
    def reader_grants(self) -> ReaderGrants:
        """What may be written where others read it."""
        return ReaderGrants(db=self.runtime.db)

    async def is_asked(self, turn: Turn, call: CallRecord) -> bool:
        """Whether the card of this call is up already."""
        return await self.runtime.db.repository(ApprovalsRepository, turn.user_id).of_call(call.id) is not None

    async def granted(self, turn: Turn, call: CallRecord, request: ApprovalRequest) -> bool:
        """Whether a live grant covers this call; where outside text was read, the gate asks for its readers alone."""
        if request.readers:
            return await self.reader_grants.cover(turn, [one.key for one in request.readers])
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
                readers=keys_of(request),
            )
            if is_new:
                if await repository(TurnsRepository).move(turn.id, "waiting") is None:
                    raise Conflict(ENDED)
                asked = {**answer_payload(row, "asked"), **self._choices(row, is_job=bool(turn.job_id))}
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

    def _choices(self, row: ApprovalRow, *, is_job: bool) -> dict[str, bool]:
        """Which answers the card offers beside yes and no."""
        tool = self.runtime.registry.get(row.tool)
        has_fields = tool is not None and bool(tool.full.parameters.get("properties"))
        is_for_job = is_job and bool(row.readers)
        return {"can_be_granted": self._can_be_granted(row), "can_be_changed": has_fields, "is_for_job": is_for_job}

    def _can_be_granted(self, row: ApprovalRow) -> bool:
        """Whether a grant could ever hold: not where outside text was read, nor for a tool that itself brings some.

        Where it is asked because of who reads it, for those readers.
        """
        tool = self.runtime.registry.get(row.tool)
        if row.readers:
            return tool is not None and row.risk == "low" and not tool.confirm
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
            title=f"Needs your approval: {request.verb}",
            text="\n".join(part for part in (request.detail, request.why) if part),
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

    async def changed(self, turn: Turn, call_id: str) -> ChangedCall:
        """What the person put in place of this call; NotFound where they did not."""
        async with self.runtime.db.read_transaction(turn.user_id) as repository:
            call = await repository(CallsRepository).get(changed_id(call_id))
            row = await repository(ApprovalsRepository).of_call(call.id)
        if row is None:
            raise NotFound("This approval request does not exist.")
        return ChangedCall(
            id=call.id,
            approval_id=row.id,
            tool=call.name,
            arguments=call.arguments,
            hash=row.arguments_hash,
            readers=tuple(row.readers.split()),
        )

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
        if row.state == "used":
            return "allowed"
        return row.state if row.state in ("allowed", "changed", "denied") else "expired"

    async def pending(self, user: User) -> Sequence[ApprovalRow]:
        """What waits for this user's word, oldest first."""
        return await self.runtime.db.repository(ApprovalsRepository, user.id).pending()

    async def answer(self, user: User, approval_id: str, choice: str) -> None:
        """The person's answer: once | conversation | deny. Conflict when it was answered before or came too late.

        `conversation` also allows the same again in this conversation, up to 12 hours: this tool to this
        destination or, where nothing leaves, exactly this call; where others read it, whatever is written for them
        (`reader_grants.py`). UserError where the turn read words from outside, and it is not asked for readers' sake.
        """
        if choice not in ("once", "conversation", "deny"):
            raise UserError(f"Choose once, conversation or deny, not {choice!r}.")
        state: Literal["allowed", "denied"] = "denied" if choice == "deny" else "allowed"
        waiting = await self.runtime.db.repository(ApprovalsRepository, user.id).get(approval_id)
        if choice == "conversation" and not self._can_be_granted(waiting):
            raise UserError("This conversation or call contains external content, so each call needs approval.")
        async with self.runtime.transaction_then_notify(user.id, waiting.conversation_id) as repository:
            row = await repository(ApprovalsRepository).answer(approval_id, state, user.id)
            if choice == "conversation" and row.readers:
                await self.reader_grants.settle(repository, row)
            elif choice == "conversation":
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

    async def change(self, user: User, approval_id: str, record: CallRecord, request: ApprovalRequest) -> None:
        """Put another call in the place of the one that asks, and allow it, once. `record`: under `changed_id`.

        All of it is one commit: the question is answered for good, and the new call has its row, its card and an
        approval bound to its own arguments. Conflict when the question was answered before or came too late.
        """
        waiting = await self.runtime.db.repository(ApprovalsRepository, user.id).get(approval_id)
        async with self.runtime.transaction_then_notify(user.id, waiting.conversation_id) as repository:
            approvals, calls = repository(ApprovalsRepository), repository(CallsRepository)
            row = await approvals.answer(approval_id, "changed", user.id)
            asked = await calls.get(row.call_id)
            await calls.finish(asked.id, "refused", CHANGED, is_error=True, is_tainted=False)
            await calls.decided(_in_place_of(asked, record))
            made = await approvals.ask(
                call_id=record.id,
                turn_id=row.turn_id,
                tool=request.tool,
                arguments_hash=record.hash,
                destination=request.destination,
                verb=request.verb,
                detail=request.detail,
                why=request.why,
                risk=request.risk,
                expires_at=row.expires_at,
                readers=keys_of(request),
            )
            await approvals.answer(made.id, "allowed", user.id)
            await repository(NoticesRepository).settle(approval_id)
            card = call_payload(record, row.turn_id, asked.round)
            rows: list[Row] = [
                ("approval", answer_payload(row, "changed"), row.turn_id),
                ("tool.call", {**card, "instead_of": asked.id}, row.turn_id),
            ]
            await repository(ConversationsRepository).append(row.conversation_id, rows)
        self.notifier.wake(user.id)
        await self._signal(row)

    async def signal_again(self, turn: TurnRow) -> None:
        """Send on what was answered: the process that took the answer may have died before it did. Heard once."""
        for row in await self.runtime.db.repository(ApprovalsRepository, turn.owner_id).of_turn(turn.id):
            if row.state in ("allowed", "changed", "denied"):
                await self._signal(row)

    async def _signal(self, row: ApprovalRow) -> None:
        await self.runtime.signals.signal(row.turn_id, f"approval:{row.id}", row.state)

    async def grants(self, user: User) -> Sequence[GrantRow]:
        """What the user allowed beyond a single call and is still in force, the newest first."""
        return await self.runtime.db.repository(GrantsRepository, user.id).list()

    async def revoke(self, user: User, grant_id: str) -> None:
        """Take a standing yes back; NotFound when it is absent or another user's."""
        await self.runtime.db.repository(GrantsRepository, user.id).revoke(grant_id)


def _in_place_of(asked: CallRow, record: CallRecord) -> CallRow:
    return replace(
        asked,
        id=record.id,
        name=record.tool,
        arguments=record.arguments,
        arguments_hash=record.hash,
        risk=record.risk,
        state="decided",
        text="",
        is_error=False,
    )


def scope_of(destination: str, detail: str, arguments_hash: str) -> str:
    """What a grant is bound to: the place outside, else these very arguments, with words to know them by."""
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
