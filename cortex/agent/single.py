"""One call that a person makes by hand: the same gate, question and effect as a model's, without a model. Pure."""

from cortex.base.messages import ToolCall, assistant, results, user
from cortex.base.turn import Outcome, Turn
from cortex.ports.loop import ToolRunner

ROUND = 1


async def run_call(turn: Turn, call: ToolCall, tool_runner: ToolRunner) -> Outcome:
    """Decide, wait for the person's word where one is needed, perform; the turn is done however the call went."""
    decision = await tool_runner.decide(turn, ROUND, call)
    answer = await tool_runner.wait_for_answer(turn, decision) if decision.verdict == "ask" else None
    performed = await tool_runner.perform(turn, ROUND, call, decision, answer)
    by = "by a job" if turn.job_id else "by hand"
    words = f"{call.name} {'did not work' if performed.result.is_error else 'answered'}; it was called {by}."
    messages = (user(turn.text), assistant("", call), results(performed.result), assistant(words))
    return Outcome(state="done", rounds=0, messages=messages, text=words)
