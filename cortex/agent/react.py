"""The ReAct loop: plan, ask the model, run its calls, again, until there is an answer. A pure function over ports.

Nothing here touches a disk, a network or a clock: durability is put on the ports by `services/turns/turns.py`, and the
order of port calls is a function of what they return, so that a run can be replayed.
"""

import asyncio

from msgspec import Struct, field

from cortex.agent.plain import TOLD, run_command
from cortex.agent.prompt import with_reveal, with_tail
from cortex.agent.toolless import now_there
from cortex.base.messages import Message, ToolCall, ToolResult, assistant, results, user
from cortex.base.model import OFFLINE
from cortex.base.turn import Answer, Decision, Need, Outcome, Performed, PlainCommand, Reply, RoundPlan, Turn, TurnState
from cortex.ports.loop import History, ModelCalls, PlainCommands, Planner, ToolRunner
from cortex.selection.model.lacks_tool import does_not_answer

MAX_DISCOVERY_ROUNDS = 2
SAME_MAX = 3


class LoopPorts(Struct, frozen=True, kw_only=True):
    """The ports a turn reaches the server through. `commands`: what reads orders without a model, None for nothing."""

    history: History
    planner: Planner
    model_caller: ModelCalls
    tool_runner: ToolRunner
    commands: PlainCommands | None = None


class _Run(Struct, kw_only=True):
    """One turn's memory while it runs. `counted`: rounds that count against `max_rounds`.

    `heard`: what the person sent last meanwhile, read from the round `heard_at` on. `has_acted`, `has_retried`: whether
    a tool was used for the message at hand, and whether an answer to it was asked for again.
    """

    turn: Turn
    ports: LoopPorts
    past: tuple[Message, ...]
    added: list[Message] = field(default_factory=list)
    number: int = 0
    counted: int = 0
    discovery_rounds: int = 0
    has_acted: bool = False
    has_retried: bool = False
    found: list[str] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)
    heard: tuple[str, ...] = ()
    heard_at: int = 0

    def need(self, *, is_last: bool = False, missing: str = "") -> Need:
        """Return what the planner must know before the coming round."""
        return Need(
            round=self.number + 1,
            is_last=is_last,
            found=tuple(self.found),
            missing=missing,
            heard=self.heard,
            heard_at=self.heard_at,
        )

    def count(self, key: str) -> int:
        """Note the key once more; how often it was seen."""
        self.seen[key] = self.seen.get(key, 0) + 1
        return self.seen[key]

    def ended(self, state: TurnState, text: str = "") -> Outcome:
        """The outcome as it stands."""
        return Outcome(state=state, rounds=self.number, messages=tuple(self.added), text=text)

    @property
    def is_last(self) -> bool:
        """Tell whether the coming round is the last that may be counted: it goes out without tools."""
        return self.counted + 1 >= self.turn.max_rounds


async def run_turn(turn: Turn, ports: LoopPorts) -> Outcome:
    """Run a turn to its end.

    The outcome always carries a text: the model's, or Cortex's own words for why it stopped. Raises only what a
    port raises (CancelledError when the user stops it).
    """
    command = await _command(turn, ports)
    if command is not None:
        return await run_command(turn, command, ports.history, ports.tool_runner)
    past = await ports.history.past(turn)
    run = _Run(turn=turn, ports=ports, past=past.messages, added=[said(turn)])
    await _begin(run)
    while True:
        is_last = run.is_last
        reply = await _round(run, run.need(is_last=is_last))
        while reply.message is not None and not reply.message.calls:
            retry = await _missing_round(run, reply, is_last=is_last)
            if retry is None:
                return run.ended("done", reply.message.text)
            reply = retry
        if reply.message is None and reply.failure_kind == "budget":
            await _speak(run, reply.failure)
            return run.ended("done", reply.failure)
        if reply.message is None:
            return run.ended("failed", reply.failure)
        if is_last:
            return await _refuse_last(run, reply.message)
        ending = await _act(run, reply.message)
        if ending is not None:
            return ending


def said(turn: Turn) -> Message:
    """The turn's message, with what came with it."""
    return user(turn.text, *turn.documents, turn.done_before, pictures=turn.pictures)


async def _round(run: _Run, need: Need) -> Reply:
    """One model call; its message, if it came whole, joins the transcript."""
    return await _answer(run, await run.ports.planner.plan(run.turn, need))


async def _answer(run: _Run, plan: RoundPlan) -> Reply:
    """Ask the model with a plan, and count the round.

    The plan's moving text stays in the transcript where it was said, and so does what it reveals: the next request
    extends this one.
    """
    run.number += 1
    run.counted += 1
    run.added = with_reveal(with_tail(run.added, plan.tail), plan.revealed)
    reply = await run.ports.model_caller.answer(run.turn, plan, run.past, tuple(run.added))
    if reply.message is not None:
        run.added.append(reply.message)
    return reply


async def _missing_round(run: _Run, reply: Reply, *, is_last: bool) -> Reply | None:
    """One extra round when an answer is none and the planner finds tools for the message; None = the answer stands.

    Not counted as a round; once a message, and only where no tool was used for it. The offline model is asked once: it
    calls by rules of its own. Where no model answers the second time, the first answer stands.
    """
    text = reply.message.text if reply.message else ""
    if is_last or run.has_retried or run.has_acted or run.turn.mode != "auto" or reply.model == OFFLINE.name:
        return None
    if not does_not_answer(text):
        return None
    run.has_retried = True
    plan = await run.ports.planner.plan(run.turn, run.need(missing=text))
    if not plan.added:
        return None
    names = ", ".join(plan.added)
    await run.ports.history.say(run.turn, run.number, f"Trying again with more tools: {names}.", "notice")
    run.added.append(user(now_there(plan.added)))
    run.counted -= 1
    second = await _answer(run, plan)
    if second.message is None and reply.message is not None:
        await run.ports.history.say(run.turn, run.number, f"The second try failed. {second.failure}", "notice")
        run.added.append(reply.message)  # behind what was told meanwhile: later turns read an answer to it
        return None
    return second


async def _refuse_last(run: _Run, message: Message) -> Outcome:
    """A model that calls tools in its last round is refused; the turn still ends with words."""
    run.added.append(results(*(_result(call, "Out of rounds: not run.") for call in message.calls)))
    text = message.text or (
        f"I stopped after {run.counted} rounds, before the work was finished. "
        "Each tool above says whether it was done; nothing else was. Continue gives me more rounds."
    )
    if not message.text:
        await _speak(run, text)
    return run.ended("out_of_rounds", text)


async def _speak(run: _Run, text: str) -> None:
    """Cortex's own words as the turn's answer."""
    await run.ports.history.say(run.turn, run.number, text, "answer")
    run.added.append(assistant(text))


async def _command(turn: Turn, ports: LoopPorts) -> PlainCommand | None:
    """Return what is to be done without a model, None where one is asked."""
    if turn.given is not None and turn.is_given_alone:
        return PlainCommand(calls=(turn.given,), done=TOLD)
    # Whether the message is looked at depends on the turn alone: a replay finds its steps.
    return await ports.commands.command(turn) if ports.commands and turn.is_order else None


async def _begin(run: _Run) -> None:
    """Run the call that the person answered after its own turn was over, if any; a model then goes on with its result.

    It belongs to no round of a model: that of the coming one is the first.
    """
    if run.turn.given is not None:
        message = assistant("", run.turn.given)
        run.added.append(message)
        await _act(run, message)


async def _act(run: _Run, message: Message) -> Outcome | None:
    """Run the calls of one message; an outcome when the loop must end here."""
    # One after the other: a replay finds steps by their order.
    decisions = [await run.ports.tool_runner.decide(run.turn, run.number, call) for call in message.calls]
    answers = [await _wait(run, decision) for decision in decisions]
    performed = await _perform(run, list(zip(message.calls, decisions, answers, strict=True)))
    run.added.append(results(*(item.result for item in performed)))
    for item in performed:
        run.found.extend(name for name in item.found if name not in run.found)
    is_search = all(decision.is_free for decision in decisions)
    run.has_acted = run.has_acted or any(decision.tool and not decision.is_free for decision in decisions)
    if is_search and run.discovery_rounds < MAX_DISCOVERY_ROUNDS:
        run.discovery_rounds += 1
        run.counted -= 1
    broken = _broken(run, message.calls, performed)
    if broken:
        await _speak(run, broken)
        return run.ended("done", broken)
    if not run.is_last:
        await _hear(run)
    return None


async def _hear(run: _Run) -> None:
    """Take in what the person sent meanwhile: the coming round reads it, with tools planned for its words.

    Before the last round, which carries no tools, it is left in line and answered after this turn.
    """
    texts = await run.ports.history.steer(run.turn, run.number)
    if texts:
        run.heard, run.heard_at = texts, run.number + 1
        run.has_acted = run.has_retried = False
        run.added += [user(text) for text in texts]


async def _wait(run: _Run, decision: Decision) -> Answer | None:
    """The person's answer where one is needed; all cards of a round are up before the first wait."""
    if decision.verdict != "ask":
        return None
    return await run.ports.tool_runner.wait_for_answer(run.turn, decision)


Work = list[tuple[ToolCall, Decision, Answer | None]]


async def _perform(run: _Run, work: Work) -> list[Performed]:
    """Neighbouring reads side by side, writes one after the other; results in the order of the calls."""
    done: list[Performed] = []
    batch: Work = []
    for item in work:
        if item[1].is_read or item[1].verdict == "refuse":
            batch.append(item)
            continue
        done += await _side_by_side(run, batch)
        batch = []
        done += await _side_by_side(run, [item])
    return done + await _side_by_side(run, batch)


async def _side_by_side(run: _Run, work: Work) -> list[Performed]:
    """Perform calls at the same time, started in order so that a replay numbers its steps alike."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(run.ports.tool_runner.perform(run.turn, run.number, call, decision, answer))
                for call, decision, answer in work
            ]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None  # whoever ends the turn has words for it, and none for a group
    return [task.result() for task in tasks]


def _broken(run: _Run, calls: tuple[ToolCall, ...], performed: list[Performed]) -> str:
    """Words when the same call, or the same failure, came for the third time, else "" (the loop breaker)."""
    for call, item in zip(calls, performed, strict=True):
        if run.count(f"{call.name} {call.arguments}") >= SAME_MAX:
            return f"I stopped: I did the same thing {SAME_MAX} times. {item.words}".rstrip()
        if item.result.is_error and run.count(f"{call.name} said {item.result.text}") >= SAME_MAX:
            return f"I stopped: the same thing failed {SAME_MAX} times. {item.words}".rstrip()
    return ""


def _result(call: ToolCall, text: str) -> ToolResult:
    """An error result for a call that was not run."""
    return ToolResult(call_id=call.id, name=call.name, text=text, is_error=True)
