"""A temporary folder goes with its run, also when the process that made it was killed."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from cortex.integrations.scratch import scratch_folder
from tests.children import ROOT
from tests.patience import PATIENCE_S

HOLDS = """
import asyncio, sys
from pathlib import Path
from cortex.integrations.scratch import scratch_folder

async def hold() -> None:
    async with scratch_folder(Path(sys.argv[1])) as folder:
        (folder / "file").write_text("x")
        print(folder, flush=True)
        await asyncio.Event().wait()

asyncio.run(hold())
"""


async def test_a_folder_is_there_for_its_block_alone(tmp_path: Path) -> None:
    async with scratch_folder(tmp_path) as folder:
        (folder / "file").write_text("x")
        async with scratch_folder(tmp_path) as other:
            assert folder != other
        assert os.listdir(tmp_path) == [folder.name]  # what is in use is not cleared away
    assert os.listdir(tmp_path) == []


async def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDS, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:  # noqa: ASYNC220
        assert process.stdout is not None
        held = Path(process.stdout.readline().strip())
        async with scratch_folder(tmp_path):
            assert os.listdir(held) == ["file"]
        process.send_signal(signal.SIGKILL)
    assert held.name in os.listdir(tmp_path)
    async with scratch_folder(tmp_path):
        assert held.name not in os.listdir(tmp_path)


async def test_one_whose_user_is_cancelled_while_all_threads_are_busy_goes_too(tmp_path: Path) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    is_inside, may_leave, is_free = asyncio.Event(), asyncio.Event(), Event()

    async def use() -> None:
        async with scratch_folder(tmp_path):
            is_inside.set()
            await may_leave.wait()

    using = asyncio.ensure_future(use())
    await is_inside.wait()
    busy = asyncio.ensure_future(asyncio.to_thread(is_free.wait, PATIENCE_S))
    await asyncio.sleep(0)
    may_leave.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)  # it stands in line to be removed
    using.cancel()
    is_free.set()
    await asyncio.wait([using, busy])
    await asyncio.to_thread(Event().is_set)  # the next in line of the only thread
    assert os.listdir(tmp_path) == []


async def test_a_folder_that_was_swept_away_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a process beside it does that starts in the same moment."""
    made: list[Path] = []

    def mkdtemp(**how: Any) -> str:
        folder: str = real(**how)
        made.append(Path(folder))
        if len(made) == 1:
            made[0].rmdir()
        return folder

    real = tempfile.mkdtemp
    monkeypatch.setattr("cortex.integrations.scratch.tempfile.mkdtemp", mkdtemp)
    async with scratch_folder(tmp_path) as folder:
        assert (folder, len(made)) == (made[1], 2)
