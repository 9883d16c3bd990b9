"""One run of aider in a clone: shut in, its model behind a door, its output a line at a time, judged by what it did.

Its exit code says nothing: it is 0 where the model refused, and where nothing was edited. Its options switch off
everything that reaches out or runs what a repository names (aider 0.86.2, seen with strace).
"""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from cortex.base.errors import ToolFailed
from cortex.integrations.aider import box
from cortex.integrations.aider.clones import TREE, Changes, Clones
from cortex.integrations.aider.door import Completion, open_door
from cortex.integrations.quota import MB, Quota
from cortex.integrations.sandbox import WORK, Limits, RunningService
from cortex.integrations.scratch import scratch_folder

MODEL = "openai/cortex"
LINE_BYTES = 1_000_000
LINES_MOST = 5_000
SAID_LINES = 60
LIMITS = Limits(
    cpu_s=1_800,
    memory_bytes=2_000 * MB,
    address_bytes=20_000 * MB,
    processes=64,
    file_bytes=64 * MB,
    temporary_bytes=128 * MB,
    growth=Quota(most_bytes=500 * MB, most_files=50_000),
)
OPTIONS = (
    *("--model", MODEL, "--weak-model", MODEL, "--edit-format", "diff", "--yes-always", "--no-pretty", "--no-stream"),
    *("--no-check-update", "--no-show-model-warnings", "--no-show-release-notes", "--no-gitignore", "--no-detect-urls"),
    *("--no-suggest-shell-commands", "--analytics-disable", "--map-tokens", "0", "--no-auto-lint", "--no-auto-test"),
    *("--no-dirty-commits", "--no-fancy-input", "--no-notifications", "--env-file", "/dev/null"),
    *("--input-history-file", "/dev/null", "--chat-history-file", "/dev/null", "--llm-history-file", "/dev/null"),
)
FACTS = {
    MODEL: {"max_input_tokens": 128_000, "max_output_tokens": 16_000, "litellm_provider": "openai", "mode": "chat"}
}


class AiderInstallation(Struct, frozen=True, kw_only=True):
    """Where aider is: its program, and the folders that it must be able to read to run."""

    program: Path
    readable: tuple[Path, ...]


class AiderTask(Struct, frozen=True, kw_only=True):
    """A task for aider in `folder`/tree, a clone that began at the commit `base`; `files`: paths in it."""

    folder: Path
    base: str
    message: str
    files: tuple[str, ...]


class AiderEnd(Struct, frozen=True, kw_only=True):
    """The end of a run. `failure`: why it is no success, "" for one; `asked`: how often the model was asked.

    strange: requests for anything else, none of which was answered.
    """

    changes: Changes
    said: str
    asked: int
    strange: tuple[str, ...] = ()
    failure: str = ""


async def run_aider(
    clones: Clones,
    installation: AiderInstallation,
    task: AiderTask,
    *,
    complete: Completion,
    on_line: Callable[[str], None],
    timeout_s: float,
) -> AiderEnd:
    """Have aider do the task; when cancelled, nothing of it goes on."""
    said: list[str] = []
    async with scratch_folder() as place:
        settings, doorway = place / "settings", place / "door"
        await asyncio.to_thread(_write_settings, settings)
        doorway.mkdir(mode=0o700)
        async with open_door(doorway / "model", complete) as door:
            command = _command(installation, doorway / "model", settings, task)
            readable = (*installation.readable, Path(box.__file__).parent, settings, doorway)
            failure = ""
            try:
                async with (
                    asyncio.timeout(timeout_s),
                    clones.sandbox.service(
                        command,
                        workspace=task.folder,
                        limits=LIMITS,
                        env=_environment(),
                        line_bytes=LINE_BYTES,
                        readable=readable,
                    ) as running,
                ):
                    failure = await _followed(running, said, on_line)
            except TimeoutError:
                failure = f"It took longer than {timeout_s:g} seconds and was stopped."
            failure = door.failure or failure
    changes = await clones.changes(task.folder / TREE, task.base)
    if not failure and not door.asked:
        failure = f"aider ended without asking a model: {' '.join(said[-3:])[:300] or 'it said nothing'}"
    return AiderEnd(
        changes=changes,
        said="\n".join(said[-SAID_LINES:]),
        asked=door.asked,
        strange=tuple(door.strange),
        failure=failure,
    )


async def _followed(running: RunningService, said: list[str], on_line: Callable[[str], None]) -> str:
    """Take each line in until it ends; why it was ended, "" where it ended by itself."""

    async def lines(stream: asyncio.StreamReader | None) -> None:
        while stream is not None and (line := await stream.readline()):
            text = line.decode("utf-8", "replace").rstrip()
            if text and len(said) < LINES_MOST:
                said.append(text)
                on_line(text)

    async def whole() -> str:
        async with asyncio.TaskGroup() as group:
            group.create_task(lines(running.process.stdout))
            group.create_task(lines(running.process.stderr))
        await running.process.wait()
        return ""

    works = [asyncio.ensure_future(whole()), asyncio.ensure_future(running.excess())]  # noqa: TID251 - ended below
    try:
        done, _ = await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
        reason = done.pop().result()
        return f"It was stopped: {reason}." if reason else ""
    finally:
        for work in works:
            work.cancel()
        await asyncio.gather(*works, return_exceptions=True)


def _command(installation: AiderInstallation, door: Path, settings: Path, task: AiderTask) -> list[str]:
    python = str(installation.program.parent / "python")
    given = ["--message", task.message, "--config", f"{settings}/config.yml"]
    given += ["--model-metadata-file", f"{settings}/model.json"]
    given += ["--model-settings-file", f"{settings}/config.yml", "--aiderignore", f"{settings}/ignore"]
    start = [python, "-I", box.__file__, str(door), f"{WORK}/{TREE}", str(installation.program)]
    return [*start, *OPTIONS, *given, "--", *task.files]


def _write_settings(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    (folder / "config.yml").write_text("{}\n")
    (folder / "ignore").write_text("")
    (folder / "model.json").write_text(json.dumps(FACTS))


def _environment() -> dict[str, str]:
    return {
        "OPENAI_API_KEY": "cortex",  # whoever stands behind the door has the key
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "AIDER_ANALYTICS": "false",
        "PYTHONDONTWRITEBYTECODE": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
        "GIT_CONFIG_KEY_1": "core.hooksPath",
        "GIT_CONFIG_VALUE_1": "/dev/null",
        "GIT_AUTHOR_NAME": "Cortex",
        "GIT_AUTHOR_EMAIL": "cortex@localhost",
        "GIT_COMMITTER_NAME": "Cortex",
        "GIT_COMMITTER_EMAIL": "cortex@localhost",
    }


def installation_at(program: Path) -> AiderInstallation:
    """Give what must be readable to run this aider; ToolFailed where it is none of a virtual environment of its own."""
    program = program.absolute()
    environment = program.resolve().parent.parent
    python = environment / "bin" / "python"
    if not program.exists() or not python.exists() or not (environment / "pyvenv.cfg").exists():
        raise ToolFailed(f"{program} is not aider in its own environment. `cortex tools install aider` creates one.")
    if environment == Path(sys.prefix):
        raise ToolFailed("aider is installed in Cortex's environment; it needs its own.")
    base = python.resolve().parent.parent  # where its Python is from
    return AiderInstallation(program=environment / "bin" / "aider", readable=(environment, base))
