"""Approvals: asks on the page, waits durably, takes the person's answer once. Also serves `agent/execute.py`."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct, field, structs
from msgspec.structs import replace

from cortex.base.errors import Conflict, NotFound, UserError
from cortex.base.ids import changed_id, derived_id
from cortex.base.turn import GIVEN, GIVEN_ROUND, LIVING, Answer, Turn
from cortex.base.user import User
from cortex.ports.loop import ApprovalRequest, CallRecord, ChangedCall
from cortex.ports.steps import step
from cortex.ports.stored_names import StepName
from cortex.services.notifier import Notifier, PageOnlyNotifier, PendingNotice
from cortex.services.runtime import Runtime
from cortex.services.turns.answer_writer import Row
from cortex.services.turns.approval_log import (
    CLOSED,
    DENIED,
    TIMER,
    answer_payload,
    call_payload,
    close_alone,
    end_call,
    notice_values,
    scope_of,
)
from cortex.services.turns.approval_weight import Weighed, weigh
from cortex.services.turns.reader_grants import GRANT_HOURS, ReaderGrants, keys_of
from cortex.services.turns.set_aside import go_on
from cortex.storage.api_tokens import ApiTokensRepository
from cortex.storage.approvals import ApprovalRow, ApprovalsRepository, GrantsRepository
from cortex.storage.approvals import GrantRow as GrantRow
from cortex.storage.calls import CallRow, CallsRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.notices import NoticesRepository
from cortex.storage.turns import TurnRow, TurnsRepository

APPROVAL_HOURS = 12
UNSEEN = timedelta(minutes=1)  # nobody has looked at it for so long: the person is notified
CHATS = ("chat", "result")
ENDED = "This turn has ended."
CHANGED = "The person changed the arguments: another call ran in its place."


AfterTurn = tuple[TurnRow, bool] | None  # the turn in which it goes on, and whether that waits behind another


async def _not_begun(row: TurnRow) -> None:
    """Leave the start to the supervisor of turns."""


class ApprovalsService(Struct, frozen=True, kw_only=True):
    """Implements the `Approvals` port, and the page's side.

    `is_watched`: whether a user has a conversation open. `begin`: starts a turn that goes on with an answer.
    """

    runtime: Runtime
    notifier: Notifier = field(default_factory=PageOnlyNotifier)
    is_watched: Callable[[str, str], bool] = lambda user_id, conversation_id: True
    begin: Callable[[TurnRow], Awaitable[None]] = _not_begun

    @property
    def reader_grants(self) -> ReaderGrants:
        """Return what may be written where others read it."""
        return ReaderGrants(db=self.runtime.db)

    async def is_asked(self, turn: Turn, call: CallRecord) -> bool:
        """Tell whether the card of this call is up already."""
        return await self.runtime.db.repository(ApprovalsRepository, turn.user_id).of_call(call.id) is not None

    async def is_asked_again(self, turn: Turn, call: CallRecord) -> bool:
        """Tell whether the turn was made to ask for this call again."""
        if not _is_given(turn, call):
            return False
        row = await self.runtime.db.repository(ApprovalsRepository, turn.user_id).continued(turn.id)
        return row is not None and row.state == "expired"

    async def granted(self, turn: Turn, call: CallRecord, request: ApprovalRequest) -> bool:
        """Tell whether the person allowed this very call while its turn was over, or a live grant covers it.

        Where outside text was read no grant counts but the one for its readers.
        """
        if await self._allowed_before(turn, call, request):
            return True
        if not request.is_grantable:
            return False
        if request.readers:
            return await self.reader_grants.cover(turn, [one.key for one in request.readers])
        scope = scope_of(request.destination, request.detail, call.hash)
        grants = self.runtime.db.repository(GrantsRepository, turn.user_id)
        return await grants.find(request.tool, scope, turn.conversation_id) is not None

    async def _allowed_before(self, turn: Turn, call: CallRecord, request: ApprovalRequest) -> bool:
        """Use up the yes that this turn goes on with: for these bytes, to this place, as shown, once, in its time."""
        if not _is_given(turn, call):
            return False
        async with self.runtime.transaction_then_notify(turn.user_id, turn.conversation_id) as repository:
            row = await repository(ApprovalsRepository).continued(turn.id)
            if row is None or row.destination != request.destination or row.arguments_hash != call.hash:
                return False
            if not {one.key for one in request.readers} <= set(row.readers.split()):  # somebody reads it by now
                return False
            if row.state == "used":  # by a try of this step that was cut
                return True
            if (row.verb, row.detail) != (request.verb, request.detail):  # by now it would do what nobody was shown
                return False
            if not await repository(ApprovalsRepository).consume(row.id, call.hash):
                return False
            told = {**answer_payload(row, "allowed"), "turn": turn.id, "call": call.id}
            await repository(ConversationsRepository).append(turn.conversation_id, [("approval", told, turn.id)])
        return True

    async def ask(self, turn: Turn, call: CallRecord, request: ApprovalRequest) -> str:
        """Put the card up; the approval's id. One row per call: a repeat shows nothing twice.

        Where no page of the conversation is open, the person is notified in the same commit; else when nobody has
        looked at it for a minute (`approval_timer.py`). Conflict, with nothing asked, when the turn was ended
        meanwhile.
        """
        may_be_seen = turn.channel in CHATS and self.is_watched(turn.user_id, turn.conversation_id)
        expires_at = self.runtime.clock() + await self._patience(turn)
        draft = None if may_be_seen else await self._draft(turn, call, request, expires_at)
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
                notify_at=self.runtime.clock() + UNSEEN if may_be_seen else None,
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
        self.runtime.hub.announce(TIMER)
        return row.id

    async def _patience(self, turn: Turn) -> timedelta:
        """Return how long the person has: a program that waits for it says so itself, by its token."""
        if turn.channel == "api":
            token = await self.runtime.db.repository(ApiTokensRepository, turn.user_id).of_turn(turn.id)
            if token is None or token.wait_s:
                return timedelta(seconds=token.wait_s if token is not None else 0)
        return timedelta(hours=APPROVAL_HOURS)

    def weigh(self, row: ApprovalRow) -> Weighed:
        """Weigh a question by what its deed does."""
        return weigh(self.runtime.registry, row)

    def _choices(self, row: ApprovalRow, *, is_job: bool) -> dict[str, object]:
        """Return which answers the card offers beside yes and no, and what the question weighs."""
        tool = self.runtime.registry.get(row.tool)
        has_fields = tool is not None and bool(tool.full.parameters.get("properties"))
        is_for_job = is_job and bool(row.readers)
        offers = {"can_be_granted": self._can_be_granted(row), "can_be_changed": has_fields, "is_for_job": is_for_job}
        return {**offers, **structs.asdict(self.weigh(row))}

    def _can_be_granted(self, row: ApprovalRow) -> bool:
        """Tell whether a grant could hold: not where outside text was read, nor for a tool that itself brings some.

        Where it is asked because of who reads it, for those readers.
        """
        tool = self.runtime.registry.get(row.tool)
        if row.readers:
            return tool is not None and row.risk == "low" and not tool.confirm
        return not row.why and tool is not None and not tool.reads_untrusted

    async def _draft(
        self, turn: Turn, call: CallRecord, request: ApprovalRequest, expires_at: datetime
    ) -> PendingNotice:
        weight = weigh(self.runtime.registry, request).weight
        values = notice_values(request, weight, turn.conversation_id, expires_at)
        return await self.notifier.draft(turn.user_id, f"approval:{call.id}", values)

    async def seen(self, user: User, approval_id: str) -> None:
        """A page in front of the person shows it now; of one that is over nothing happens. NotFound for another's."""
        approvals = self.runtime.db.repository(ApprovalsRepository, user.id)
        await approvals.get(approval_id)
        await approvals.seen(approval_id, self.runtime.clock() + UNSEEN)

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
        """Return what the person put in place of this call; NotFound where they did not."""
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
            destination=row.destination,
            readers=tuple(row.readers.split()),
        )

    @step(StepName.SETTLE)
    async def settle(self, turn: Turn, approval_id: str, heard: Answer) -> Answer:
        """After the wait: the turn runs again, and an unanswered card expires on the page.

        The answer that counts is the row's: one that was given in the last moment is not lost. Conflict when the turn
        was ended meanwhile: it neither wakes nor acts on an answer.
        """
        async with self.runtime.transaction_then_notify(turn.user_id, turn.conversation_id) as repository:
            is_expired = heard == "expired" and await repository(ApprovalsRepository).expire(approval_id)
            asked = await repository(ApprovalsRepository).asked_in(turn.conversation_id)
            still = any(one.turn_id == turn.id for one in asked)  # another call of the same round
            if await repository(TurnsRepository).move(turn.id, "waiting" if still else "running") is None:
                raise Conflict(ENDED)
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
        """Return what waits for this user's word, oldest first."""
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
        after: AfterTurn = None
        async with self.runtime.transaction_then_notify(user.id, waiting.conversation_id) as repository:
            turn = await repository(TurnsRepository).hold(waiting.turn_id)
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
            if turn.state in LIVING:
                told = answer_payload(row, state)
                await repository(ConversationsRepository).append(row.conversation_id, [("approval", told, row.turn_id)])
            elif state == "denied":
                await end_call(repository, row, state, DENIED)
            else:
                after = await go_on(repository, row)
        await self._answered(user, row, after)

    async def ask_again(self, user: User, approval_id: str) -> str:
        """Ask for the same call anew, in a turn of its own; the conversation. Conflict where that cannot be.

        Nothing of the first question counts: the gate looks at the call as it does at a new one.
        """
        waiting = await self.runtime.db.repository(ApprovalsRepository, user.id).get(approval_id)
        if self.runtime.registry.get(waiting.tool) is None:
            raise Conflict("This tool no longer exists, so it cannot be asked for again.")
        async with self.runtime.transaction_then_notify(user.id, waiting.conversation_id) as repository:
            turn = await repository(TurnsRepository).hold(waiting.turn_id)
            row = await repository(ApprovalsRepository).get(approval_id)
            if row.state != "expired":
                raise Conflict("This request does not need to be asked again: it still waits, or it was answered.")
            if turn.is_dropped:
                raise Conflict("Another version of this message is shown. Switch to this one first.")
            after = await go_on(repository, row, is_again=True)
        await self._answered(user, row, after)
        return row.conversation_id

    async def close_all_of(self, user_id: str, conversation_id: str) -> None:
        """Close what a deleted conversation still asks; once it is restored it can be asked again."""
        async with self.runtime.transaction_then_notify(user_id, conversation_id) as repository:
            for row in await repository(ApprovalsRepository).asked_in(conversation_id):
                await close_alone(repository, row, CLOSED)

    async def _answered(self, user: User, row: ApprovalRow, after: AfterTurn) -> None:
        """After the commit: whoever waits hears of it. If this process dies first, `TurnQueue.look_after` does it."""
        self.notifier.wake(user.id)
        if after is None:
            await self._signal(row)
        elif not after[1]:
            await self.begin(after[0])

    async def change(self, user: User, approval_id: str, record: CallRecord, request: ApprovalRequest) -> None:
        """Put another call in the place of the one that asks, and allow it, once. `record`: under `changed_id`.

        All of it is one commit: the question is answered for good, and the new call has its row, its card and an
        approval bound to its own arguments. Conflict when the question was answered before or came too late.
        """
        waiting = await self.runtime.db.repository(ApprovalsRepository, user.id).get(approval_id)
        after: AfterTurn = None
        async with self.runtime.transaction_then_notify(user.id, waiting.conversation_id) as repository:
            approvals, calls = repository(ApprovalsRepository), repository(CallsRepository)
            turn = await repository(TurnsRepository).hold(waiting.turn_id)
            row = await approvals.answer(approval_id, "changed", user.id)
            asked = await calls.get(row.call_id)
            await calls.finish(asked.id, "refused", text=CHANGED, is_error=True, is_tainted=False)
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
            made = await approvals.answer(made.id, "allowed", user.id)
            await repository(NoticesRepository).settle(approval_id)
            card = call_payload(record, row.turn_id, asked.round)
            rows: list[Row] = [
                ("approval", answer_payload(row, "changed"), row.turn_id),
                ("tool.call", {**card, "instead_of": asked.id}, row.turn_id),
            ]
            await repository(ConversationsRepository).append(row.conversation_id, rows)
            if turn.state not in LIVING:
                after = await go_on(repository, made)
        await self._answered(user, row, after)

    async def signal_again(self, turn: TurnRow) -> None:
        """Send on what was answered: the process that took the answer may have died before it did. Heard once."""
        for row in await self.runtime.db.repository(ApprovalsRepository, turn.owner_id).of_turn(turn.id):
            if row.state in ("allowed", "changed", "denied"):
                await self._signal(row)

    async def _signal(self, row: ApprovalRow) -> None:
        await self.runtime.signals.signal(row.turn_id, f"approval:{row.id}", row.state)

    async def grants(self, user: User) -> Sequence[GrantRow]:
        """Return what the user allowed beyond a single call and is still in force, the newest first."""
        return await self.runtime.db.repository(GrantsRepository, user.id).list()

    async def revoke(self, user: User, grant_id: str) -> None:
        """Take a standing yes back; NotFound when it is absent or another user's."""
        await self.runtime.db.repository(GrantsRepository, user.id).revoke(grant_id)


def _is_given(turn: Turn, call: CallRecord) -> bool:
    """Tell whether the turn begins with this call."""
    return turn.given is not None and call.id == derived_id(turn.id, str(GIVEN_ROUND), GIVEN)


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
