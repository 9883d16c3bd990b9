"""The watchdog in the daemons of tests: it names what holds the event loop, and blames no wait."""

import asyncio
import multiprocessing
import time
from pathlib import Path

from tests import watchdog


def held_by(folder: Path, seconds_busy: float, seconds_waiting: float) -> list[str]:
    process = multiprocessing.get_context("spawn").Process(
        target=_live, args=(str(folder), seconds_busy, seconds_waiting)
    )
    process.start()
    process.join()
    assert process.exitcode == 0
    return watchdog.reports(folder)


def _live(folder: str, busy_s: float, waiting_s: float) -> None:
    watchdog.Watchdog(Path(folder)).watch()
    asyncio.run(_work(busy_s, waiting_s))


async def _work(busy_s: float, waiting_s: float) -> None:
    await asyncio.sleep(0)
    _keep_busy(busy_s)
    time.sleep(waiting_s)  # noqa: ASYNC251 - a wait that costs no processor, as on a machine under load


def _keep_busy(seconds: float) -> None:
    until_s = time.thread_time() + seconds
    while time.thread_time() < until_s:
        pass


def test_a_callback_that_holds_the_loop_is_named_with_its_stack(tmp_path: Path) -> None:
    (told,) = held_by(tmp_path / "held", 2 * watchdog.HELD_S, 0.0)
    assert "ms of processor in <Task" in told
    assert "_work()" in told
    assert "in _keep_busy" in told


def test_waiting_and_short_work_are_not_told(tmp_path: Path) -> None:
    assert held_by(tmp_path / "held", watchdog.HELD_S / 4, 2 * watchdog.HELD_S) == []
