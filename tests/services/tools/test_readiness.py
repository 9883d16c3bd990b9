"""Many new tools keep nobody waiting: plans go on with those before until the new ones are indexed."""

import asyncio
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from cortex.app import Cortex
from cortex.base.background import background_tasks
from cortex.base.errors import DamagedFile
from cortex.base.settings import load_settings
from cortex.base.user import User
from cortex.selection.pipeline import make_ready
from cortex.selection.plan.receipt import LISTED
from cortex.selection.types import Snapshot
from cortex.services.roles.roles import Roles
from cortex.services.tools.plans import PlannedRound, opening
from cortex.services.tools.readiness import FAILED_S, FIRST_AFTER_S, NOBODY_S, ToolReadiness
from cortex.services.tools.tools import MANY, ToolsService
from cortex.services.turns.tool_outcomes import came_late
from cortex.storage.home import Homes
from cortex.toolkit.mcp import McpServer, McpTool, mcp_category
from cortex.toolkit.registry import Registry
from cortex.toolkit.spec import Category
from cortex.tools import load
from tests.patience import PATIENCE_S

ROOT = User(id="root", name="root", rank="admin")
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ASKED = "prune the old pear tree in the orchard"


class Indexing:
    """Indexes for real, but only while it may; says when it has been asked to."""

    def __init__(self) -> None:
        self.may, self.begun = threading.Event(), asyncio.Event()
        self.may.set()
        self._loop = asyncio.get_running_loop()

    def __call__(self, snapshot: Snapshot) -> None:
        self._loop.call_soon_threadsafe(self.begun.set)
        assert self.may.wait(PATIENCE_S)
        make_ready(snapshot)


def orchard(count: int) -> Category:
    """A server with so many tools, of which one is asked for."""
    made = [
        McpTool(name=f"tree_{number}", description=f"Water tree {number}", schema={}) for number in range(count - 1)
    ]
    asked = McpTool(name="prune", description="Prune an old pear tree in the orchard", schema={})
    return mcp_category(McpServer(name="orchard", about="an orchard"), [asked, *made])


@pytest.fixture
def registry() -> Registry:
    return load()


@pytest.fixture
async def indexing() -> Indexing:
    return Indexing()


@pytest.fixture
def tools(registry: Registry, indexing: Indexing, tmp_path: Path) -> ToolsService:
    roles = Roles(load(), Homes(tmp_path))
    return ToolsService(registry=registry, wired=frozenset(), roles=roles, assume_configured=True, index=indexing)


async def planned(tools: ToolsService, message: str = ASKED) -> PlannedRound:
    role = replace(await Roles(load()).role(ROOT, "admin"), tools=("all",))
    return await tools.plan_turn(opening(ROOT, role, message, NOON))


async def test_until_many_new_tools_are_indexed_a_message_has_those_before(
    tools: ToolsService, registry: Registry, indexing: Indexing
) -> None:
    await tools.make_ready()
    before = (await planned(tools)).plan
    indexing.may.clear()
    indexing.begun.clear()
    registry.put([orchard(MANY)])
    async with asyncio.TaskGroup() as group:
        group.create_task(tools.make_ready())
        async with asyncio.timeout(PATIENCE_S):
            await indexing.begun.wait()
        meanwhile = (await planned(tools)).plan
        assert not tools.is_ready
        indexing.may.set()
    assert tools.is_ready
    after = (await planned(tools)).plan
    assert meanwhile.decisions == before.decisions
    assert "orchard_prune" not in meanwhile.reachable
    assert "orchard_prune" in {item.name for item in after.sent}


async def test_where_somebody_prepares_not_even_the_first_message_waits_for_many_tools(
    tools: ToolsService, registry: Registry, indexing: Indexing
) -> None:
    registry.put([orchard(MANY)])
    tools.prepare_ahead()
    indexing.may.clear()
    async with asyncio.TaskGroup() as group:
        group.create_task(tools.make_ready())
        async with asyncio.timeout(PATIENCE_S):
            await indexing.begun.wait()
        first = (await planned(tools, "add milk to my shopping list")).plan
        indexing.may.set()
    assert "task_create" in first.reachable
    assert "orchard_prune" not in first.reachable
    assert "orchard_prune" in (await planned(tools)).plan.reachable


async def test_of_ten_thousand_tools_a_receipt_lists_those_of_which_there_is_something_to_say(
    tools: ToolsService, registry: Registry
) -> None:
    registry.put([orchard(LISTED)])
    made = await planned(tools)
    receipt, whole = made.receipt, made.plan.decisions
    listed = {one["name"] for one in receipt["decisions"]}
    assert len(listed) < 100
    assert listed >= {item.name for item in made.plan.sent if item.name.startswith("orchard_")}
    assert receipt["unlisted"] == len(whole) - len(listed)
    assert receipt["permitted"] == len(whole) > LISTED
    (reason,) = {one.reason for one in whole if one.name not in listed}
    assert "speaks for" in reason
    by_stage: dict[str, int] = {}
    for one in whole:
        if not one.is_in:
            by_stage[one.stage] = by_stage.get(one.stage, 0) + one.tokens
    assert {stage: receipt["left_out"][stage] for stage in by_stage} == by_stage
    assert came_late(receipt, next(one.name for one in whole if one.name not in listed))
    assert not came_late(receipt, next(iter(listed & {item.name for item in made.plan.sent})))


async def test_what_is_gone_or_another_by_now_is_left_out_meanwhile(tools: ToolsService, registry: Registry) -> None:
    registry.put([orchard(2)])
    await tools.make_ready()
    assert {"orchard_prune", "orchard_tree_0"} <= set((await planned(tools)).plan.reachable)
    grown = orchard(MANY + 2)
    changed = replace(grown.tools[1], hash="another")
    registry.put([replace(grown, tools=(changed, *grown.tools[2:]))])
    reachable = set((await planned(tools)).plan.reachable)
    assert reachable.isdisjoint({"orchard_prune", "orchard_tree_0", "orchard_tree_1"})
    assert "task_create" in reachable


async def test_a_message_asks_for_the_new_tools_to_be_indexed(tools: ToolsService, registry: Registry) -> None:
    await tools.make_ready()
    assert not tools.grown.is_set()
    registry.put([orchard(MANY)])
    await planned(tools)
    assert tools.grown.is_set()
    await tools.make_ready()
    assert not tools.grown.is_set()


@pytest.mark.parametrize("count", [2, MANY - 1], ids=["two", "the most that are few"])
async def test_a_few_new_tools_are_there_at_once(tools: ToolsService, registry: Registry, count: int) -> None:
    await tools.make_ready()
    registry.put([orchard(count)])
    assert "orchard_prune" in (await planned(tools)).plan.reachable


async def test_with_nothing_indexed_ahead_a_message_waits_for_all(tools: ToolsService, registry: Registry) -> None:
    registry.put([orchard(MANY)])
    assert "orchard_prune" in (await planned(tools)).plan.reachable
    await tools.make_ready()
    tools.forget_ready()
    registry.put([])
    registry.put([orchard(MANY + 1)])
    assert f"orchard_tree_{MANY - 1}" in (await planned(tools)).plan.reachable


async def test_tools_are_indexed_once_somebody_lives_here_and_again_when_many_came(
    tools: ToolsService, registry: Registry, indexing: Indexing, tmp_path: Path
) -> None:
    slept: list[float] = []
    async with Cortex.at_rest(load_settings(None, home=tmp_path / "home")) as house:

        async def sleep(seconds: float) -> None:
            slept.append(seconds)
            if seconds == NOBODY_S:
                assert not indexing.begun.is_set()
                await house.accounts.redeem_setup(await house.accounts.setup_link(), "ann", "a long enough password")

        loaded: list[bool] = []
        keeping = ToolReadiness(
            runtime=house.runtime, accounts=house.accounts, tools=tools, sleep=sleep,
            load_ahead=lambda: loaded.append(True),
        )  # fmt: skip
        async with background_tasks(keeping.keep), asyncio.timeout(PATIENCE_S):
            await indexing.begun.wait()
            before = (await planned(tools)).plan
            indexing.begun.clear()
            registry.put([orchard(MANY)])
            await planned(tools)
            await indexing.begun.wait()
        assert loaded, "what asks a model is loaded behind the tools"
        assert slept == [FIRST_AFTER_S, NOBODY_S]
        assert not tools.is_ready
    assert "orchard_prune" not in before.reachable


@pytest.mark.parametrize("error", [DamagedFile("its file weights.bin is damaged"), OSError("no memory")])
async def test_what_cannot_be_made_ready_is_tried_again_and_told_once(
    registry: Registry, tmp_path: Path, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    left, loaded = [error, error], asyncio.Event()

    def index(snapshot: Snapshot) -> None:
        if left:
            raise left.pop()

    def ready() -> None:
        loop.call_soon_threadsafe(loaded.set)

    async def sleep(seconds: float) -> None:
        assert seconds in {FIRST_AFTER_S, FAILED_S}

    tools = ToolsService(registry=registry, wired=frozenset(), roles=Roles(load(), Homes(tmp_path)), index=index)
    loop = asyncio.get_running_loop()
    async with Cortex.at_rest(load_settings(None, home=tmp_path / "home")) as house:
        await house.accounts.redeem_setup(await house.accounts.setup_link(), "ann", "a long enough password")
        keeping = ToolReadiness(
            runtime=house.runtime, accounts=house.accounts, tools=tools, sleep=sleep,
            load_ahead=ready,
        )  # fmt: skip
        async with background_tasks(keeping.keep), asyncio.timeout(PATIENCE_S):
            await loaded.wait()
            assert tools.is_ready
    told = [each.getMessage() for each in caplog.records if "tools are not ready" in each.getMessage()]
    assert [str(error) in each for each in told] == [True]
