"""A program ends when it must, and nothing of it stays."""

import asyncio
import os
from functools import partial
from pathlib import Path

import pytest

from cortex.base.errors import ToolFailed
from cortex.integrations.process import run
from tests.patience import PATIENCE_S


async def test_output_code_and_input(tmp_path: Path) -> None:
    ended = await run(["sh", "-c", "cat; echo bad >&2; exit 3"], cwd=tmp_path, timeout_s=PATIENCE_S, stdin=b"given")
    assert (ended.code, ended.out, ended.err, ended.killed) == (3, "given", "bad\n", "")


async def test_the_environment_is_empty(tmp_path: Path) -> None:
    ended = await run(["/usr/bin/env"], cwd=tmp_path, timeout_s=PATIENCE_S)
    assert ended.out == ""


async def test_a_program_that_is_not_there_fails_in_words(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="could not be started"):
        await run(["/no/such/program"], cwd=tmp_path, timeout_s=PATIENCE_S)


async def test_the_time_limit_ends_it(tmp_path: Path) -> None:
    ended = await run(["/bin/sleep", "300"], cwd=tmp_path, timeout_s=0.2)
    assert "0.2 s" in ended.killed


async def _until(file: Path, pid: int) -> str:
    while not await asyncio.to_thread(file.exists):  # noqa: ASYNC110 - of a process that is no child
        await asyncio.sleep(0.01)
    return f"{file.name} is there"


async def test_children_end_too_wherever_they_went(tmp_path: Path) -> None:
    (tmp_path / "far.sh").write_text("echo $$ > far; setsid sh deep.sh & wait")
    (tmp_path / "deep.sh").write_text("echo $$ > deep; : > ready; exec sleep 300")
    ended = await run(
        ["/bin/sh", "-c", "sleep 300 & echo $! > child; setsid sh far.sh & wait"],
        cwd=tmp_path,
        timeout_s=PATIENCE_S,
        env={"PATH": "/usr/bin:/bin"},
        watches=(partial(_until, tmp_path / "ready"),),
    )
    assert ended.killed == "ready is there"
    for name in ("child", "far", "deep"):
        assert not _lives(int((tmp_path / name).read_text()))


async def test_who_starts_another_for_each_that_is_killed_is_ended(tmp_path: Path) -> None:
    again = "while :; do setsid sh -c 'echo $$ >> pids; exec sleep 300' & wait; done"
    await run(
        ["/bin/sh", "-c", again],
        cwd=tmp_path,
        timeout_s=PATIENCE_S,
        env={"PATH": "/usr/bin:/bin"},
        watches=(partial(_until, tmp_path / "pids"),),
    )
    assert not any(_lives(int(pid)) for pid in (tmp_path / "pids").read_text().split())


async def test_a_cancelled_run_leaves_nothing(tmp_path: Path) -> None:
    worker = asyncio.create_task(
        run(
            ["/bin/sh", "-c", "echo $$ > me; exec sleep 300"],
            cwd=tmp_path,
            timeout_s=PATIENCE_S,
            env={"PATH": "/usr/bin:/bin"},
        )
    )
    while not (tmp_path / "me").exists() or not (tmp_path / "me").read_text():  # noqa: ASYNC110 - a file
        await asyncio.sleep(0.01)
    worker.cancel()
    with pytest.raises(asyncio.CancelledError):
        await worker
    assert not _lives(int((tmp_path / "me").read_text()))


async def test_long_output_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    ended = await run(["/usr/bin/seq", "1", "2000"], cwd=tmp_path, timeout_s=PATIENCE_S, output_bytes=300)
    assert ended.out.startswith("1\n2\n")
    assert ended.out.endswith("1999\n2000\n")
    assert "bytes left out" in ended.out
    assert len(ended.out) < 400


async def test_a_flood_is_cut_off(tmp_path: Path) -> None:
    ended = await run(["/usr/bin/yes"], cwd=tmp_path, timeout_s=PATIENCE_S, output_bytes=1_000)
    assert "more output" in ended.killed
    assert len(ended.out) < 1_100


async def test_the_watch_may_end_it(tmp_path: Path) -> None:
    async def watch(pid: int) -> str:
        assert _lives(pid)
        return "enough"

    ended = await run(["/bin/sleep", "60"], cwd=tmp_path, timeout_s=PATIENCE_S, watches=(watch,))
    assert ended.killed == "enough"


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
