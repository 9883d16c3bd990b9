"""The coding agent as a service: begun once, followed, merged by an admin's word, its model calls in the ledger."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cortex.base.errors import Conflict, NotAllowed, NotFound, ToolFailed
from cortex.integrations.sandbox import Sandbox
from cortex.ports.agents import Agents, AllowedFolders, CodingAgent, CodingTask
from cortex.services.agents.coding import GONE
from cortex.storage.audit import AuditRepository
from cortex.storage.coding import CodingRunsRepository
from cortex.storage.rounds import RoundsRepository
from tests.aider_double import install
from tests.living_house import LivingHouse, living_house
from tests.on_disk import folder_on_disk as folder_on_disk
from tests.patience import PATIENCE_S
from tests.real_aider import AIDER, EDIT, NO_AIDER
from tests.scripted_server import ScriptedServer, rule

IS_BOXED = asyncio.run(Sandbox().probe()).level == "bubblewrap"
pytestmark = pytest.mark.skipif(not IS_BOXED, reason="the coding agent needs bubblewrap")
PROGRAMS = ["double", pytest.param("real", marks=pytest.mark.skipif(bool(NO_AIDER), reason=NO_AIDER))]
TASK = CodingTask(repository="shop", message="greet well", files=("hello.py",))


def git(repository: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=ada", "-c", "user.email=ada@example.org", *arguments]
    return subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True).stdout.strip()


def repository_in(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    (folder / "hello.py").write_text("def greet():\n    return 'hello'\n")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "one")
    return folder


class Shop:
    """A house with the coding agent set up for one repository, and a scripted model behind it."""

    def __init__(self, house: LivingHouse, repository: Path) -> None:
        self.house, self.repository = house, repository
        self.coding = house.cortex.coding

    async def ended(self, id: str, task: CodingTask = TASK) -> Any:
        await self.coding.start(self.house.admin.id, id, task)
        return await self.coding.wait(self.house.admin.id, id, PATIENCE_S)


@pytest.fixture(params=PROGRAMS)
async def shop(tmp_path: Path, scripted: ScriptedServer, request: pytest.FixtureRequest) -> AsyncIterator[Shop]:
    program = AIDER if request.param == "real" else install(tmp_path / "aider")
    scripted.rules = [rule("greet well", EDIT), rule("diff", "Greet well")]
    repository = repository_in(tmp_path / "shop")
    async with living_house(tmp_path / "home") as house:
        ada, cortex = house.admin, house.cortex
        await house.connect(scripted)
        card = {"repositories": f"shop={repository}", "program": str(program), "timeout_s": "100"}
        said = await cortex.integrations.test(ada, "coding", "", card)
        assert "Repositories: shop." in said
        await cortex.integrations.save(ada, "coding", "", card, is_new=True)
        yield Shop(house, repository)


async def test_what_it_made_is_merged_by_an_admins_word_and_counted(shop: Shop) -> None:
    ada, cortex = shop.house.admin, shop.house.cortex
    assert "aider_run" in await cortex.tools.permitted(ada, "coder")
    assert "aider_run" not in await cortex.tools.permitted(shop.house.member, "coder")
    run = await shop.ended("r1")
    assert run.state == "waiting", run.failure
    assert "+    return 'good day'" in run.diff
    assert "Applied edit to hello.py" in run.said
    assert "hello" in (shop.repository / "hello.py").read_text()
    again = await shop.coding.start(ada.id, "r1", TASK)  # a step that is done again
    assert again.made == run.made
    titles = [notice.row.title for notice in (await cortex.notices.page(ada.id)).notices]
    assert titles == ["The coding agent in shop made a commit for you to review"]
    with pytest.raises(NotAllowed):
        await shop.coding.merge(shop.house.member, "r1")
    with pytest.raises(NotFound):
        await shop.coding.get(shop.house.member.id, "r1")
    assert (await shop.coding.merge(ada, "r1")).state == "done"
    assert "good day" in (shop.repository / "hello.py").read_text()
    with pytest.raises(Conflict):
        await shop.coding.merge(ada, "r1")
    assert not (cortex.settings.home / "coding" / "r1").exists()
    agents = await cortex.scope.provide(Agents, ada.id).list(5)
    assert [(one.kind, one.state) for one in agents] == [("coding", "done")]


async def test_a_run_is_stopped_dropped_and_refused_while_another_is_at_work(
    shop: Shop, scripted: ScriptedServer
) -> None:
    ada = shop.house.admin
    scripted.delay_s = 3_600
    await shop.coding.start(ada.id, "slow", TASK)
    with pytest.raises(ToolFailed, match="already working in this repository"):
        await shop.coding.start(ada.id, "second", TASK)
    stopped = await shop.house.cortex.scope.provide(Agents, ada.id).cancel("slow")
    assert stopped.state == "cancelled"
    scripted.delay_s = 0
    assert (await shop.ended("third")).state == "waiting"
    assert (await shop.coding.stop(ada.id, "third")).state == "cancelled"
    assert "hello" in (shop.repository / "hello.py").read_text()


async def test_an_answer_without_an_edit_changes_nothing(shop: Shop, scripted: ScriptedServer) -> None:
    scripted.rules = [rule("greet well", "It is fine as it is.")]
    run = await shop.ended("r1")
    assert (run.state, run.made, run.failure) == ("done", "", "")


async def test_a_model_that_refuses_its_key_is_told(shop: Shop, scripted: ScriptedServer) -> None:
    scripted.api_key = "another key"
    run = await shop.ended("r1")
    assert (run.state, run.made) == ("failed", "")
    assert "401" in run.failure or "key" in run.failure


async def test_what_a_killed_process_left_counts_as_failed(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    ada, db = shop.house.admin, shop.house.cortex.runtime.db
    await db.repository(CodingRunsRepository, ada.id).begin("lost", TASK, folder=str(shop.repository), base="0")
    assert (await shop.coding.get(ada.id, "lost")).state == "running"
    monkeypatch.setattr("cortex.services.agents.coding.LOST", timedelta(0))
    run = await shop.coding.get(ada.id, "lost")
    assert (run.state, run.failure) == ("failed", GONE)


async def test_a_folder_is_allowed_listed_and_taken_away(shop: Shop, tmp_path: Path) -> None:
    ada, cortex = shop.house.admin, shop.house.cortex
    repository_in(tmp_path / "many" / "tools")
    folders = cortex.scope.provide(AllowedFolders, ada.id)
    agent = cortex.scope.provide(CodingAgent, ada.id)
    many = str(tmp_path / "many")
    assert await folders.allow(many)
    assert not await folders.allow(many)
    assert {"tools", "shop"} <= {one.alias for one in await agent.repositories()}
    for forbidden in (str(cortex.settings.home), "/", "/proc", str(tmp_path), str(tmp_path / "nothing")):
        with pytest.raises(ToolFailed):
            await folders.must_be_possible(forbidden)
    with pytest.raises(NotAllowed):
        await cortex.scope.provide(AllowedFolders, shop.house.member.id).allow(str(tmp_path / "many" / "tools"))
    await cortex.coding.revoke(ada, many)
    log = await cortex.runtime.db.repository(AuditRepository).list(limit=99)
    assert [row.action for row in log if row.subject == many] == ["coding.folder_revoked", "coding.folder_allowed"]
    assert "tools" not in {one.alias for one in await agent.repositories()}


async def test_its_questions_stand_in_the_ledger_and_a_budget_ends_them(shop: Shop) -> None:
    ada, cortex = shop.house.admin, shop.house.cortex
    rounds = cortex.runtime.db.repository(RoundsRepository, ada.id)
    midnight = cortex.runtime.clock() - timedelta(hours=1)
    assert (await shop.ended("r1")).state == "waiting"
    assert (await rounds.spent(midnight)).tokens > 0
    await shop.coding.stop(ada.id, "r1")
    await cortex.budget_admin.put(
        ada, {"kind": "user", "subject": "", "limit_tokens": "1", "limit_usd": "", "at_limit": "stop", "model": ""}
    )
    run = await shop.ended("r2")
    assert run.state == "failed"
    assert "limit for today is used up" in run.failure
