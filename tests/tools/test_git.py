"""git from the chat: status, history, changes of a repository in the user's folders."""

import subprocess
from pathlib import Path

import pytest

from cortex.base.errors import CortexError, ToolFailed
from cortex.base.user import User
from cortex.integrations.git import Git
from cortex.integrations.sandbox import Sandbox
from tests.integrations.paths import TRAVERSALS
from tests.tool_world import World


@pytest.fixture
async def repository(world: World, ann: User) -> Path:
    sandbox = Sandbox()
    probe = await sandbox.probe()
    if probe.level == "none":
        pytest.skip(f"needs a sandbox: {probe.reason}")
    world.wired[Git] = Git(sandbox)
    return _made(world.homes.root / ann.id / "files" / "project")


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("one\n")
    identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "init.defaultBranch=main"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Begin the story"]):
        subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)
    return folder


async def test_a_clean_repository(world: World, ann: User, repository: Path) -> None:
    assert (await world.text(ann, "git_status", folder="project")).splitlines()[0] == "## main"
    assert await world.text(ann, "git_diff", folder="project") == "No changes."


async def test_changes_and_history(world: World, ann: User, repository: Path) -> None:
    (repository / "a.txt").write_text("one\ntwo\n")
    assert " M a.txt" in await world.text(ann, "git_status", folder="project")
    assert "+two" in await world.text(ann, "git_diff", folder="project")
    assert await world.text(ann, "git_diff", folder="project", path="b.txt") == "No changes."
    assert "Ann: Begin the story" in await world.text(ann, "git_log", folder="project", count=1)


@pytest.mark.parametrize("revision", ["--output=x", "-O", "", "a b", "$(id)", "a;b", "x" * 201, "HEAD\n"])
async def test_a_revision_must_be_one(world: World, ann: User, repository: Path, revision: str) -> None:
    for name in ("git_log", "git_diff"):
        with pytest.raises(ToolFailed):
            await world.text(ann, name, folder="project", revision=revision)
    assert not (repository / "x").exists()


@pytest.mark.parametrize("revision", ["none", "HEAD~9", "v1..v2"])
async def test_an_unknown_revision_is_told(world: World, ann: User, repository: Path, revision: str) -> None:
    with pytest.raises(ToolFailed, match="git could not"):
        await world.text(ann, "git_log", folder="project", revision=revision)


@pytest.mark.parametrize("folder", ["", "..", "/", "/etc", "none", "~"])
async def test_a_folder_without_a_repository_is_told(world: World, ann: User, repository: Path, folder: str) -> None:
    with pytest.raises(CortexError):
        await world.text(ann, "git_status", folder=folder)


async def test_another_users_repository_is_out_of_reach(world: World, ann: User, ben: User, repository: Path) -> None:
    for folder in ("project", f"../../{ann.id}/files/project", str(repository)):
        with pytest.raises(CortexError):
            await world.text(ben, "git_log", folder=folder)


async def test_no_folder_leads_outside(world: World, ann: User, repository: Path) -> None:
    _made(world.homes.root / "outside")
    (repository.parent / "up").symlink_to(world.homes.root)
    (repository.parent / "link").symlink_to(world.homes.root / "outside")
    (repository.parent / "root").symlink_to("/")
    for folder in (
        *TRAVERSALS,
        "../../outside",
        "up/outside",
        "link",
        "project/../link",
        f"root{world.homes.root}/outside",
    ):
        with pytest.raises(CortexError):
            await world.text(ann, "git_log", folder=folder)
