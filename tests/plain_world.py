"""Plain ports for the loop: a scripted thinker, a planner that notes what was needed, hands that answer by table."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cortex.base.messages import Message, ToolCall, ToolResult, ToolSchema, assistant
from cortex.base.turn import Answer, Decision, Need, Past, Performed, Reply, RoundPlan, Turn
from cortex.storage.turns import NOTHING_READ

# Of `TurnsRepository.create`, where nothing depends on it.
PLAIN_TURN: dict[str, Any] = {"mode": "auto", "role": "orchestrator", "is_tainted": False, "reads": NOTHING_READ}
TURN = Turn(
    id="turn:1",
    conversation_id="c1",
    user_id="u1",
    role="orchestrator",
    channel="chat",
    text="add milk",
    mode="auto",
    max_rounds=5,
    max_rounds_from="default",
    models=("offline",),
    window_tokens=8000,
    now="2026-11-21T08:00:00+00:00",
)


def call(name: str, arguments: str = "{}", wire_id: str = "w1") -> ToolCall:
    return ToolCall(id=wire_id, name=name, arguments=arguments)


def schema(name: str) -> ToolSchema:
    return ToolSchema(name=name, description=name, parameters={"type": "object"})


@dataclass
class PlainStory:
    past_messages: tuple[Message, ...] = ()
    steering: list[str] = field(default_factory=list)
    said: list[tuple[str, str]] = field(default_factory=list)

    async def past(self, turn: Turn) -> Past:
        return Past(messages=self.past_messages)

    async def steer(self, turn: Turn, after_round: int) -> tuple[str, ...]:
        taken, self.steering = tuple(self.steering), []
        return taken

    async def say(self, turn: Turn, round_number: int, text: str, kind: str, note: str = "") -> None:
        self.said += [(kind, text), *([("notice", note)] if note else [])]


@dataclass
class PlainPlanner:
    tools: tuple[ToolSchema, ...] = ()
    tail: str = ""
    revealed_by_missing: tuple[str, ...] = ()
    needs: list[Need] = field(default_factory=list)

    async def plan(self, turn: Turn, need: Need) -> RoundPlan:
        self.needs.append(need)
        added = self.revealed_by_missing if need.missing else ()
        tools = () if need.is_last else (*self.tools, *(schema(name) for name in added))
        return RoundPlan(
            round=need.round,
            system="You are Cortex.",
            tools=tools,
            tail=self.tail if need.round == 1 else "",
            tool_choice="none" if need.is_last else "auto",
            added=added,
        )


@dataclass
class ScriptedThinker:
    script: list[Message | Reply]
    asked: list[tuple[RoundPlan, tuple[Message, ...]]] = field(default_factory=list)

    async def answer(self, turn: Turn, plan: RoundPlan, past: Sequence[Message], added: Sequence[Message]) -> Reply:
        self.asked.append((plan, (*past, *added)))
        step = self.script.pop(0) if self.script else assistant("done")
        return step if isinstance(step, Reply) else Reply(message=step)


@dataclass
class TableHands:
    answers: dict[str, str] = field(default_factory=dict)
    failing: frozenset[str] = frozenset()
    reads: frozenset[str] = frozenset()
    asks: dict[str, Answer] = field(default_factory=dict)
    free: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()
    found: dict[str, tuple[str, ...]] = field(default_factory=dict)
    trail: list[str] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0

    async def decide(self, turn: Turn, round_number: int, call: ToolCall) -> Decision:
        self.trail.append(f"decide {call.name}")
        return Decision(
            call_id=call.id,
            verdict="ask" if call.name in self.asks else "run",
            tool="" if call.name in self.unknown else call.name,
            is_read=call.name in self.reads,
            is_free=call.name in self.free,
        )

    async def wait_for_answer(self, turn: Turn, decision: Decision) -> Answer:
        self.trail.append(f"wait {decision.tool}")
        return self.asks[decision.tool]

    async def perform(
        self, turn: Turn, round_number: int, call: ToolCall, decision: Decision, answer: Answer | None
    ) -> Performed:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        self.trail.append(f"perform {call.name}" + (f" {answer}" if answer else ""))
        text = self.answers.get(call.name, "ok")
        is_error = call.name in self.failing
        result = ToolResult(call_id=call.id, name=call.name, text=text, is_error=is_error)
        return Performed(result=result, found=self.found.get(call.name, ()), words=result.text)
