"""A real aider in the sandbox: what it edits comes back as a commit; what a repository or a model does is told."""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from cortex.base.errors import ToolFailed
from cortex.integrations.aider.clones import TREE, Clones
from cortex.integrations.aider.door import ModelRefused
from cortex.integrations.aider.runs import AiderEnd, AiderTask, installation_at, run_aider
from cortex.integrations.sandbox import Sandbox
from tests.patience import PATIENCE_S
from tests.real_aider import AIDER, EDIT, NO_AIDER

IS_BOXED = asyncio.run(Sandbox().probe()).level == "bubblewrap"
pytestmark = [
    pytest.mark.skipif(bool(NO_AIDER), reason=NO_AIDER),
    pytest.mark.skipif(not IS_BOXED, reason="aider needs bubblewrap"),
]
Complete = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


class Person:
    """A repository of somebody's, and a place for a run in a clone of it."""

    def __init__(self, folder: Path) -> None:
        self.repository, self.run = folder / "repository", folder / "home" / "run"
        self.repository.mkdir()
        self.run.mkdir(parents=True)
        self.clones = Clones(sandbox=Sandbox(home=folder / "home"))
        self.lines: list[str] = []
        self.git("init", "--quiet", "--initial-branch=main")
        self.write("hello.py", "def greet():\n    return 'hello'\n")
        self.commit()

    def git(self, *arguments: str) -> str:
        command = ["git", "-c", "user.name=ada", "-c", "user.email=ada@example.org", *arguments]
        done = subprocess.run(command, cwd=self.repository, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def write(self, name: str, text: str) -> None:
        (self.repository / name).write_text(text)

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "more")

    async def has(self, complete: Complete, *, timeout_s: float = PATIENCE_S, message: str = "greet well") -> AiderEnd:
        """Have aider do it."""
        base = await self.clones.head(self.repository)
        await self.clones.clone(self.repository, self.run, base)
        return await run_aider(
            self.clones,
            installation_at(AIDER),
            AiderTask(folder=self.run, base=base, message=message, files=("hello.py",)),
            complete=complete,
            on_line=self.lines.append,
            timeout_s=timeout_s,
        )


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


def answering(edit: str) -> Complete:
    async def complete(asked: dict[str, Any]) -> dict[str, Any]:
        is_message = "commit message" in str(asked["messages"][0]["content"]).lower()
        message = {"role": "assistant", "content": "Greet well" if is_message else edit}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        head = {"id": "x", "object": "chat.completion", "created": 1, "model": "cortex"}
        return {**head, "choices": [choice], "usage": usage}

    return complete


def refusing(words: str) -> Complete:
    async def complete(_: dict[str, Any]) -> dict[str, Any]:
        raise ModelRefused(words)

    return complete


async def test_an_edit_comes_back_as_a_commit_and_is_merged_into_a_dirty_repository(person: Person) -> None:
    person.write("lying about.txt", "mine")
    ended = await person.has(answering(EDIT))
    assert ended.failure == ""
    assert ended.asked == 2
    assert ended.strange == ()
    assert "+    return 'good day'" in ended.changes.diff
    assert "hello.py | 2 +-" in ended.changes.stat
    assert any("Applied edit to hello.py" in line for line in person.lines)
    assert "hello" in (person.repository / "hello.py").read_text()  # nothing is merged unasked
    for _ in range(2):  # a second time changes nothing
        await person.clones.merge(person.repository, person.run / TREE, ended.changes.commit, "cortex/run")
    assert "good day" in (person.repository / "hello.py").read_text()
    assert person.git("log", "-1", "--format=%s") == "Greet well"
    assert person.git("status", "--porcelain") == '?? "lying about.txt"'
    assert not list(person.repository.glob(".aider*"))


async def test_what_stands_in_the_way_leaves_a_branch(person: Person) -> None:
    ended = await person.has(answering(EDIT))
    person.write("hello.py", "def greet():\n    return 'moin'\n")
    with pytest.raises(ToolFailed, match="The work is on the branch cortex/run"):
        await person.clones.merge(person.repository, person.run / TREE, ended.changes.commit, "cortex/run")
    person.commit()
    with pytest.raises(ToolFailed, match="The work is on the branch cortex/run"):
        await person.clones.merge(person.repository, person.run / TREE, ended.changes.commit, "cortex/run")
    assert person.git("rev-parse", "cortex/run") == ended.changes.commit
    assert "moin" in (person.repository / "hello.py").read_text()


async def test_an_answer_without_an_edit_changes_nothing(person: Person) -> None:
    ended = await person.has(answering("It is fine as it is."))
    assert (ended.failure, ended.changes.commit) == ("", "")


@pytest.mark.parametrize("words", ["The model's server refuses the key (401).", "The model's server failed (500)."])
async def test_a_model_that_does_not_answer_is_told_once(person: Person, words: str) -> None:
    ended = await person.has(refusing(words))
    assert ended.failure == words
    assert ended.asked == 1
    assert ended.changes.commit == ""


async def test_a_model_that_hangs_ends_by_the_time_limit_and_by_a_cancel(person: Person) -> None:
    asked = asyncio.Event()

    async def hang(_: dict[str, Any]) -> dict[str, Any]:
        asked.set()
        await asyncio.Event().wait()
        return {}

    async with asyncio.TaskGroup() as group:
        working = group.create_task(person.has(hang))
        await asyncio.wait_for(asked.wait(), PATIENCE_S)
        working.cancel()
    assert working.cancelled()
    (person.run / "again").mkdir()
    person.run = person.run / "again"
    ended = await person.has(hang, timeout_s=15)
    assert "15 seconds" in ended.failure


async def test_nothing_that_a_repository_names_is_run(person: Person) -> None:
    """Settings of aider, hooks, filters, a monitor: each would leave a file."""
    person.write(".env", "AIDER_TEST_CMD=touch OWNED\nAIDER_AUTO_TEST=true\nOPENAI_API_BASE=http://127.0.0.1:1\n")
    person.write(".aider.conf.yml", "test-cmd: touch OWNED\nauto-test: true\nlint-cmd: touch OWNED\nauto-lint: true\n")
    person.write(".aider.model.settings.yml", "- name: openai/cortex\n  edit_format: whole\n")
    person.write(".gitattributes", "*.py filter=owned\n")
    person.commit()
    owned = person.repository.parent / "OWNED"
    for key in ("filter.owned.clean", "filter.owned.smudge", "core.fsmonitor", "core.sshCommand"):
        person.git("config", key, f"touch {owned}; cat")
    hooks = person.repository / ".git" / "hooks"
    for name in ("post-checkout", "pre-commit", "post-merge", "post-commit", "reference-transaction"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {owned}\n")
        (hooks / name).chmod(0o755)
    ended = await person.has(answering(EDIT))
    assert ended.failure == ""
    await person.clones.merge(person.repository, person.run / TREE, ended.changes.commit, "cortex/run")
    assert "good day" in (person.repository / "hello.py").read_text()
    assert not list(person.repository.parent.rglob("OWNED"))


async def test_what_is_no_repository_is_refused(person: Person, tmp_path: Path) -> None:
    person.repository = tmp_path / "empty"
    person.repository.mkdir()
    with pytest.raises(ToolFailed, match="not a git repository"):
        await person.clones.head(tmp_path / "empty")
    person.git("init", "--quiet")
    with pytest.raises(ToolFailed, match="has no commit yet"):
        await person.clones.head(tmp_path / "empty")
