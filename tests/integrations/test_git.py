"""A repository that wants to run something does not get to."""

import subprocess
from pathlib import Path

import pytest

from cortex.base.errors import ToolFailed
from cortex.integrations.git import ENV, OVERRIDES, Git
from cortex.integrations.sandbox import Sandbox

MARK = "evil-ran"


def _git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "files" / "project"
    folder.mkdir(parents=True)
    _git(folder, "init", "-q")
    (folder / "a.txt").write_text("one\n")
    (folder / "b.bin").write_text("x\n")
    _git(folder, "add", ".")
    _git(folder, "commit", "-q", "-m", "Begin the story")
    (folder / "a.txt").write_text("one\ntwo\n")
    return folder


@pytest.fixture
async def git() -> Git:
    sandbox = Sandbox()
    probe = await sandbox.probe()
    if probe.level == "none":
        pytest.skip(f"needs a sandbox: {probe.reason}")
    return Git(sandbox)


async def test_status_log_and_diff(repository: Path, git: Git) -> None:
    root = repository.parent
    assert " M a.txt" in await git.read(root, "project", "status", "--short", "--branch")
    assert "Begin the story" in await git.read(root, "project", "log", "--format=%s")
    assert "+two" in await git.read(root, "project", "diff")


async def test_a_folder_without_a_repository_is_told(repository: Path, git: Git) -> None:
    with pytest.raises(ToolFailed, match="not in a git repository"):
        await git.read(repository.parent, ".", "status")


HOSTILE = {
    "fsmonitor": ("core.fsmonitor", "{script}"),
    "pager": ("core.pager", "{script}"),
    "pager of log": ("pager.log", "{script}"),
    "external diff": ("diff.external", "{script}"),
    "textconv": ("diff.evil.textconv", "{script}"),
    "diff command": ("diff.evil.command", "{script}"),
    "clean filter": ("filter.evil.clean", "{script}"),
    "process filter": ("filter.evil.process", "{script}"),
    "dotted filter": ("filter.e.v.i.l.clean", "{script}"),
    "smudge filter": ("filter.evil.smudge", "{script}"),
    "hooks": ("core.hooksPath", "."),
    "gpg": ("gpg.program", "{script}"),
    "ssh": ("core.sshCommand", "{script}"),
    "editor": ("core.editor", "{script}"),
    "alternate refs": ("core.alternateRefsCommand", "{script}"),
    "askpass": ("core.askPass", "{script}"),
    "credentials": ("credential.helper", "!{script}"),
    "alias": ("alias.status", "!{script}"),
    "proxy": ("core.gitProxy", "{script}"),
    "promisor": ("remote.origin.uploadpack", "{script}"),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_nothing_that_the_configuration_names_is_run(repository: Path, git: Git, name: str) -> None:
    script = repository / "evil.sh"
    script.write_text(f"#!/bin/sh\necho {MARK} >&2\necho {MARK}\ncat\n")
    script.chmod(0o755)
    (repository / "post-index-change").symlink_to("evil.sh")
    key, value = HOSTILE[name]
    _git(repository, "config", key, value.format(script="./evil.sh"))
    _git(repository, "config", "log.showSignature", "true")
    driver = "e.v.i.l" if "dotted" in name else "evil"
    (repository / ".gitattributes").write_text(
        f"*.txt filter={driver} diff={driver}\n*.bin filter={driver} diff=evil\n"
    )
    (repository / "b.bin").write_text("y\n")
    for arguments in (
        ("status", "--short", "--branch"),
        ("log", "-p", "--max-count=5"),
        ("diff", "HEAD"),
    ):
        assert MARK not in await git.read(repository.parent, "project", *arguments)


async def test_a_git_file_that_points_outside_leads_nowhere(repository: Path, git: Git, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    _git(outside, "init", "-q")
    (outside / "s.txt").write_text("s\n")
    _git(outside, "add", ".")
    _git(outside, "commit", "-q", "-m", "A secret commit")
    trap = repository.parent / "trap"
    trap.mkdir()
    (trap / ".git").write_text(f"gitdir: {outside}/.git\n")
    with pytest.raises(ToolFailed):
        await git.read(repository.parent, "trap", "log")


async def test_a_work_tree_outside_is_not_read(repository: Path, git: Git, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("the secret\n")
    _git(repository, "config", "core.worktree", str(tmp_path))
    try:
        text = await git.read(repository.parent, "project", "status", "--short", "--untracked-files=all")
    except ToolFailed as error:
        text = error.message
    assert "secret.txt" not in text


def _times(folder: Path) -> list[tuple[str, int]]:
    return sorted((str(place), place.stat().st_mtime_ns) for place in folder.rglob("*"))


async def test_the_repository_is_not_written_to(repository: Path, git: Git) -> None:
    before = _times(repository)
    await git.read(repository.parent, "project", "status", "--short")
    assert _times(repository) == before


def test_the_overrides_cover_what_git_would_start() -> None:
    named = {override.partition("=")[0] for override in OVERRIDES}
    assert {"core.hooksPath", "core.fsmonitor", "core.pager", "protocol.allow"} <= named
    assert ENV["GIT_CONFIG_NOSYSTEM"] == "1"
