"""The log of calls: rows, cards and results of tool calls, each method one transaction. Serves `agent/execute.py`."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from cortex.agent.arguments import title_of
from cortex.agent.records import WRITTEN
from cortex.base.ids import derived_id
from cortex.base.turn import Turn
from cortex.ports.loop import CallEnding, CallFacts, CallRecord
from cortex.selection.ways import ora
from cortex.services.runtime import Runtime
from cortex.services.turns.approval_log import call_payload
from cortex.services.turns.tool_outcomes import came, was_late
from cortex.services.turns.turn_context import TurnContexts
from cortex.services.turns.typed_places import typed_places
from cortex.storage.audit import AuditRepository
from cortex.storage.calls import CallRow, CallsRepository, CallState
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.halts import HaltsRepository
from cortex.storage.home import Homes
from cortex.storage.plans import PlansRepository
from cortex.storage.turns import Reads, TurnRow, TurnsRepository
from cortex.storage.undo import UndosRepository

UNDO_HOURS = 24
SPILL_FOLDER = "results"
HALTED = "Everything was stopped by {who}: no tool runs until work is resumed."
CALLS_A_TURN = {"ora": ora.CALLS_A_TURN}


class CallLog(Struct, frozen=True, kw_only=True):
    """Implements the `CallLogPort` port over the database and the user's folder."""

    runtime: Runtime
    contexts: TurnContexts
    homes: Homes

    async def facts(self, turn: Turn, call_id: str) -> CallFacts:
        """The facts the gate decides on this call by. A tool switched off, or a rank lost, meanwhile holds at once."""
        context = await self.contexts.context_of(turn)
        async with self.runtime.db.one_view(), self.runtime.db.read_transaction(turn.user_id) as repository:
            # Without its own: left by a try that was cut.
            mine = [row for row in await repository(CallsRepository).of_turn(turn.id) if row.id != call_id]
            turns, calls, tainted = repository(TurnsRepository), repository(CallsRepository), None
            own = await turns.get(turn.id) if turn.job_id or not turn.ordinal else turn
            reads = await turns.reads(own)
            if isinstance(own, TurnRow) and own.job_id:  # it knows nothing of the runs before it
                tainted = next((row for row in reversed(mine) if row.is_tainted), None)
                typed: Sequence[str] = [own.text] if own.is_typed else []
            else:
                typed = await turns.typed(turn.conversation_id)
                if reads.outside:
                    tainted = await calls.tainted_last(turn.conversation_id, call_id)
            conversation = await repository(ConversationsRepository).get(turn.conversation_id)
            tools = await self.contexts.tools.in_force()
            halt = await repository(HaltsRepository).of(turn.user_id)
            rank = (await self.contexts.accounts.user(turn.user_id)).rank
        # The settings are the same object for as long as nothing was changed.
        if tools is not context.ground.settings or rank != context.user.rank:
            context = await self.contexts.renewed(turn)
        is_written = any(call.is_written for row in context.stored for call in row.message.calls)
        unnamed = WRITTEN if is_written else "text from outside"
        return CallFacts(
            user=context.user,
            role=turn.role,
            permitted=context.permitted,
            is_tainted=reads.outside,
            taint_source=f"what {tainted.name} brought" if tainted else unnamed,
            has_read_private=reads.private,
            typed_hosts=typed_places(typed),
            discoveries=sum(row.name == "tools_discover" for row in mine),
            same_calls=dict(Counter(f"{row.name} {row.arguments}" for row in mine)),
            now=self.runtime.clock(),
            calls_left=self._calls_left(conversation.selection_state.get("recipe", ""), mine),
            asks_first=context.ground.settings.asks_first,
            taint_title=self._title(tainted) if tainted else WRITTEN if is_written else "",
            never=conversation.never,
            halt=HALTED.format(who=halt.who) if halt else "",
        )

    def _title(self, row: CallRow) -> str:
        """Return what a call does, in words for the person."""
        return title_of(self.runtime.registry, row.name, row.arguments)

    def _calls_left(self, recipe: str, mine: Sequence[CallRow]) -> int | None:
        """Return how many business calls the recipe of the turn's last plan still allows; a refused one was none."""
        if recipe not in CALLS_A_TURN:
            return None
        tools = self.runtime.registry.tools
        made = sum(row.state != "refused" and not (row.name in tools and tools[row.name].free) for row in mine)
        return max(0, CALLS_A_TURN[recipe] - made)

    def _reads(self, call: CallRecord, ending: CallEnding) -> Reads:
        """Return what this call put before the model; a tool that is gone counts as one that reads private data."""
        tool = self.runtime.registry.get(call.tool)
        has_read = ending.state in ("ok", "err") or ending.has_looked
        is_private = has_read and (tool is None or tool.reads_private)
        return Reads(outside=ending.is_tainted, private=is_private)

    async def record(self, turn: Turn, round_number: int, call: CallRecord) -> None:
        """Note the call and show its card; a repeat is a no-op."""
        async with self.runtime.transaction_then_notify(turn.user_id, turn.conversation_id) as repository:
            plans = await repository(PlansRepository).of_turn(turn.id)
            earlier = [row for row in await repository(CallsRepository).of_turn(turn.id) if row.id != call.id]
            row = CallRow(
                id=call.id,
                turn_id=turn.id,
                conversation_id=turn.conversation_id,
                round=round_number,
                name=call.tool,
                arguments=call.arguments,
                arguments_hash=call.hash,
                risk=call.risk,
                is_rescued=was_late(plans, call.tool),
                came=came(plans, round_number, earlier, call.tool),
            )
            if await repository(CallsRepository).decided(row):
                payload = call_payload(call, turn.id, round_number)
                await repository(ConversationsRepository).append(
                    turn.conversation_id, [("tool.call", payload, turn.id)]
                )

    async def intend(self, turn: Turn, call_id: str) -> Literal["first", "again", "ended"]:
        """Note that the effect is about to happen (high risk: audited); `again` when an earlier try never ended."""
        async with self.runtime.db.transaction(turn.user_id) as repository:
            row = await repository(CallsRepository).intend(call_id)
            if row is None:
                before = await repository(CallsRepository).get(call_id)
                return "again" if before.state == "intended" else "ended"
            if row.risk == "high":  # in the same transaction: no effect without its line in the audit log
                detail = {"turn": turn.id, "call": call_id, "arguments": row.arguments_hash}
                await repository(AuditRepository).add(turn.user_id, "call.intended", row.name, detail)
            return "first"

    async def is_begun(self, turn: Turn, call_id: str) -> bool:
        """Tell whether an earlier try noted its intent and never ended."""
        row = await self.runtime.db.repository(CallsRepository, turn.user_id).get(call_id)
        return row.state == "intended"

    async def end(self, turn: Turn, call: CallRecord, ending: CallEnding) -> CallEnding:
        """Store the result once; a repeat gives the stored one back and adds nothing to the log.

        It waits for a database that is away: the effect is done, and must not be forgotten.
        """
        return await self.runtime.outages.wait_out(lambda: self._end(turn, call, ending))

    async def _end(self, turn: Turn, call: CallRecord, ending: CallEnding) -> CallEnding:
        async with self.runtime.transaction_then_notify(turn.user_id, turn.conversation_id) as repository:
            calls = repository(CallsRepository)
            is_new = await calls.finish(
                call.id,
                _STATES[ending.state],
                text=ending.text,
                is_error=ending.state != "ok",
                is_tainted=ending.is_tainted,
                ms=ending.ms,
                spill=ending.spill or None,
            )
            if not is_new:
                return _stored(await calls.get(call.id), ending)
            await repository(TurnsRepository).add_reads(turn.id, self._reads(call, ending))
            undo_id = await self._offer(repository(UndosRepository), call, ending)
            payload = {
                "turn": turn.id,
                "call": call.id,
                "name": call.tool,
                "state": ending.state,
                "text": ending.text,
                "words": ending.words,
                "ms": ending.ms,
                "undo": undo_id,
                "undo_label": ending.undo.label if ending.undo else "",
                "spill": ending.spill,
                "is_tainted": ending.is_tainted,
            }
            await repository(ConversationsRepository).append(turn.conversation_id, [("tool.result", payload, turn.id)])
        return ending

    async def _offer(self, undos: UndosRepository, call: CallRecord, ending: CallEnding) -> str:
        """The id of the undo row that this call leaves, or ""."""
        if ending.undo is None:
            return ""
        row = await undos.add(call.id, ending.undo, self.runtime.clock() + timedelta(hours=UNDO_HOURS))
        return row.id

    async def note_private(self, turn: Turn) -> None:
        """Mark the turn as one that has read private data; a repeat is a no-op."""
        async with self.runtime.db.transaction(turn.user_id) as repository:
            await repository(TurnsRepository).add_reads(turn.id, Reads(private=True))

    async def spill(self, turn: Turn, call_id: str, text: str) -> str:
        """Put a long result under the user's files; its path for file_read."""
        path = f"{SPILL_FOLDER}/{derived_id(call_id)[:12]}.txt"
        await self.homes.home_of(turn.user_id).write(f"files/{path}", text)
        return path


_STATES: dict[str, CallState] = {"ok": "done", "err": "failed", "unknown": "unknown", "refused": "refused"}
_ENDINGS: dict[str, Literal["ok", "err", "unknown", "refused"]] = {
    "done": "ok",
    "failed": "err",
    "unknown": "unknown",
    "refused": "refused",
}


def _stored(row: CallRow, ending: CallEnding) -> CallEnding:
    """The ending that stands in the call log already."""
    return replace(
        ending, text=row.text, words="", state=_ENDINGS.get(row.state, "err"), is_tainted=row.is_tainted, undo=None
    )
