"""The one gate: decides every call from every surface, then performs it.

Kill switch -> known tool and valid arguments -> user, role, channel -> admin only -> discovery cap and loop breaker
-> taint rule -> aim -> the tool's own check -> approval -> intent -> effect -> result. What was sent to a model grants
nothing here. Any exception is a no.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from cortex.agent.arguments import CheckedCall, brief, check, destination, digest, unknown_tool, visible
from cortex.base.errors import CortexError, DatabaseUnavailable, ToolFailed, ToolRetry
from cortex.base.hidden import show_hidden
from cortex.base.ids import derived_id
from cortex.base.messages import ToolCall, ToolResult
from cortex.base.turn import Answer, Decision, Performed, Turn
from cortex.ports.loop import (
    ApprovalRequest,
    Approvals,
    CallEnding,
    CallFacts,
    CallLogPort,
    CallRecord,
    Scope,
    UndoOffer,
)
from cortex.ports.steps import step
from cortex.ports.stored_names import StepName
from cortex.toolkit.context import Ctx, UndoNote
from cortex.toolkit.registry import Registry
from cortex.toolkit.spec import Output, Tool

log = logging.getLogger(__name__)

RESULT_CHARS_MAX = 8_000
PREVIEW_CHARS = 3_000
CALL_TIMEOUT_S = 150.0
CHECK_TIMEOUT_S = 10.0
DISCOVERIES_MAX = 2
SAME_CALLS_MAX = 3
USED_UP = "The approval was not valid for this call any more: not run."
HERE = "this server"
OWN = ("me", "myself")  # the user's own address
UNKNOWN = "Interrupted: it may or may not have happened. Tell the user and ask before trying again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """Decides and performs calls over the registry, the call log and the approvals.

    The wait between the two is the engine's (`services/turns/turns.py`), durable and outside any step.
    """

    registry: Registry
    call_log: CallLogPort
    approvals: Approvals
    scope: Scope
    ticks_s: Callable[[], float]
    check_timeout_s: float = CHECK_TIMEOUT_S

    @step(StepName.DECIDE)
    async def decide(self, turn: Turn, round_number: int, call: ToolCall) -> Decision:
        """The gate's word, with the call's row and card written; never raises for a bad call."""
        call_id = derived_id(turn.id, str(round_number), call.id)
        facts = await self.call_log.facts(turn, call_id)
        checked = facts.halt or check(self.registry, facts.permitted, call)
        if isinstance(checked, str):
            return await self._refuse(turn, round_number, call, call_id, checked)
        record = _record(call_id, call, checked)
        await self.call_log.record(turn, round_number, record)
        why_not = refusal(facts, checked)
        if why_not:
            ending = CallEnding(text=why_not, state="refused")
            return await self._close(turn, call, record, checked.tool, ending)
        decision = Decision(
            call_id=call_id,
            verdict="run",
            tool=checked.tool.name,
            is_read=checked.tool.effect == "read",
            is_free=checked.tool.free,
            arguments_hash=record.hash,
        )
        request = question(facts, checked)
        if request is not None and checked.tool.aim is not None:
            # Before the person is asked, and kept: a name may mean another place by the time of the answer.
            aiming = replace(checked.tool, function=checked.tool.aim)
            aimed, state = await self._run(
                turn, aiming, self._ctx(turn, record, checked.tool, facts), checked.arguments
            )
            if state != "ok":
                ending = CallEnding(text=aimed.text, state="err", is_tainted=aimed.is_tainted)
                return await self._close(turn, call, record, checked.tool, ending)
            request = replace(request, destination=show_hidden(aimed.text))
        if request is None or (not facts.is_tainted and await self.approvals.granted(turn, record, request)):
            return decision
        cannot_run = await self._cannot_run(turn, record, facts, checked)
        if cannot_run is not None:
            return await self._close(turn, call, record, checked.tool, cannot_run)
        approval_id = await self.approvals.ask(turn, record, request)
        return Decision(
            call_id=call_id,
            verdict="ask",
            tool=checked.tool.name,
            approval_id=approval_id,
            arguments_hash=record.hash,
        )

    async def _cannot_run(
        self, turn: Turn, record: CallRecord, facts: CallFacts, checked: CheckedCall
    ) -> CallEnding | None:
        """The ending of a call that could not run if the person said yes; None when it may be asked for.

        A question that stands already, of a try that was cut, goes on standing.
        """
        tool, look = checked.tool, checked.tool.check
        if look is None or await self.approvals.is_asked(turn, record):
            return None

        async def checks(ctx: Ctx, **arguments: Any) -> str:  # as pydantic has checked them
            await look(ctx, **arguments)
            return ""

        # What is wrong with the arguments is in words of our own; a check marks what it quotes from outside.
        checking = replace(tool, function=checks, reads_untrusted=False)
        ctx = self._ctx(turn, record, tool, facts)
        said, state = await self._run(turn, checking, ctx, checked.arguments, timeout_s=self.check_timeout_s)
        if state == "ok":
            return None
        return CallEnding(text=said.text, state="refused", is_tainted=said.is_tainted, has_looked=True)

    async def _run(
        self, turn: Turn, tool: Tool, ctx: Ctx, arguments: BaseModel, *, timeout_s: float = CALL_TIMEOUT_S
    ) -> tuple[Output, str]:
        """Run a tool; where it looked at private data, the turn is marked before anybody learns what came of it."""
        ran = await run_tool(tool, ctx, arguments, timeout_s=timeout_s)
        if ctx.private_looks:
            await self.call_log.note_private(turn)
        return ran

    @step(StepName.PERFORM)
    async def perform(
        self, turn: Turn, round_number: int, call: ToolCall, decision: Decision, answer: Answer | None
    ) -> Performed:
        """Check again, note the intent, do it, store the result; at most one effect however often it is re-run."""
        if decision.result is not None:
            return Performed(result=decision.result)
        # Hours may have passed since the decision: what is permitted and what was read counts as it is now.
        facts = await self.call_log.facts(turn, decision.call_id)
        checked = facts.halt or check(self.registry, facts.permitted, call)
        if isinstance(checked, str):
            return await self._refused(turn, call, _unchecked(decision.call_id, call), checked)
        record = _record(decision.call_id, call, checked)
        why_not = still_no(facts, checked, record, decision, answer)
        if why_not:
            return await self._refused(turn, call, record, why_not)
        # Ahead of the approval: a re-run then says "it may have happened", where a used-up yes would say "not allowed".
        intent = await self.call_log.intend(turn, record.id)
        if intent == "ended" or (intent == "again" and not checked.tool.idempotent):
            return await self._end(turn, call, record, CallEnding(text=UNKNOWN, state="unknown"))
        if decision.verdict == "ask":
            is_good = await self.approvals.consume(turn, decision.approval_id, record.hash)
            if not is_good and intent == "first":  # else an earlier try may have used it up
                return await self._end(turn, call, record, CallEnding(text=USED_UP, state="refused"))
        return await self._effect(turn, call, checked, record, facts, is_again=intent == "again")

    async def _refused(self, turn: Turn, call: ToolCall, record: CallRecord, why: str) -> Performed:
        """End a call that may not run now. Where an earlier try was killed on the way, it may have happened before."""
        is_begun = await self.call_log.is_begun(turn, record.id)
        ending = CallEnding(text=UNKNOWN, state="unknown") if is_begun else CallEnding(text=why, state="refused")
        return await self._end(turn, call, record, ending)

    async def _end(self, turn: Turn, call: ToolCall, record: CallRecord, ending: CallEnding) -> Performed:
        """Store an ending that needed no effect; one that stands already is what counts."""
        stored = await self.call_log.end(turn, record, ending)
        is_error = stored.state != "ok"
        return Performed(result=_result(call, stored.text, is_error=is_error, is_tainted=stored.is_tainted))

    async def _effect(
        self,
        turn: Turn,
        call: ToolCall,
        checked: CheckedCall,
        record: CallRecord,
        facts: CallFacts,
        *,
        is_again: bool,
    ) -> Performed:
        """The effect and its result; the intent stands already."""
        tool = checked.tool
        ctx = self._ctx(turn, record, tool, facts, is_again=is_again)
        started_s = self.ticks_s()
        output, state = await self._run(turn, tool, ctx, checked.arguments)
        ending = await self._ending(turn, record, tool, ctx, output, state, self.ticks_s() - started_s)
        stored = await self.call_log.end(turn, record, ending)
        log.debug("call %s: %s ended %s after %d ms", record.id, tool.name, stored.state, stored.ms)
        result = _result(call, stored.text, is_error=stored.state != "ok", is_tainted=stored.is_tainted)
        return Performed(result=result, found=(tool.name, *output.found))

    def _ctx(self, turn: Turn, record: CallRecord, tool: Tool, facts: CallFacts, *, is_again: bool = False) -> Ctx:
        """What the tool's function is given beside its arguments."""
        return Ctx(
            user=facts.user,
            conversation_id=turn.conversation_id,
            turn_id=turn.id,
            call_id=record.id,
            role=facts.role,
            now=facts.now,
            scope=self.scope,
            is_tainted=facts.is_tainted,
            has_read_private=facts.has_read_private,
            is_again=is_again,
            is_aimed=tool.aim is not None,
        )

    async def _ending(
        self, turn: Turn, record: CallRecord, tool: Tool, ctx: Ctx, output: Output, state: str, took_s: float
    ) -> CallEnding:
        """The result as it is kept: capped with a spill file, with the offer to undo."""
        text, spill = output.text, ""
        if len(text) > RESULT_CHARS_MAX:
            spill = await self.call_log.spill(turn, record.id, text)
            shown = text[:PREVIEW_CHARS]
            text = f"{shown}\n[... {len(text)} characters in all; read on with file_read path={spill!r}]"
        note = ctx.undo_notes[-1] if ctx.undo_notes and state == "ok" else None
        return CallEnding(
            text=text,
            state="ok" if state == "ok" else "err",
            is_tainted=output.is_tainted or tool.reads_untrusted,
            spill=spill,
            ms=round(took_s * 1000),
            undo=_offer(tool, note) if note else None,
        )

    async def _refuse(self, turn: Turn, round_number: int, call: ToolCall, call_id: str, why: str) -> Decision:
        """A call that names no tool or has wrong arguments: its card says so, nothing runs."""
        record = _unchecked(call_id, call)
        await self.call_log.record(turn, round_number, record)
        return await self._close(turn, call, record, None, CallEnding(text=why, state="refused"))

    async def _close(
        self, turn: Turn, call: ToolCall, record: CallRecord, tool: Tool | None, ending: CallEnding
    ) -> Decision:
        """End a call that will not run."""
        ending = await self.call_log.end(turn, record, ending)
        return Decision(
            call_id=record.id,
            verdict="refuse",
            tool=tool.name if tool else "",
            is_free=tool is not None and tool.free,
            result=_result(call, ending.text, is_error=True, is_tainted=ending.is_tainted),
        )


def _offer(tool: Tool, note: UndoNote) -> UndoOffer:
    """What the card's button will take back."""
    return UndoOffer(
        category=tool.category, target=note.target, before=note.before, expected=note.expected, label=note.label
    )


def refusal(facts: CallFacts, checked: CheckedCall) -> str:
    """Why this call is refused outright, or "": admin only, discovery cap, loop breaker, calls used up, taint."""
    tool = checked.tool
    if tool.admin and not facts.user.is_admin:
        return unknown_tool(checked.asked_name)
    if tool.free and tool.name == "tools_discover" and facts.discoveries >= DISCOVERIES_MAX:
        return f"{DISCOVERIES_MAX} searches for tools are enough for one message; work with what was found."
    if facts.same_calls.get(f"{tool.name} {checked.canonical}", 0) >= SAME_CALLS_MAX - 1 and not tool.free:
        return "This exact call was made before in this turn; its result stands above. Do something else or answer."
    if facts.calls_left == 0 and not tool.free:
        return "This way of choosing tools allows no further call in this message. Answer with what is known."
    return taint_refusal(facts, checked)


def still_no(
    facts: CallFacts, checked: CheckedCall, record: CallRecord, decision: Decision, answer: Answer | None
) -> str:
    """Why the call may not run after all, or "": other bytes, no yes, or the taint rule as things stand now."""
    if record.hash != decision.arguments_hash:
        return "The arguments changed after the decision: not run."
    if decision.verdict == "ask" and answer == "denied":
        return "The user said no to this call. Do not try it again; go on without it."
    if decision.verdict == "ask" and answer != "allowed":
        return "Nobody answered in time: not run. Say so and offer to ask again."
    return taint_refusal(facts, checked)


def taint_refusal(facts: CallFacts, checked: CheckedCall) -> str:
    """The rule that no person can wave through: private data may not leave on a stranger's word."""
    if not (checked.sends_out and facts.is_tainted and facts.has_read_private):
        return ""
    host = destination(checked)
    places = {place.strip() for place in host.split(",")} - {"", *OWN}
    if host and places <= facts.typed_hosts:
        return ""
    return (
        f"Refused: this turn has read {facts.taint_source or 'text from outside'} and private data, and the user "
        f"did not name {host or 'this destination'}. Tell the user; they can ask for it in their own words, with the "
        "full address, or its name in quotes."
    )


def question(facts: CallFacts, checked: CheckedCall) -> ApprovalRequest | None:
    """What to ask the person before this call, or None when nothing need be asked."""
    tool = checked.tool
    is_told_to = tool.confirm or tool.name in facts.asks_first
    asks = is_told_to or checked.risk == "high" or (checked.risk == "medium" and facts.is_tainted)
    if not asks:
        return None
    why = f"because this turn read {facts.taint_source}" if facts.is_tainted else ""
    return ApprovalRequest(
        tool=tool.name,
        verb=tool.summary.rstrip("."),
        destination=destination(checked) or HERE,
        detail=visible(checked),
        why=why,
        risk=checked.risk,
    )


async def run_tool(
    tool: Tool, ctx: Ctx, arguments: BaseModel, *, timeout_s: float = CALL_TIMEOUT_S
) -> tuple[Output, str]:
    """Call the function under a time limit; every failure becomes words the model can act on."""
    values = {name: getattr(arguments, name) for name in type(arguments).model_fields}
    try:
        async with asyncio.timeout(timeout_s):
            given = await tool.function(ctx, **values)
    except TimeoutError:
        return Output(text=f"{tool.name} took longer than {timeout_s:g} s and was stopped."), "err"
    except DatabaseUnavailable:
        raise  # the step is done again when the database is back
    except ToolRetry as error:
        return Output(text=f"{error.message} Expected: {tool.line}"), "err"
    except ToolFailed as error:
        return Output(text=error.message, is_tainted=tool.reads_untrusted or error.is_tainted), "err"
    except CortexError as error:
        return Output(text=error.message, is_tainted=tool.reads_untrusted), "err"
    except Exception:  # the executor's broad except: a tool's fault must not end the turn
        log.exception("tool %s failed", tool.name)
        return Output(text=f"{tool.name} failed for a reason of its own; the log has the details."), "err"
    return (given if isinstance(given, Output) else Output(text=given)), "ok"


def _record(call_id: str, call: ToolCall, checked: CheckedCall) -> CallRecord:
    """The row of a checked call."""
    return CallRecord(
        id=call_id,
        wire_id=call.id,
        tool=checked.tool.name,
        arguments=checked.canonical,
        hash=digest(checked.tool.name, checked.canonical),
        risk=checked.risk,
        brief=brief(checked),
    )


def _unchecked(call_id: str, call: ToolCall) -> CallRecord:
    """The row of a call that names no tool, or has wrong arguments."""
    return CallRecord(
        id=call_id,
        wire_id=call.id,
        tool=call.name[:80],
        arguments=call.arguments[:RESULT_CHARS_MAX],
        hash="",
        risk="low",
        brief="",
    )


def _result(call: ToolCall, text: str, *, is_error: bool = False, is_tainted: bool = False) -> ToolResult:
    """The result as the wire wants it: under the name and id that the model used."""
    return ToolResult(call_id=call.id, name=call.name, text=text, is_error=is_error, tainted=is_tainted)
