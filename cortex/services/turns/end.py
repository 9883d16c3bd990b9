"""Ends turns: in order (`close`), by the user (`stop`), or by force (`interrupt`). One transaction each.

Whoever ends a turn first has ended it: the state moves, ahead of all else, only from a living one.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from cortex.agent.plain import WITHOUT_MODEL
from cortex.agent.refusals import EXPIRED, as_changed
from cortex.base.attachments import words_of_unread
from cortex.base.events import OpenPart
from cortex.base.ids import changed_id, derived_id
from cortex.base.messages import Message, ToolCall, ToolResult, assistant, results, user
from cortex.base.model import page_of
from cortex.base.turn import Outcome, Turn, parent_of
from cortex.ports.steps import step
from cortex.ports.stored_names import StepName
from cortex.selection.types import META
from cortex.services.runtime import Runtime
from cortex.services.turns.answer_writer import Row
from cortex.services.turns.approval_log import answer_payload
from cortex.services.turns.done_before import done_so_far, ending_of
from cortex.services.turns.lacking import lacking_rows
from cortex.services.turns.set_aside import given_call, go_on
from cortex.services.turns.tool_outcomes import lesson, record_case
from cortex.storage.approvals import ApprovalRow, ApprovalsRepository
from cortex.storage.calls import CallRow, CallsRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Opener
from cortex.storage.messages import MessagesRepository, is_from_outside
from cortex.storage.plans import PlanRow, PlansRepository
from cortex.storage.rounds import RoundsRepository
from cortex.storage.turns import TurnRow, TurnsRepository

STOPPED = "(stopped by the user)"
BROKEN_OFF = "(broken off before it was done)"
UNKNOWN = "Stopped before it ended: it may or may not have happened."
NOT_RUN = "Stopped before it began: not run."
WAITS = (
    "Not run yet: it still waits for the person's approval. If they allow it later, it runs then, and its result comes "
    "in a turn of its own. Do not call it again meanwhile."
)
WAITED = "(waiting for approval; the conversation goes on meanwhile)"
DENIED = "The user denied this call. Do not try it again."
PUT_OFF = "Not run: the turn was set aside for another message ahead of it. Call it again where it is still needed."
NOT_BEGUN = "(not answered: this turn could not begin)"
FAILED = "(broken off by a fault inside Cortex)"

Written = Callable[[Opener, TurnRow], Awaitable[str]]


class TurnEnd(Struct, frozen=True, kw_only=True):
    """The ways a turn ends. Each gives back the id of the queued turn to start next, or "".

    `of_agent`: called with the turn of a background agent as it ended; what it writes stands with the end, or neither.
    It gives the id of a turn of another conversation to start now, or "". `after_commit`: called with the id of each
    turn that ended in this process; nobody calls it again later. `after_done`: likewise, with each that was answered.
    """

    runtime: Runtime
    of_agent: Written | None = None
    after_commit: Sequence[Callable[[str], None]] = ()
    after_done: Sequence[Callable[[Turn], None]] = ()

    @step(StepName.CLOSE)
    async def end_turn(self, turn: Turn, outcome: Outcome) -> str:
        """The loop came to its end: keep its messages, say how it ended, name the conversation."""
        async with self.runtime.transaction_then_notify(turn.user_id, turn.conversation_id) as repository:
            error = outcome.text if outcome.state == "failed" else ""
            row = await repository(TurnsRepository).move(turn.id, outcome.state, rounds=outcome.rounds, error=error)
            if row is None:
                return ""
            await self._keep(repository, row, outcome.messages)
            if not outcome.messages:  # a fault took the loop and its messages: what was stored has to do
                await self._mend(repository, row, "", FAILED)
            plans = await repository(PlansRepository).of_turn(row.id)
            calls = await repository(CallsRepository).of_turn(row.id)
            rows = await lacking_rows(repository, row, outcome, plans) if outcome.state == "done" else []
            rows += await self._closing_rows(repository, row, outcome.rounds, plans, calls)
            await repository(ConversationsRepository).append(turn.conversation_id, rows)
            if outcome.state == "done" and row.channel == "chat" and row.mode == "auto":
                await record_case(repository, row, lesson(plans, calls), self.runtime.settings.secret_key)
            following = await self._leave(repository, row)
        self._closed(turn.id)
        for listener in self.after_done if outcome.state == "done" else ():
            listener(turn)
        return following

    @step(StepName.REFUSE)
    async def refuse(self, user_id: str, turn_id: str, text: str) -> str:
        """It could not begin, and this is why: a file with a slip. The message stays and can be asked again."""
        known = await self.runtime.db.repository(TurnsRepository, user_id).get(turn_id)
        async with self.runtime.transaction_then_notify(user_id, known.conversation_id) as repository:
            row = await repository(TurnsRepository).move(turn_id, "failed", error=text)
            if row is None:
                return ""
            await self._mend(repository, row, "", NOT_BEGUN)
            await repository(ConversationsRepository).append(
                row.conversation_id, await self._last_rows(repository, row, 0)
            )
            following = await self._leave(repository, row)
        self._closed(turn_id)
        return following

    async def stop(self, turn: TurnRow, partial: Sequence[OpenPart]) -> str:
        """The user stopped it: the words so far stay, marked as partial; open calls end as stopped."""
        async with self.runtime.transaction_then_notify(turn.owner_id, turn.conversation_id) as repository:
            row = await repository(TurnsRepository).move(turn.id, "stopped")
            if row is None:
                return ""
            await self._mend(repository, row, "".join(part.text for part in partial if part.kind == "text"), STOPPED)
            rows = [_cut(part) for part in partial] + await self._last_rows(repository, row, row.rounds)
            await repository(ConversationsRepository).append(row.conversation_id, rows)
            following = await self._leave(repository, row)
        for part in partial:
            self.runtime.hub.end_part(part.conversation_id, part.part)
        self._closed(row.id)
        return following

    async def set_aside(self, turn: TurnRow) -> str | None:
        """End a turn that waits for its person, who went on talking; what it asks still waits. None: it waits no more.

        What was allowed ahead of another question of the same round goes on in a turn of its own at once.
        """
        async with self.runtime.transaction_then_notify(turn.owner_id, turn.conversation_id) as repository:
            await repository(TurnsRepository).hold(turn.id)
            asked = {one.call_id: one for one in await repository(ApprovalsRepository).of_turn(turn.id)}
            if not any(one.state == "asked" for one in asked.values()):
                return None  # it has been answered: it goes on by itself
            row = await repository(TurnsRepository).move(turn.id, "done", only_from=("waiting",))
            if row is None:
                return None
            await self._mend(repository, row, "", WAITED, asked)
            for one in asked.values():
                if one.state == "allowed":
                    await go_on(repository, one)
            rows = await self._last_rows(repository, row, row.rounds, is_set_aside=True)
            await repository(ConversationsRepository).append(row.conversation_id, rows)
            following = await self._leave(repository, row)
        self._closed(row.id)
        return following

    async def interrupt(self, turn: TurnRow, text: str) -> str:
        """No run will end it: say why, what had been done, and offer to go on."""
        async with self.runtime.transaction_then_notify(turn.owner_id, turn.conversation_id) as repository:
            row = await repository(TurnsRepository).move(turn.id, "interrupted", error=text)
            if row is None:
                return ""
            await self._mend(repository, row, "", BROKEN_OFF)
            why = f"{text} {done_so_far(await repository(CallsRepository).of_turn(row.id))}"
            rows: list[Row] = [("notice", {"turn": row.id, "level": "warn", "text": why}, row.id)]
            rows += await self._last_rows(repository, row, row.rounds)
            await repository(ConversationsRepository).append(row.conversation_id, rows)
            following = await self._leave(repository, row)
        self._closed(row.id)
        return following

    def _closed(self, turn_id: str) -> None:
        for listener in self.after_commit:
            listener(turn_id)

    async def _mend(
        self,
        repository: Opener,
        row: TurnRow,
        partial: str,
        note: str,
        asked: Mapping[str, ApprovalRow] = MappingProxyType({}),
    ) -> None:
        """Leave a transcript that a provider takes and that lacks nothing the user said.

        Every call has a result, the messages taken in meanwhile stand there, and an answer ends it.
        """
        kept = await repository(MessagesRepository).of_turn(row.id)
        messages = [item.message for item in kept]
        given = await given_call(repository, row)
        if not messages:
            messages.append(user(row.text, *(words_of_unread(file.name) for file in row.attachments)))
            messages += [assistant("", given)] if given else []
        last = messages[-1]
        if last.calls:
            answered = sum(message.speaker == "assistant" for message in messages)  # one answer a round
            answered -= given is not None  # it belongs to none
            messages.append(await self._results(repository, row, last, answered, asked))
        # A round stores what it took in with its answer's first row; only a turn that broke off before that lacks it.
        said = [message.said for message in messages if message.speaker == "user"]
        taken = [
            turn.text for turn in await repository(TurnsRepository).list(row.conversation_id) if turn.taken_by == row.id
        ]
        messages += [user(text) for text in taken if text not in said]
        if messages[-1].speaker != "assistant":
            messages.append(assistant(f"{partial}\n{note}".strip()))
        await self._keep(repository, row, messages)
        await repository(CallsRepository).forget_targets(row.id)

    async def _keep(self, repository: Opener, row: TurnRow, messages: Sequence[Message]) -> None:
        """The turn's messages in the transcript, each once."""
        reads = await repository(TurnsRepository).reads(row)
        each = [(message, is_from_outside(message, row.is_tainted, reads)) for message in messages]
        await repository(MessagesRepository).add_all(row, each)

    async def _results(
        self, repository: Opener, row: TurnRow, last: Message, round_number: int, asked: Mapping[str, ApprovalRow]
    ) -> Message:
        """The results of the calls that the last message made in this round, as far as they came.

        `asked`: the questions of a turn that is set aside, by call.
        """
        made = {call.id: call for call in await repository(CallsRepository).of_turn(row.id)}
        own = [derived_id(row.id, str(round_number), call.id) for call in last.calls]
        return results(*(_result_of(call, id, made, asked) for call, id in zip(last.calls, own, strict=True)))

    async def _last_rows(
        self, repository: Opener, row: TurnRow, rounds: int, *, is_set_aside: bool = False
    ) -> list[Row]:
        """The log's last words on a turn that has just ended, with what it sent and saved."""
        plans = await repository(PlansRepository).of_turn(row.id)
        calls = await repository(CallsRepository).of_turn(row.id)
        return await self._closing_rows(repository, row, rounds, plans, calls, is_set_aside=is_set_aside)

    async def _closing_rows(
        self,
        repository: Opener,
        row: TurnRow,
        rounds: int,
        plans: Sequence[PlanRow],
        calls: Sequence[CallRow],
        *,
        is_set_aside: bool = False,
    ) -> list[Row]:
        started = row.started_at or row.created_at
        rows = await self._closed_calls(repository, row, calls, is_set_aside=is_set_aside)
        if row.state == "failed" and row.error:
            failed = [
                each.model for each in await repository(RoundsRepository).of_turn(row.id) if each.state == "failed"
            ]
            page = page_of(failed[-1] if failed else "")
            error = {"turn": row.id, "text": row.error, "kind": "model", "can_retry": True, "page": page}
            rows.append(("error", error, row.id))
        first = plans[0].receipt if plans else {}
        rows.append(
            (
                "turn.end",
                {
                    "turn": row.id,
                    "state": row.state,
                    "rounds": rounds or sum(WITHOUT_MODEL not in plan.receipt.get("labels", {}) for plan in plans),
                    "seconds": round((self.runtime.clock() - started).total_seconds(), 1),
                    "tools_sent": len(carried(plans)),
                    "tools_total": first.get("total", 0),
                    "tokens_sent": sum(plan.receipt.get("tokens", 0) for plan in plans),
                    "tokens_saved": await self._saved(repository, row, plans),
                    "can_continue": row.state in ("out_of_rounds", "interrupted"),
                    **({"is_set_aside": True} if is_set_aside else {}),
                },
                row.id,
            )
        )
        return rows

    async def _saved(self, repository: Opener, row: TurnRow, plans: Sequence[PlanRow]) -> int:
        """Tokens of tools that the model calls were spared; a failed call and a model without tools saved nothing."""
        if row.state not in ("done", "out_of_rounds") or not any(plan.receipt.get("saved") for plan in plans):
            return 0
        rounds = await repository(RoundsRepository).of_turn(row.id)
        answered = {each.round for each in rounds if each.state == "answered"}
        counted = [plan.receipt for plan in plans if plan.round in answered and not plan.receipt.get("no_tools")]
        return sum(receipt.get("saved", 0) for receipt in counted)

    async def _closed_calls(
        self, repository: Opener, row: TurnRow, calls: Sequence[CallRow], *, is_set_aside: bool
    ) -> list[Row]:
        """Close what of this turn nobody answered, and say of each call without an ending what became of it.

        A late yes has nothing left to allow, but where the turn is set aside: there what is asked goes on waiting.
        """
        asked = [one for one in await repository(ApprovalsRepository).of_turn(row.id) if one.state == "asked"]
        waiting = {one.call_id for one in asked} if is_set_aside else set()
        closed = [] if is_set_aside else [one for one in asked if await repository(ApprovalsRepository).expire(one.id)]
        endings = [ending for call in calls if call.id not in waiting and (ending := ending_of(call))]
        return [
            *(("approval", answer_payload(one, "expired"), row.id) for one in closed),
            *endings,
        ]

    async def _leave(self, repository: Opener, ended: TurnRow) -> str:
        """Let go of what it had set aside, write what goes with its end; the turn to start next, or ""."""
        await repository(RoundsRepository).release(ended.id)
        elsewhere = await self.of_agent(repository, ended) if self.of_agent and parent_of(ended.id) else ""
        waiting = await repository(TurnsRepository).queued(ended.conversation_id)
        return waiting[0].id if waiting else elsewhere


def carried(plans: Sequence[PlanRow]) -> set[str]:
    """Names of the tools that a turn's requests declared or told of; meta tools count as tokens, never as a tool."""
    named = (tool for plan in plans for key in ("sent", "noted") for tool in plan.receipt.get(key, ()))
    return {tool["name"] for tool in named if tool["category"] != META}


def _result_of(call: ToolCall, id: str, made: Mapping[str, CallRow], asked: Mapping[str, ApprovalRow]) -> ToolResult:
    """The result that the model reads of a call, or of the one put in its place, when its turn ended first."""
    changed = made.get(changed_id(id))
    if changed is None:
        return _as_result(call, made.get(id), _not_run(asked, id))
    result = _as_result(call, changed, _not_run(asked, changed.id))
    return replace(result, text=as_changed(changed.arguments, result.text))


def _not_run(asked: Mapping[str, ApprovalRow], call_id: str) -> str:
    """Why a call that did not begin will not run in this turn."""
    if not asked:
        return NOT_RUN
    row = asked.get(call_id)
    if row is None:
        return PUT_OFF
    return WAITS if row.state in ("asked", "allowed") else DENIED if row.state == "denied" else EXPIRED


def _as_result(call: ToolCall, made: CallRow | None, not_run: str) -> ToolResult:
    if made is None or made.state == "decided":
        return ToolResult(call_id=call.id, name=call.name, text=not_run, is_error=True)
    if made.state == "intended":
        return ToolResult(call_id=call.id, name=call.name, text=UNKNOWN, is_error=True)
    return ToolResult(call_id=call.id, name=call.name, text=made.text, is_error=made.is_error, tainted=made.is_tainted)


def _cut(part: OpenPart) -> Row:
    """The end of a part that was cut by a stop."""
    payload = {
        "turn": part.turn_id,
        "round": 0,
        "part": part.part,
        "kind": part.kind,
        "text": part.text,
        "attempt": part.attempt,
        "is_partial": True,
    }
    return "part.end", payload, part.turn_id
