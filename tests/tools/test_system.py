"""The house's state, its log, and the boxed shell."""

import logging
from pathlib import Path

import pytest
from pydantic import ValidationError

from cortex.base.errors import CortexError, NotFound, ToolFailed
from cortex.base.log import LogBook
from cortex.base.user import User
from cortex.integrations.sandbox import Sandbox
from cortex.ports.system import Discovered, Discovery, Logs, Restarting, Status, Upgrade, Upkeep
from tests.integrations.paths import TRAVERSALS
from tests.tool_world import World


class GoodStatus:
    async def lines(self) -> tuple[str, ...]:
        return ("Cortex 0.1.0, up since 08:00", "database: good")


class OneTool:
    async def discover(self, turn_id: str, query: str) -> Discovered:
        return Discovered(text=f"task_list fits {query!r}", names=("task_list",))


@pytest.fixture
async def boxed(world: World) -> World:
    sandbox = Sandbox()
    probe = await sandbox.probe()
    if probe.level == "none":
        pytest.skip(f"needs a sandbox: {probe.reason}")
    world.wired[Sandbox] = sandbox
    return world


async def test_the_status_is_told(world: World, ann: User) -> None:
    world.wired[Status] = GoodStatus()
    text = await world.text(ann, "cortex_status")
    assert ("0.1.0" in text, "08:00" in text, "database: good" in text) == (True, True, True)


async def test_a_tool_whose_port_is_not_wired_says_so(world: World, ann: User) -> None:
    for name, arguments in (("cortex_status", {}), ("cortex_logs", {}), ("shell_exec", {"command": "true"})):
        with pytest.raises(NotFound):
            await world.text(ann, name, **arguments)


async def test_log_lines_are_shown_by_level_and_words(world: World, ann: User) -> None:
    book = LogBook(keep=3)
    log = logging.Logger("cortex.test")
    log.addHandler(book)
    for number in range(4):
        log.info("line %d", number)
    log.error("it broke")
    world.wired[Logs] = book
    assert (await world.text(ann, "cortex_logs")).splitlines() == ["line 2", "line 3", "it broke"]
    assert await world.text(ann, "cortex_logs", level="WARNING") == "it broke"
    assert await world.text(ann, "cortex_logs", contains="LINE", lines=1) == "line 3"
    none = await world.text(ann, "cortex_logs", contains="none")
    assert none.startswith("No line")
    with pytest.raises(ValidationError):
        await world.text(ann, "cortex_logs", lines=1_000)


async def test_a_command_works_on_the_users_files(boxed: World, ann: User) -> None:
    assert await boxed.text(ann, "shell_exec", command="echo hello > a.txt; cat a.txt") == "hello"
    assert (boxed.homes.root / ann.id / "files" / "a.txt").read_text() == "hello\n"
    assert "exit code 0" in await boxed.text(ann, "shell_exec", command="true")


async def test_how_a_command_ended_is_told(boxed: World, ann: User) -> None:
    text = await boxed.text(ann, "shell_exec", command="echo bad >&2; exit 3")
    assert ("bad" in text, "exit code 3" in text) == (True, True)
    text = await boxed.text(ann, "shell_exec", command="sleep 30", timeout_s=1)
    assert "than 1 s" in text


async def test_what_a_command_prints_is_marked_as_from_outside(boxed: World, ann: User) -> None:
    assert (await boxed.run(boxed.ctx(ann), "shell_exec", command="ls")).is_tainted


async def test_a_command_sees_no_other_user_and_no_database(boxed: World, ann: User, ben: User, db: object) -> None:
    (boxed.homes.root / ben.id).mkdir(parents=True)
    (boxed.homes.root / ben.id / "scratchpad.md").write_text("ben's")
    root = boxed.homes.root
    text = await boxed.text(
        ann, "shell_exec", command=f"cat {root}/{ben.id}/scratchpad.md ../../*/scratchpad.md; ls .."
    )
    assert "ben's" not in text.splitlines()
    assert "cortex.db" not in text


async def test_a_folder_may_be_named(boxed: World, ann: User, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "main.py").write_text("print('hi')\n")
    boxed.allowed["project"] = tmp_path / "project"
    assert await boxed.text(ann, "shell_exec", command="ls", folder="project:") == "main.py"


async def test_no_folder_leads_outside(boxed: World, ann: User, tmp_path: Path) -> None:
    await boxed.text(ann, "shell_exec", command="mkdir sub; ln -s / root; ln -s .. up; ln -s sub link")
    for folder in (*TRAVERSALS, "root", "root/etc", "link"):
        with pytest.raises(CortexError):
            await boxed.text(ann, "shell_exec", command="ls", folder=folder)


@pytest.mark.parametrize("command", ["", "   ", "x" * 8_001, "a\0b"], ids=["empty", "blank", "long", "nul"])
async def test_a_command_must_be_one(boxed: World, ann: User, command: str) -> None:
    with pytest.raises(ToolFailed):
        await boxed.text(ann, "shell_exec", command=command)


async def test_discovery_names_what_it_found(world: World, ann: User) -> None:
    world.wired[Discovery] = OneTool()
    made = await world.run(world.ctx(ann), "tools_discover", query="my tasks")
    assert made.found == ("task_list",)
    with pytest.raises(ToolFailed):
        await world.text(ann, "tools_discover", query="  ")


async def test_the_bridge_runs_nothing_by_itself(world: World, ann: User) -> None:
    with pytest.raises(ToolFailed, match="tools_discover"):
        await world.text(ann, "tool_call", name="task_list", arguments={})


class Keeper:
    """Upkeep that notes what it was asked to do."""

    def __init__(self, found: Upgrade, earlier: str = "") -> None:
        self.found = found
        self.before = earlier
        self.done: list[str] = []

    async def restart(self, reason: str) -> int:
        self.done.append(f"restart: {reason}")
        return 2

    async def must_be_possible(self) -> None:
        """It can be restarted."""

    async def earlier(self) -> str:
        return self.before

    async def preview(self) -> Upgrade:
        return self.found

    async def update(self, version: str) -> str:
        self.done.append(f"update: {version}")
        return f"Cortex {version} starts as soon as this turn has ended."

    async def roll_back(self, version: str) -> str:
        self.done.append(f"back: {version}")
        return f"Cortex {version} starts as soon as this turn has ended."


class StuckKeeper(Keeper):
    async def update(self, version: str) -> str:
        raise ToolFailed("The copy could not be migrated; nothing was changed.")


NEWER = Upgrade(current="0.2.0", version="0.3.0", changes=tuple(f"change {n}" for n in range(17)), migrations=2)


async def test_a_restart_waits_for_the_turns_that_run(world: World, ann: User) -> None:
    keeper = Keeper(NEWER)
    world.wired[Restarting] = keeper
    text = await world.text(ann, "cortex_restart", reason=" new settings ")
    assert "2 others" in text
    assert keeper.done == ["restart: new settings"]


async def test_an_update_is_shown_before_it_is_made(world: World, ann: User) -> None:
    keeper = Keeper(NEWER)
    world.wired[Upkeep] = keeper
    text = await world.text(ann, "cortex_update")
    assert all(part in text for part in ("0.2.0", "0.3.0", "\n- change 0\n", "2 more", "tables: 2"))
    assert keeper.done == []
    assert "0.3.0 starts" in await world.text(ann, "cortex_update", action="install")
    assert keeper.done == ["update: 0.3.0"]


@pytest.mark.parametrize("action", ["preview", "install"])
async def test_the_newest_version_is_not_installed_again(world: World, ann: User, action: str) -> None:
    keeper = Keeper(Upgrade(current="0.3.0"))
    world.wired[Upkeep] = keeper
    assert "newest version" in await world.text(ann, "cortex_update", action=action)
    assert keeper.done == []


async def test_an_update_can_be_rolled_back_while_there_is_a_way(world: World, ann: User) -> None:
    keeper = Keeper(Upgrade(current="0.3.0"), "0.2.0")
    world.wired[Upkeep] = keeper
    assert "0.2.0 starts" in await world.text(ann, "cortex_update", action="roll_back")
    world.wired[Upkeep] = Keeper(Upgrade(current="0.3.0"))
    with pytest.raises(ToolFailed, match="no earlier version"):
        await world.text(ann, "cortex_update", action="roll_back")


async def test_an_update_that_stopped_is_no_success(world: World, ann: User) -> None:
    world.wired[Upkeep] = StuckKeeper(NEWER)
    with pytest.raises(ToolFailed, match="nothing was changed"):
        await world.text(ann, "cortex_update", action="install")
    with pytest.raises(ValidationError):
        await world.text(ann, "cortex_update", action="force")
