"""The kernel holds how many processes a run of root's has; nothing of its group stays."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from cortex.integrations import sandbox
from cortex.integrations.cgroups import ROOT, group_of
from cortex.integrations.process import run
from cortex.integrations.quota import MB
from cortex.integrations.sandbox import Limits, Sandbox
from tests.integrations.bombs import COUNTED
from tests.patience import PATIENCE_S


async def _prefix() -> list[str]:
    async with group_of(5, 100 * MB) as joined:
        return list(joined)


needs_groups = pytest.mark.skipif(not asyncio.run(_prefix()), reason="needs root, and groups that it may make")


def _groups() -> set[str]:
    """By name: in version 1 each controller has one of it."""
    return {Path(at).name for at, _, _ in os.walk(ROOT) if f"cortex-{os.getpid()}-" in at}


async def _until_none_but(names: set[str]) -> None:
    """A process that was killed stays in its group until it has been reaped, and the next runs clear up."""
    async with asyncio.timeout(PATIENCE_S):
        while _groups() != names:
            await _prefix()


@needs_groups
async def test_no_more_start_than_the_group_may_have_and_it_goes_with_them(tmp_path: Path) -> None:
    async with group_of(20, 500 * MB) as joined:
        assert len(_groups()) == 1
        ended = await run([*joined, sys.executable, "-c", COUNTED], cwd=tmp_path, timeout_s=PATIENCE_S)
    assert ended.out == "19\n"
    await _until_none_but(set())


@needs_groups
async def test_a_run_that_has_not_begun_keeps_its_group_while_others_begin() -> None:
    async with group_of(5, 100 * MB), group_of(5, 100 * MB):
        assert len(_groups()) == 2
    await _until_none_but(set())


@needs_groups
async def test_no_more_memory_is_held_than_the_group_may_have(tmp_path: Path) -> None:
    eater = [sys.executable, "-c", "held = bytearray(10**9); held[::4096] = b'x' * len(held[::4096]); print('had it')"]
    async with group_of(20, 100 * MB) as joined:
        if not any("memory" in word or (Path(word).parent / "memory.max").exists() for word in joined):
            pytest.skip("needs the controller of memory")
        ended = await run([*joined, *eater], cwd=tmp_path, timeout_s=PATIENCE_S)
    assert (ended.code, ended.out) == (-9, "")


@needs_groups
async def test_a_group_whose_process_took_long_to_end_is_removed_by_a_later_run(tmp_path: Path) -> None:
    async with group_of(5, 100 * MB) as joined:
        lingering = await asyncio.create_subprocess_exec(*joined, "/bin/sleep", "600", cwd=tmp_path)
        group = Path(joined[-2]).parent
        async with asyncio.timeout(PATIENCE_S):
            while not (group / "cgroup.procs").read_text():  # noqa: ASYNC110 - a file of the kernel's
                await asyncio.sleep(0.02)
    assert _groups() == {group.name}
    lingering.kill()
    await lingering.wait()
    await _until_none_but(set())


@needs_groups
async def test_a_group_that_a_killed_cortex_left_is_removed(tmp_path: Path) -> None:
    ended = await run(["/bin/sh", "-c", "echo $$"], cwd=tmp_path, timeout_s=PATIENCE_S)
    async with group_of(5, 100 * MB) as joined:
        left = Path(joined[-2]).parent.with_name(f"cortex-{ended.out.strip()}-0")
        left.mkdir()
        async with group_of(5, 100 * MB):
            assert not left.exists()
            assert {Path(joined[-2]).parent.name} < _groups()  # what is in use stays


async def test_where_there_is_no_controller_nothing_is_set_before_and_nothing_left(tmp_path: Path) -> None:
    async with group_of(5, 100 * MB, root=tmp_path) as joined:
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
