"""Turns without a model: an order, or one call by hand. The same gate, question and effect as a model's calls. Pure."""

import re

from cortex.agent.refusals import UNKNOWN
from cortex.base.messages import ToolCall, ToolResult, assistant, results, user
from cortex.base.turn import GIVEN_ROUND, Answer, Outcome, PlainCommand, Turn
from cortex.ports.loop import History, ToolRunner

ROUND = 1
WITHOUT_MODEL = "without a model"  # the label of the receipt of such a turn
DONE_NOTE = "Done without a model: 0 tokens."
NOT_DONE_NOTE = "No model was asked: 0 tokens."
TOLD = "Done."
LOOK = "Check before you repeat it."
CUT = f"Cortex was interrupted: it may or may not have happened. {LOOK}"
MAYBE = "it may have happened"  # in a tool's message: sent, and nobody said that it is done
_SAID_NO: dict[Answer | None, str] = {
    "denied": "Not done: you denied it.",
    "expired": "Not done: nobody answered in time.",
}


async def run_command(turn: Turn, command: PlainCommand, history: History, tool_runner: ToolRunner) -> Outcome:
    """Decide and perform its calls, one after the other until one fails; the turn is done however they went.

    No model goes on where a call failed: the house may have moved, and nobody may move it twice.
    """
    done: list[ToolResult] = []
    why_not = ""
    for call in command.calls:
        if why_not:
            done.append(
                ToolResult(call_id=call.id, name=call.name, text="Not run: the call before failed.", is_error=True)
            )
            continue
        number = GIVEN_ROUND if turn.given is not None else ROUND
        decision = await tool_runner.decide(turn, number, call)
        answer = await tool_runner.wait_for_answer(turn, decision) if decision.verdict == "ask" else None
        performed = await tool_runner.perform(turn, number, call, decision, answer)
        done.append(performed.result)
        why_not = _why_not(performed.result, answer)
    words = f"{'Partly done. ' if why_not and not done[0].is_error else ''}{why_not}" or command.done
    await history.say(turn, ROUND, words, "answer", NOT_DONE_NOTE if why_not else DONE_NOTE)
    # What is shown names devices, in words that came from the house; the model reads none of them as its own.
    words_said = assistant(words if why_not else TOLD)
    messages = (user(turn.text), assistant("", *command.calls), results(*done), words_said)
    return Outcome(state="done", rounds=0, messages=messages, text=words)


async def run_call(turn: Turn, call: ToolCall, tool_runner: ToolRunner) -> Outcome:
    """Decide, wait for the person's word where one is needed, perform; the turn is done however the call went."""
    decision = await tool_runner.decide(turn, ROUND, call)
    answer = await tool_runner.wait_for_answer(turn, decision) if decision.verdict == "ask" else None
    performed = await tool_runner.perform(turn, ROUND, call, decision, answer)
    by = "by a job" if turn.job_id else "by hand"
    words = f"{call.name} {'did not work' if performed.result.is_error else 'answered'}; it was called {by}."
    messages = (user(turn.text), assistant("", call), results(performed.result), assistant(words))
    return Outcome(state="done", rounds=0, messages=messages, text=words)


def _why_not(result: ToolResult, answer: Answer | None) -> str:
    """Return what the person reads of a call that did not end well; "" for one that did."""
    if not result.is_error:
        return ""
    if result.text == UNKNOWN:
        return CUT
    if answer in _SAID_NO:
        return _SAID_NO[answer]
    words = _without_tools(result)
    return f"{words} {LOOK}" if MAYBE in words else f"Not done: {words}"


def _without_tools(result: ToolResult) -> str:
    """The message of a failed call without the sentences for the model: those that name this tool or its kin."""
    family = re.escape(result.name.partition("_")[0])
    names = re.compile(rf"(?<![\w.]){family}_\w+")
    sentences = re.split(r"(?<=[.!?])\s+", result.text)
    return " ".join(each for each in sentences if not names.search(each)) or f"It failed: {MAYBE}."
