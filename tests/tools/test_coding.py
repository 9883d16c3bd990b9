"""The coding agent from the chat: only in repositories that an admin gave a folder, followed to its commit."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace
from pydantic import ValidationError

from cortex.base.errors import ToolFailed
from cortex.base.user import User
from cortex.ports.agents import AllowedFolders, CodingAgent, CodingRun, CodingTask
from tests.plain_clients import Folders, MemoryCoder
from tests.tool_world import World

START = datetime(2026, 11, 20, 22, tzinfo=UTC)


class NoCoder(MemoryCoder):
    async def start(self, id: str, task: CodingTask) -> CodingRun:
        raise ToolFailed("aider is not installed; an admin sets CORTEX_AIDER_BIN.")


ENDED = CodingRun(
    id="",
    repository="cortex",
    message="add a retry",
    state="done",
    started_at=START,
    ended_at=START,
    commit="0123456789abcdef",
    diff_stat=" net.py | 4 ++--",
    said="Added a retry.",
)


async def test_a_task_is_done_and_its_commit_told(world: World, ann: User) -> None:
    coder = MemoryCoder(ENDED)
    world.wired[CodingAgent] = coder
    text = await world.text(ann, "aider_run", repository="Cortex", message=" add a retry ", files=["net.py"])
    assert "cortex, done 2026-11-20 23:00)" in text
    assert all(part in text for part in ("0123456789ab", " net.py | 4 ++--", "Added a retry."))
    assert coder.tasks == [CodingTask(repository="cortex", message="add a retry", files=("net.py",))]


async def test_a_long_run_goes_on_in_the_background(world: World, ann: User) -> None:
    coder = MemoryCoder()
    world.wired[CodingAgent] = coder
    for is_background in (True, False):
        arguments = {"repository": "cortex", "message": "add a retry", "background": is_background, "notify": True}
        assert "aider_status" in await world.text(ann, "aider_run", **arguments)
    assert all(task.is_told for task in coder.tasks)


@pytest.mark.parametrize(
    ("ends", "says"),
    [
        (replace(ENDED, commit="", diff_stat=""), "Nothing was changed."),
        (replace(ENDED, state="waiting"), "its diff waits for approval"),
        (replace(ENDED, state="failed", commit="", diff_stat="", said="401 from the model"), "401 from the model"),
    ],
    ids=["nothing", "waiting", "failed"],
)
async def test_how_a_run_ended_is_told_as_it_is(world: World, ann: User, ends: CodingRun, says: str) -> None:
    world.wired[CodingAgent] = MemoryCoder(ends)
    assert says in await world.text(ann, "aider_run", repository="cortex", message="add a retry")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"message": " "}, "1 to 8000"),
        ({"message": "x" * 8_001}, "1 to 8000"),
        ({"repository": "aether_api"}, "There is no repository"),
        ({"repository": "/srv/other"}, "Ready: cortex"),
        ({"files": ["../secret"]}, "not a path inside"),
        ({"files": ["/etc/passwd"]}, "not a path inside"),
        ({"files": [".git/hooks/pre-commit"]}, "not a path inside"),
        ({"files": ["--config=x"]}, "not a path inside"),
        ({"files": [""]}, "not a path inside"),
        ({"files": ["a.py"] * 21}, "at most 20"),
    ],
)
async def test_what_may_not_run_does_not(world: World, ann: User, arguments: dict[str, object], says: str) -> None:
    coder = MemoryCoder(ENDED)
    world.wired[CodingAgent] = coder
    with pytest.raises(ToolFailed, match=says):
        await world.text(ann, "aider_run", **{"repository": "cortex", "message": "add a retry", **arguments})
    assert coder.tasks == []


async def test_wrong_arguments_run_nothing(world: World, ann: User) -> None:
    world.wired[CodingAgent] = MemoryCoder(ENDED)
    with pytest.raises(ValidationError):
        await world.text(ann, "aider_run", repository="cortex", message="a", model="gpt")


async def test_a_missing_program_is_said(world: World, ann: User) -> None:
    world.wired[CodingAgent] = NoCoder()
    with pytest.raises(ToolFailed, match="not installed"):
        await world.text(ann, "aider_run", repository="cortex", message="add a retry")


async def test_runs_and_repositories_are_shown(world: World, ann: User) -> None:
    coder = MemoryCoder()
    world.wired[CodingAgent] = coder
    text = await world.text(ann, "aider_status")
    assert ("(id " in text, "Repositories: cortex, shop." in text) == (False, True)
    await world.text(ann, "aider_run", repository="cortex", message="add a retry", background=True)
    (run_id,) = coder.rows
    assert f"(id {run_id[-6:]}, cortex, running since 2026-11-21 00:30)" in await world.text(ann, "aider_status")
    assert "add a retry" in await world.text(ann, "aider_status", run=run_id[-6:])
    with pytest.raises(ToolFailed, match="There is no run"):
        await world.text(ann, "aider_status", run="zzzzzz")


async def test_a_folder_is_allowed_once(world: World, ann: User) -> None:
    folders = Folders()
    world.wired[AllowedFolders] = folders
    assert "may now" in await world.text(ann, "claude_allow_dir", folder=" /srv/app/ ")
    assert "may already" in await world.text(ann, "claude_allow_dir", folder="/srv/app")
    assert folders.allowed == ["/srv/app"]


@pytest.mark.parametrize("folder", ["", "app", "~/app", "/", "/srv", "/srv/../etc/ssh", "/srv/app\0"])
async def test_what_is_no_folder_to_allow_is_refused(world: World, ann: User, folder: str) -> None:
    folders = Folders()
    world.wired[AllowedFolders] = folders
    with pytest.raises(ToolFailed):
        await world.text(ann, "claude_allow_dir", folder=folder)
    assert folders.allowed == []
