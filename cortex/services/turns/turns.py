"""A turn as a durable run: opens it, runs the loop, closes it, starts the next in line.

The body `run_turn` is what the engine replays: everything that may change between two runs of it is read inside a step
(`ports/steps.py`). `services/turns/queue.py` starts and stops it; `app.py` registers it with the engine.
"""

import logging
from typing import Any

from msgspec import Struct

from cortex.agent.execute import Executor
from cortex.agent.plain import run_call
from cortex.agent.react import LoopPorts, run_turn
from cortex.base.errors import CortexError
from cortex.base.messages import ToolCall
from cortex.base.turn import Answer, Decision, Outcome, Performed, Turn
from cortex.ports.steps import begins_at_once
from cortex.services.turns.approvals import ApprovalsService
from cortex.services.turns.queue import TurnQueue
from cortex.services.turns.start import TurnStart
from cortex.services.turns.turn_context import TurnContexts

log = logging.getLogger(__name__)

FAULT = "Something went wrong in Cortex. Details are in the log. Nothing you wrote is lost."


class ToolRuns(Struct, frozen=True, kw_only=True):
    """Implements `ToolRunner`: decide and perform are steps of the executor, the wait between them is the engine's."""

    executor: Executor
    approvals: ApprovalsService
    contexts: TurnContexts

    async def decide(self, turn: Turn, round_number: int, call: ToolCall) -> Decision:
        """Tell whether the call runs, is refused, or must be asked about."""
        return await self.executor.decide(turn, round_number, call)

    async def wait_for_answer(self, turn: Turn, decision: Decision) -> Answer:
        """The person's answer, used up for this call."""
        heard = await self.approvals.wait_for_answer(turn, decision.approval_id)
        answer = await self.approvals.settle(turn, decision.approval_id, heard)
        self.contexts.let_go(turn.id)  # time went by, for the calls beside this one too: rights are read anew
        return answer

    async def perform(
        self, turn: Turn, round_number: int, call: ToolCall, decision: Decision, answer: Answer | None
    ) -> Performed:
        """Run it once, whatever happens to the process."""
        return await self.executor.perform(turn, round_number, call, decision, answer)


class TurnRuns(Struct, frozen=True, kw_only=True):
    """The runs of turns. What the loop's ports mark with `@step` is kept with the run."""

    contexts: TurnContexts
    queue: TurnQueue
    turn_start: TurnStart
    ports: LoopPorts

    async def run_turn(self, run_id: str, argument: dict[str, Any]) -> None:
        """The durable body of one turn."""
        turn: Turn | None = None
        try:
            if not begins_at_once.get():  # whoever starts a run looks whether work is stopped
                await self.queue.until_released(argument["user"], argument["turn"])
            turn = await self.turn_start.start_turn(argument["user"], argument["turn"])
            if turn is None:
                return
            outcome = await self._outcome(turn, argument)
        except CortexError as error:
            outcome = Outcome(state="failed", rounds=0, text=error.message)
        except Exception:  # a broad except, for whatever a turn raises: it must end, and say so
            log.exception("turn %s failed", run_id)
            outcome = Outcome(state="failed", rounds=0, text=FAULT)
        finally:
            self.contexts.let_go(argument["turn"])
        if turn is None:
            following = await self.queue.turn_end.refuse(argument["user"], argument["turn"], outcome.text)
        else:
            following = await self.queue.turn_end.end_turn(turn, outcome)
        if following:
            # The end is committed: if this process dies here, the queue's next look starts it.
            await self.queue.runtime.outages.wait_out(lambda: self.queue.start_id(argument["user"], following))

    async def _outcome(self, turn: Turn, argument: dict[str, Any]) -> Outcome:
        if "call" in argument:
            return await run_call(turn, ToolCall(**argument["call"]), self.ports.tool_runner)
        return await run_turn(turn, self.ports)
