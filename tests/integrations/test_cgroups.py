"""The kernel holds how many processes a run of root's has; nothing of its group stays."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from cortex.integrations import sandbox
from cortex.integrations.cgroups import ROOT, group_of
from cortex.integrations.process import run
from cortex.integrations.sandbox import Limits, Sandbox
from tests.patience import PATIENCE_S

COUNTED = """
import os, signal, time
started = 0
while started < 1_000:
    try:
        if os.fork() == 0:
            time.sleep(600)
    except BlockingIOError:
        break
    started += 1
print(started, flush=True)
os.killpg(0, signal.SIGKILL)  # what still runs holds the pipe open
"""


async def _prefix() -> list[str]:
    async with group_of(5) as joined:
        return list(joined)


needs_groups = pytest.mark.skipif(not asyncio.run(_prefix()), reason="needs root, and groups that it may make")


def _groups() -> set[Path]:
    return {Path(at) for at, _, _ in os.walk(ROOT) if f"cortex-{os.getpid()}-" in at}


@needs_groups
async def test_no_more_start_than_the_group_may_have_and_it_goes_with_them(tmp_path: Path) -> None:
    async with group_of(20) as joined:
        assert len(_groups()) == 1
        ended = await run([*joined, sys.executable, "-c", COUNTED], cwd=tmp_path, timeout_s=PATIENCE_S)
    assert ended.out == "19\n"
    assert _groups() == set()


@needs_groups
async def test_a_group_that_a_killed_cortex_left_is_removed(tmp_path: Path) -> None:
    ended = await run(["/bin/sh", "-c", "echo $$"], cwd=tmp_path, timeout_s=PATIENCE_S)
    async with group_of(5) as joined:
        left = Path(joined[-1]).parent.with_name(f"cortex-{ended.out.strip()}-0")
        left.mkdir()
        async with group_of(5):
            assert not left.exists()
            assert len(_groups()) == 2  # what is in use stays


async def test_where_there_is_no_controller_nothing_is_set_before_and_nothing_left(tmp_path: Path) -> None:
    async with group_of(5, root=tmp_path) as joined:
        assert joined == ()
    assert [at for at, _, _ in os.walk(tmp_path) if "cortex-" in at] == []


@pytest.mark.skipif(os.geteuid() == 0 and not asyncio.run(_prefix()), reason="root, and it may make no groups")
async def test_a_run_whose_watch_comes_too_late_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def late(pid: int, processes: int, memory_bytes: int) -> str:
        await asyncio.Event().wait()
        return ""

    monkeypatch.setattr(sandbox, "watch_tree", late)
    box = Sandbox()
    if (await box.probe()).level == "none":
        pytest.skip("no sandbox works here")
    ended = await box.run(
        ["python3", "-c", COUNTED], workspace=tmp_path, limits=Limits(processes=40, timeout_s=PATIENCE_S)
    )
    assert 0 < int(ended.out) <= 80
