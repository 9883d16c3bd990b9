"""Background agents from the chat: started once, looked after, stopped; one user's are unknown to another."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace
from pydantic import ValidationError

from cortex.base.errors import NotFound, ToolFailed
from cortex.base.user import User
from cortex.ports.agents import AgentRun, Agents
from tests.tool_world import World

TASK = "compare three offers"


START = datetime(2026, 11, 20, 22, tzinfo=UTC)
ROLES = ("orchestrator", "research", "coder")


@dataclass
class MemoryAgents:
    rows: dict[str, AgentRun] = field(default_factory=dict)
    tainted: set[str] = field(default_factory=set)

    async def start(self, id: str, parent_turn: str, task: str, role: str, is_tainted: bool) -> AgentRun:
        if role not in ROLES:
            raise ToolFailed(f"There is no role {role!r}. Roles: {', '.join(ROLES)}.")
        self.tainted |= {id} if is_tainted else set()
        made = AgentRun(
            id=id, task=task, kind="agent", role=role, state="running", started_at=START, is_tainted=is_tainted
        )
        return self.rows.setdefault(id, made)

    async def must_be_possible(self, parent_turn: str, role: str) -> None:
        if role not in ROLES:
            raise ToolFailed(f"There is no role {role!r}. Roles: {', '.join(ROLES)}.")

    async def list(self, most: int) -> Sequence[AgentRun]:
        return list(reversed(self.rows.values()))[:most]

    async def get(self, id: str) -> AgentRun:
        if id not in self.rows:
            raise NotFound("This agent does not exist.")
        return self.rows[id]

    async def cancel(self, id: str) -> AgentRun:
        self.rows[id] = replace(await self.get(id), state="cancelled", ended_at=START)
        return self.rows[id]

    def end(self, id: str, result: str) -> None:
        self.rows[id] = replace(self.rows[id], state="done", ended_at=START, tokens=1_200, result=result)


class SpentAgents(MemoryAgents):
    async def start(self, id: str, parent_turn: str, task: str, role: str, is_tainted: bool) -> AgentRun:
        raise ToolFailed("The budget of this turn is spent.")


@pytest.fixture
def kept(world: World) -> dict[str, MemoryAgents]:
    made: dict[str, MemoryAgents] = defaultdict(MemoryAgents)
    world.bound[Agents] = made.__getitem__
    return made


async def test_a_task_is_handed_over_once(world: World, ann: User, kept: dict[str, MemoryAgents]) -> None:
    for _ in range(2):
        ctx = world.ctx(ann, call_id="one")
        text = (await world.run(ctx, "spawn_agent", task=" compare three offers ", role="research")).text
    assert text.startswith(f"Started in the background: {TASK} (id ")
    assert "research, running since 2026-11-20 23:00" in text
    assert len(kept[ann.id].rows) == 1


async def test_an_agent_works_in_the_role_of_its_parent_unless_told(
    world: World, ann: User, kept: dict[str, MemoryAgents]
) -> None:
    await world.run(world.ctx(ann, role="coder", is_tainted=True), "spawn_agent", task="tidy up")
    (run,) = kept[ann.id].rows.values()
    assert (run.role, kept[ann.id].tainted) == ("coder", {run.id})


@pytest.mark.parametrize(
    ("arguments", "says"),
    [({"task": " "}, "1 to 4000"), ({"task": "x" * 4_001}, "1 to 4000"), ({"task": "a", "role": "boss"}, "no role")],
    ids=["empty", "long", "role"],
)
async def test_what_cannot_be_handed_over_is_said(
    world: World, ann: User, kept: dict[str, MemoryAgents], arguments: dict[str, str], says: str
) -> None:
    with pytest.raises(ToolFailed, match=says):
        await world.text(ann, "spawn_agent", **arguments)
    assert kept[ann.id].rows == {}


@pytest.mark.usefixtures("kept")
async def test_wrong_arguments_run_nothing(world: World, ann: User) -> None:
    with pytest.raises(ValidationError):
        await world.text(ann, "spawn_agent", task="a", budget=5)


@pytest.mark.parametrize("is_tainted", [True, False])
async def test_a_result_is_shown_and_marked_as_its_run_is(
    world: World, ann: User, kept: dict[str, MemoryAgents], is_tainted: bool
) -> None:
    assert "No agent" in await world.text(ann, "agent_status")
    await world.run(world.ctx(ann, is_tainted=is_tainted), "spawn_agent", task=TASK)
    kept[ann.id].end(next(iter(kept[ann.id].rows)), "The second one." + "x" * 5_000)
    done = await world.run(world.ctx(ann), "agent_status", agent="offers")
    assert all(part in done.text for part in ("done 2026-11-20 23:00", "1,200 tokens", "The second one."))
    assert len(done.text) < 4_200
    looks = (done, await world.run(world.ctx(ann), "agent_status"))
    stopped = await world.run(world.ctx(ann), "agent_cancel", agent="offers")
    assert {one.is_tainted for one in (*looks, stopped)} == {is_tainted}


async def test_an_agent_is_stopped_by_its_words(world: World, ann: User, kept: dict[str, MemoryAgents]) -> None:
    await world.text(ann, "spawn_agent", task=TASK)
    assert TASK in await world.text(ann, "agent_cancel", agent="three offers")
    again = await world.text(ann, "agent_cancel", agent="offers")
    assert "already" in again
    assert [run.state for run in kept[ann.id].rows.values()] == ["cancelled"]


@pytest.mark.usefixtures("kept")
async def test_a_running_one_is_meant_before_an_ended_one(world: World, ann: User) -> None:
    await world.text(ann, "spawn_agent", task="read the news")
    await world.text(ann, "agent_cancel", agent="news")
    await world.text(ann, "spawn_agent", task="sum up the news")
    assert (await world.text(ann, "agent_cancel", agent="news")).startswith("Stopped: sum up")


@pytest.mark.usefixtures("kept")
async def test_two_that_fit_are_named_instead_of_guessed(world: World, ann: User) -> None:
    for task in ("read the news", "sum up the news"):
        await world.text(ann, "spawn_agent", task=task)
    with pytest.raises(ToolFailed, match="2 agents fit 'news'"):
        await world.text(ann, "agent_cancel", agent="news")
    for words in ("weather", ""):
        with pytest.raises(ToolFailed):
            await world.text(ann, "agent_cancel", agent=words)


async def test_another_users_agents_are_out_of_reach(
    world: World, ann: User, ben: User, kept: dict[str, MemoryAgents]
) -> None:
    await world.text(ann, "spawn_agent", task="ann's secret")
    (run_id,) = kept[ann.id].rows
    assert "No agent" in await world.text(ben, "agent_status")
    for words in (run_id, "secret"):
        for name in ("agent_status", "agent_cancel"):
            with pytest.raises(ToolFailed):
                await world.text(ben, name, agent=words)
    assert kept[ann.id].rows[run_id].state == "running"


async def test_a_spent_budget_is_no_silent_success(world: World, ann: User) -> None:
    world.wired[Agents] = SpentAgents()
    with pytest.raises(ToolFailed, match="budget"):
        await world.text(ann, "spawn_agent", task=TASK)


async def test_a_list_that_stops_says_so(world: World, ann: User, kept: dict[str, MemoryAgents]) -> None:
    for number in range(11):
        await kept[ann.id].start(f"agent:{number}", "turn:1", f"task {number}", "research", is_tainted=False)
    told = await world.text(ann, "agent_status")
    assert told.count("task ") == 10
    assert "and older ones" in told
