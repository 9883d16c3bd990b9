"""The one gate: decides every call from every surface, then performs it.

Kill switch -> known tool and valid arguments -> user, role, channel -> admin only -> discovery cap and loop breaker
-> taint rule -> who else reads it -> aim -> the tool's own check -> approval -> intent -> effect -> result. What was
sent to a model grants nothing here. Any exception is a no.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel

from cortex.agent.arguments import SPILLED, CheckedCall, check, title
from cortex.agent.looks import preview_of, readers_of
from cortex.agent.records import asks, of_call, offer_of, record_of, request_of, unchecked_record
from cortex.agent.refusals import (
    ELSEWHERE,
    INTERRUPTED,
    NOT_VALID,
    Refusal,
    as_changed,
    for_person,
    halted,
    read_by_others,
    refusal,
    still_no,
    unreadable,
    verb_of,
)
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
    ChangedCall,
    Scope,
)
from cortex.ports.steps import step
from cortex.ports.stored_names import StepName
from cortex.toolkit.context import Ctx
from cortex.toolkit.registry import Registry
from cortex.toolkit.spec import Output, Tool
from cortex.toolkit.words import one_line

log = logging.getLogger(__name__)

RESULT_CHARS_MAX = 8_000
PREVIEW_CHARS = 3_000
CALL_TIMEOUT_S = 150.0
CHECK_TIMEOUT_S = 10.0
_UNKNOWN = CallEnding(text=INTERRUPTED.text, words=INTERRUPTED.words, state="unknown")


class Executor(Struct, frozen=True, kw_only=True):
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
        facts = of_call(await self.call_log.facts(turn, call_id), call)
        checked = self._checked(facts, call)
        if isinstance(checked, Refusal):
            record = unchecked_record(call_id, call)
            await self.call_log.record(turn, round_number, record)
            return await self._close(turn, call, record, None, _refused(checked))
        why_not = refusal(facts, checked)
        record = record_of(call_id, call, checked, title(checked))
        if not why_not:
            record = await self._described(turn, record, facts, checked)
        await self.call_log.record(turn, round_number, record)
        if why_not:
            return await self._close(turn, call, record, checked.tool, _refused(why_not))
        decision = Decision(
            call_id=call_id,
            verdict="run",
            tool=checked.tool.name,
            is_read=checked.tool.effect == "read",
            is_free=checked.tool.free,
            arguments_hash=record.hash,
        )
        request = await self._request(turn, record, facts, checked)
        if isinstance(request, CallEnding):
            return await self._close(turn, call, record, checked.tool, request)
        if not await self._asks(turn, record, facts, checked, request):
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
            readers=tuple(one.key for one in request.readers),
        )

    async def _asks(
        self, turn: Turn, record: CallRecord, facts: CallFacts, checked: CheckedCall, request: ApprovalRequest
    ) -> bool:
        """Tell whether the person must say yes first; who presses "Ask again" is asked, whatever was allowed since."""
        if await self.approvals.is_asked_again(turn, record):
            return True
        return asks(facts, checked, request.readers) and not await self.approvals.granted(turn, record, request)

    async def _request(
        self, turn: Turn, record: CallRecord, facts: CallFacts, checked: CheckedCall
    ) -> ApprovalRequest | CallEnding:
        """Return what the person would be asked; the ending of a call whose place is not there."""
        tool = checked.tool
        readers = await readers_of(facts, checked, self._ctx(turn, record, tool, facts), self._look)
        if isinstance(readers, Output):
            return self._failed(readers)
        request = request_of(facts, checked, record, readers)
        if tool.aim is None:
            return request
        # Before the person is asked, and kept: a name may mean another place by the time of the answer.
        ctx = self._ctx(turn, record, tool, facts)
        aimed, state = await self._run(turn, replace(tool, function=tool.aim), ctx, checked.arguments)
        return replace(request, destination=show_hidden(aimed.text)) if state == "ok" else self._failed(aimed)

    async def _look(self, tool: Tool, ctx: Ctx, arguments: BaseModel) -> tuple[Output, str]:
        return await run_tool(tool, ctx, arguments, timeout_s=self.check_timeout_s)

    def _failed(self, output: Output) -> CallEnding:
        words = for_person(output.text, self.registry.tools.keys())
        return CallEnding(text=output.text, words=words, state="err", is_tainted=output.is_tainted)

    async def _is_other_now(
        self, turn: Turn, record: CallRecord, facts: CallFacts, checked: CheckedCall, decision: Decision, place: str
    ) -> CallEnding | None:
        """The ending of a call that may not run as it was decided.

        Others read it by now, of whom nobody was asked; or what the person typed means another place than `place`.
        """
        request = await self._request(turn, record, facts, checked)
        if isinstance(request, CallEnding):
            return request
        if place and checked.tool.aim and request.destination != place:
            return _refused(ELSEWHERE)
        others = tuple(one for one in request.readers if one.key not in decision.readers)
        if not others or await self.approvals.granted(turn, record, request_of(facts, checked, record, others)):
            return None
        return replace(_refused(read_by_others(others)), is_tainted=True)  # a list is called what its owner says

    async def review(self, turn: Turn, call_id: str, call: ToolCall) -> tuple[CallRecord, ApprovalRequest] | Refusal:
        """A call that a person would put in place of one that asked, as the gate sees it now; nothing is kept."""
        facts = await self.call_log.facts(turn, call_id)
        checked = self._checked(facts, call)
        if isinstance(checked, Refusal):
            return checked
        why_not = refusal(facts, checked)
        record = record_of(call_id, call, checked, title(checked))
        if why_not:
            return why_not
        cannot_run = await self._cannot_run(turn, record, facts, checked)
        if cannot_run is not None:
            return Refusal(text=cannot_run.text, words=cannot_run.words)
        record = await self._described(turn, record, facts, checked)
        request = await self._request(turn, record, facts, checked)
        return Refusal(text=request.text, words=request.words) if isinstance(request, CallEnding) else (record, request)

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
        words = for_person(said.text, self.registry.tools.keys())
        return CallEnding(text=said.text, words=words, state="refused", is_tainted=said.is_tainted, has_looked=True)

    def _checked(self, facts: CallFacts, call: ToolCall) -> CheckedCall | Refusal:
        """The call as the gate reads it, by the rights as they are now."""
        if facts.halt:
            return halted(facts.halt)
        checked = check(self.registry, facts.permitted, call)
        return unreadable(checked) if isinstance(checked, str) else checked

    async def _described(self, turn: Turn, record: CallRecord, facts: CallFacts, checked: CheckedCall) -> CallRecord:
        """The record with what the call would do, looked up for the person; as it is where its tool cannot say.

        No model reads it, nor whether it failed, so the turn has read nothing by it.
        """
        found = await preview_of(checked, self._ctx(turn, record, checked.tool, facts), self._look)
        if found is None:
            return record
        return replace(record, title=show_hidden(one_line(found.title)), shown=show_hidden(found.detail))

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
        if answer == "changed":
            return await self._perform_changed(turn, call, decision)
        return await self._perform(turn, call, decision, answer)

    async def _perform_changed(self, turn: Turn, call: ToolCall, decision: Decision) -> Performed:
        """Run what the person put in the call's place: another call, through the whole gate, on its own approval.

        The model is told what ran under the id of its own call, so that its history stays as it was.
        """
        changed = await self.approvals.changed(turn, decision.call_id)
        theirs = ToolCall(id=call.id, name=changed.tool, arguments=changed.arguments)
        bound = replace(
            decision,
            call_id=changed.id,
            approval_id=changed.approval_id,
            arguments_hash=changed.hash,
            tool=changed.tool,
            readers=changed.readers,
        )
        done = await self._perform(turn, theirs, bound, "allowed", changed)
        text = as_changed(changed.arguments, done.result.text)
        return replace(done, result=replace(done.result, name=call.name, text=text))

    async def _perform(
        self, turn: Turn, call: ToolCall, decision: Decision, answer: Answer | None, changed: ChangedCall | None = None
    ) -> Performed:
        # Hours may have passed since the decision: what is permitted and what was read counts as it is now.
        facts = of_call(await self.call_log.facts(turn, decision.call_id), call)
        checked = self._checked(facts, call)
        if isinstance(checked, Refusal):
            return await self._refused(turn, call, unchecked_record(decision.call_id, call), _refused(checked))
        record = record_of(decision.call_id, call, checked)
        why_not = (refusal(facts, checked) if changed else None) or still_no(facts, checked, record, decision, answer)
        ending = _refused(why_not) if why_not else None
        place = changed.destination if changed else ""
        ending = ending or await self._is_other_now(turn, record, facts, checked, decision, place)
        if ending:
            return await self._refused(turn, call, record, ending)
        # Ahead of the approval: a re-run then says "it may have happened", where a used-up yes would say "not allowed".
        intent = await self.call_log.intend(turn, record.id)
        if intent == "ended" or (intent == "again" and not checked.tool.idempotent):
            return await self._end(turn, call, record, _UNKNOWN)
        if decision.verdict == "ask":
            is_good = await self.approvals.consume(turn, decision.approval_id, record.hash)
            if not is_good and intent == "first":  # else an earlier try may have used it up
                return await self._end(turn, call, record, _refused(NOT_VALID))
        return await self._effect(turn, call, checked, record, facts, is_again=intent == "again")

    async def _refused(self, turn: Turn, call: ToolCall, record: CallRecord, ending: CallEnding) -> Performed:
        """End a call that may not run now. Where an earlier try was killed on the way, it may have happened before."""
        is_begun = await self.call_log.is_begun(turn, record.id)
        return await self._end(turn, call, record, _UNKNOWN if is_begun else ending)

    async def _end(self, turn: Turn, call: ToolCall, record: CallRecord, ending: CallEnding) -> Performed:
        """Store an ending that needed no effect; one that stands already is what counts."""
        stored = await self.call_log.end(turn, record, ending)
        is_error = stored.state != "ok"
        result = _result(call, stored.text, is_error=is_error, is_tainted=stored.is_tainted)
        return Performed(result=result, words=stored.words)

    async def _effect(
        self, turn: Turn, call: ToolCall, checked: CheckedCall, record: CallRecord, facts: CallFacts, *, is_again: bool
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
        return Performed(result=result, found=(tool.name, *output.found), words=stored.words)

    def _ctx(self, turn: Turn, record: CallRecord, tool: Tool, facts: CallFacts, *, is_again: bool = False) -> Ctx:
        """Return what the tool's function is given beside its arguments."""
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
            text = f"{shown}\n[... {len(text)} characters in all; {SPILLED} path={spill!r}]"
        note = ctx.undo_notes[-1] if ctx.undo_notes and state == "ok" else None
        done = "" if tool.reads_untrusted or tool.effect == "read" else verb_of(output.text)
        return CallEnding(
            text=text,
            words=output.words or done if state == "ok" else for_person(output.text, self.registry.tools.keys()),
            state="ok" if state == "ok" else "unknown" if state == "unknown" else "err",
            has_looked=state == "unknown",
            is_tainted=output.is_tainted or tool.reads_untrusted,
            spill=spill,
            ms=round(took_s * 1000),
            undo=offer_of(tool, note) if note else None,
        )

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
        state = "unknown" if error.is_unknown else "err"
        return Output(text=error.message, is_tainted=tool.reads_untrusted or error.is_tainted), state
    except CortexError as error:
        return Output(text=error.message, is_tainted=tool.reads_untrusted), "err"
    except Exception:  # the executor's broad except: a tool's fault must not end the turn
        log.exception("tool %s failed", tool.name)
        return Output(text=f"{tool.name} failed unexpectedly; the log has the details."), "err"
    return (given if isinstance(given, Output) else Output(text=given)), "ok"


def _refused(why: Refusal) -> CallEnding:
    return CallEnding(text=why.text, words=why.words, state="refused")


def _result(call: ToolCall, text: str, *, is_error: bool = False, is_tainted: bool = False) -> ToolResult:
    """The result as the wire wants it: under the name and id that the model used."""
    return ToolResult(call_id=call.id, name=call.name, text=text, is_error=is_error, tainted=is_tainted)
