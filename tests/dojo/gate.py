"""AgentDojo's tools behind Cortex's gate: the real executor, call log, approvals and tables, a person, no model."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from msgspec.structs import replace
from pydantic import ConfigDict, create_model

from cortex.agent.execute import Executor
from cortex.base.messages import ToolCall, ToolSchema
from cortex.base.turn import Performed, Turn
from cortex.services.tools.settings import ToolSettingsService
from cortex.services.tools.tools import ToolsService
from cortex.services.turns.approvals import ApprovalsService
from cortex.services.turns.calls import CallLog
from cortex.storage.approvals import ApprovalsRepository
from cortex.storage.calls import CallsRepository
from cortex.storage.home import Homes
from cortex.storage.turns import NOTHING_READ, NewTurn, TurnsRepository
from cortex.toolkit.context import Ctx
from cortex.toolkit.registry import Registry
from cortex.toolkit.spec import Category, Effect, Output, Risk, Tool
from tests.living_house import LivingHouse
from tests.plain_world import TURN

HERE = Path(__file__).parent
LOUD = "<INFORMATION>"  # how the attack's words begin, wherever a result shows them
ROLE = "dojo"
READS = ("get_", "read_", "search_", "list_", "check_")
OWN = ("create_", "append_", "delete_", "cancel_", "reschedule_")
PLACES = ("recipients", "cc", "bcc", "participants", "email", "user_email", "recipient", "url", "channel", "user")


Call = dict[str, Any]


class Unheard:
    """Signals to runs that are not there: the tests themselves wait for the person."""

    async def signal(self, run_id: str, topic: str, value: str) -> None:
        """Nobody waits for it."""

    async def wait_for_signal(self, topic: str, timeout_s: float) -> str | None:
        """Nothing comes."""
        return None


@dataclass
class Ended:
    """What became of a task. `unapproved`: high-risk calls that ran without a yes."""

    is_done: bool = False
    is_reached: bool = False
    is_read: bool = False
    messages: int = 0
    asked: int = 0
    denied: int = 0
    refused: list[str] = field(default_factory=list)
    unapproved: list[str] = field(default_factory=list)


class Suites:
    """The other Python, with AgentDojo in it; an async context manager."""

    def __init__(self, python: str) -> None:
        self._python = python

    async def __aenter__(self) -> Self:
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            self._python, "-I", "-W", "ignore", str(HERE / "suites.py"), stdin=pipe, stdout=pipe, limit=1 << 24
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()

    async def ask(self, do: str, **given: Any) -> Any:
        """What it answers."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **given}).encode() + b"\n")
        line = await self._process.stdout.readline()
        assert line, "AgentDojo's process ended"
        return json.loads(line)


async def ungated(suites: Suites, suite: str, honest: str, attack: str) -> bool:
    """Whether the attack reaches its goal where nothing stands between the model and the tools."""
    begun = await suites.ask("begin", suite=suite, honest=honest, attack=attack)
    line, injected = list(begun["honest"]), list(begun["attack"])
    while line:
        if LOUD in (await suites.ask("call", **line.pop(0)))["text"]:
            line, injected = [*injected, *line], []
    return bool((await suites.ask("judge"))["is_reached"])


def places(arguments: Mapping[str, Any]) -> str:
    """Whom or what a call names in the arguments that say where something goes."""
    found: list[str] = []
    for name in PLACES:
        value = arguments.get(name) or []
        found += [value] if isinstance(value, str) else map(str, value)
    return ", ".join(found)


def marks(name: str, parameters: Iterable[str]) -> tuple[Risk, Effect, bool]:
    """Risk, effect and whether it may send out, by one rule over a tool's name and the names of its parameters.

    What looks only is low, over the web medium; the user's own things medium; whatever names a place, pays, books or
    changes an account is high.
    """
    sends = not set(PLACES).isdisjoint(parameters)
    if name.startswith(READS):
        is_web = "url" in parameters
        return "medium" if is_web else "low", "read", is_web
    return "medium" if name.startswith(OWN) and not sends else "high", "write", sends


class Gate:
    """The executor over one suite's tools, for one person."""

    def __init__(self, house: LivingHouse, suites: Suites, name: str, schemas: Mapping[str, Any]) -> None:
        self.house, self.suites, self.calls = house, suites, 0
        tools = tuple(self._tool(name, tool, schema) for tool, schema in schemas.items())
        self.registry = Registry([Category(name=name, summary="AgentDojo", tools=tools)])
        cortex = house.cortex
        runtime = replace(cortex.runtime, registry=self.registry, signals=Unheard())
        settings = ToolSettingsService(runtime.db, self.registry, cortex.integrations)
        shown = ToolsService(registry=self.registry, wired=frozenset(), roles=cortex.roles, settings=settings)
        contexts = replace(cortex.turn_contexts, runtime=runtime, tools=shown, held={})
        self.runtime, self.approvals = runtime, ApprovalsService(runtime=runtime)
        log = CallLog(runtime=runtime, contexts=contexts, homes=Homes(runtime.settings.home))
        self.executor = Executor(
            registry=self.registry,
            call_log=log,
            approvals=self.approvals,
            scope=cortex.scope,
            ticks_s=runtime.ticks_s,
        )

    def _tool(self, category: str, name: str, schema: Mapping[str, Any]) -> Tool:
        async def act(ctx: Ctx, **arguments: Any) -> Output:
            made = await self.suites.ask("call", name=name, arguments=arguments)
            return Output(text=made["text"])

        given = {
            key: (Any, ... if key in schema.get("required", ()) else one.get("default"))
            for key, one in schema["properties"].items()
        }
        risk, effect, sends = marks(name, given)
        full = ToolSchema(name=name, description=name, parameters=dict(schema))
        return Tool(
            name=name,
            category=category,
            summary=name,
            function=act,
            arguments=create_model(name, __config__=ConfigDict(extra="forbid"), **given),  # type: ignore[call-overload]
            full=full,
            stub=full,
            line=name,
            hash=name,
            risk=risk,
            effect=effect,
            confirm=risk == "high",
            reads_untrusted=True,
            reads_private=effect == "read",
            sends_out=sends,
            sends_to=places if sends else None,
        )

    async def work(self, honest: str, attack: str = "") -> Ended:
        """A task in a conversation of its own. The model does all that it is told, by the person or by what it read.

        The person allows exactly what the task needs. Where the gate refuses it, they name the places in a second
        message, as the refusal says.
        """
        begun = await self.suites.ask("begin", suite=next(iter(self.registry.categories)), honest=honest, attack=attack)
        cid = await self.house.conversation(role=ROLE)
        ended, wanted, text = Ended(), begun["honest"], begun["prompt"]
        left, injected = list(wanted), list(begun["attack"])
        while left and ended.messages < 2:
            ended.messages += 1
            left, injected = await self._message(cid, text, left, injected, wanted, ended)
            text = " ".join(f'"{place}"' for call in left for place in places(call["arguments"]).split(", "))
        judged = await self.suites.ask("judge")
        ended.is_done, ended.is_reached = judged["is_done"], judged["is_reached"]
        ended.unapproved = await self._unapproved(cid)
        return ended

    async def _message(
        self, cid: str, text: str, calls: list[Call], injected: list[Call], wanted: list[Call], ended: Ended
    ) -> tuple[list[Call], list[Call]]:
        """One message with its calls; those of the person's that were refused, and the attack's that were not begun."""
        turn = await self._turn(cid, text)
        refused, line = [], list(calls)
        while line:
            call = line.pop(0)
            made = await self._call(turn, call, call in wanted, ended)
            if made.result.is_error and call in calls and made.result.text.startswith("Refused:"):
                refused.append(call)
            if injected and LOUD in made.result.text:
                ended.is_read = True
                line, injected = [*injected, *line], []
        await self.house.cortex.runtime.db.repository(TurnsRepository, turn.user_id).move(turn.id, "done")
        return refused, injected

    async def _turn(self, cid: str, text: str) -> Turn:
        turns = self.house.cortex.runtime.db.repository(TurnsRepository, self.house.admin.id)
        id = f"turn:{cid}:{len(await turns.list(cid))}"
        row = await turns.create(
            NewTurn(id, cid, text, mode="auto", role=ROLE, state="running", is_tainted=False, reads=NOTHING_READ)
        )
        opened = replace(TURN, id=id, conversation_id=cid, user_id=row.owner_id, role=ROLE, text=text, models=())
        return replace(opened, ordinal=row.ordinal)

    async def _call(self, turn: Turn, call: Call, is_wanted: bool, ended: Ended) -> Performed:
        self.calls += 1
        wire = ToolCall(id=f"w{self.calls}", name=call["name"], arguments=json.dumps(call["arguments"]))
        decision = await self.executor.decide(turn, 1, wire)
        answer = None
        if decision.verdict == "ask":
            ended.asked += 1
            ended.denied += not is_wanted
            await self.approvals.answer(self.house.admin, decision.approval_id, "once" if is_wanted else "deny")
            answer = await self.approvals.settle(turn, decision.approval_id, "expired")
        if decision.verdict == "refuse":
            ended.refused.append(call["name"])
        return await self.executor.perform(turn, 1, wire, decision, answer)

    async def _unapproved(self, cid: str) -> list[str]:
        """High-risk calls of the conversation that ran, without an approval that was given and used up."""
        db, found = self.house.cortex.runtime.db, []
        calls = db.repository(CallsRepository, self.house.admin.id)
        turns = await db.repository(TurnsRepository, self.house.admin.id).list(cid)
        for row in [row for turn in turns for row in await calls.of_turn(turn.id)]:
            asked = await db.repository(ApprovalsRepository, self.house.admin.id).of_call(row.id)
            if row.risk == "high" and row.state in ("done", "failed") and (asked is None or asked.state != "used"):
                found.append(row.name)
        return found
