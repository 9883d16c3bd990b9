"""A pool whose threads end when they are not needed, and that holds up nobody's end."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError

import pytest

from cortex.base.calm_pool import CalmPool
from tests.patience import PATIENCE_S


def _until(is_so: object) -> None:
    ends_s = time.monotonic() + PATIENCE_S
    while not is_so():  # type: ignore[operator]
        assert time.monotonic() < ends_s
        time.sleep(0.005)


def test_what_is_asked_is_done_by_no_more_threads_than_allowed() -> None:
    pool, gate = CalmPool(3), threading.Event()
    asked = [pool.submit(lambda number: gate.wait(PATIENCE_S) and number, number) for number in range(12)]
    assert pool.threads == 3
    gate.set()
    assert [one.result(PATIENCE_S) for one in asked] == list(range(12))
    pool.shutdown()


def test_a_free_thread_is_taken_before_another_begins() -> None:
    pool = CalmPool(8)
    for number in range(20):
        assert pool.submit(abs, -number).result(PATIENCE_S) == number
        _until(lambda: len(pool._free) == pool.threads)
    assert pool.threads == 1
    pool.shutdown()


def test_threads_end_when_nobody_has_needed_them_for_a_while_and_come_again() -> None:
    pool = CalmPool(4, calm_s=0.01)
    barrier = threading.Barrier(4)
    asked = [pool.submit(barrier.wait, PATIENCE_S) for _ in range(4)]
    assert sorted(one.result(PATIENCE_S) for one in asked) == [0, 1, 2, 3]
    _until(lambda: pool.threads == 0)
    assert pool.submit(abs, -1).result(PATIENCE_S) == 1
    pool.shutdown()


def test_a_little_work_at_all_times_keeps_one_thread_and_lets_the_others_end() -> None:
    pool, barrier = CalmPool(3, calm_s=0.2), threading.Barrier(3)
    for one in [pool.submit(barrier.wait, PATIENCE_S) for _ in range(3)]:
        one.result(PATIENCE_S)

    def worked() -> bool:
        pool.submit(abs, -1).result(PATIENCE_S)
        return pool.threads == 1

    _until(worked)
    pool.shutdown()


def test_what_fails_is_told_to_whoever_asked() -> None:
    pool = CalmPool(1)
    with pytest.raises(ZeroDivisionError):
        pool.submit(lambda: 1 / 0).result(PATIENCE_S)
    assert pool.submit(abs, -1).result(PATIENCE_S) == 1
    pool.shutdown()


def test_a_pool_that_is_shut_takes_nothing_and_does_what_it_took() -> None:
    pool, gate = CalmPool(1), threading.Event()
    first, second = pool.submit(gate.wait, PATIENCE_S), pool.submit(abs, -2)
    pool.shutdown(wait=False)
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(abs, -3)
    gate.set()
    assert (first.result(PATIENCE_S), second.result(PATIENCE_S)) == (True, 2)


def test_what_waits_can_be_cancelled_with_the_pool() -> None:
    pool, gate = CalmPool(1), threading.Event()
    first = pool.submit(gate.wait, PATIENCE_S)
    _until(first.running)
    second = pool.submit(abs, -2)
    pool.shutdown(wait=False, cancel_futures=True)
    gate.set()
    assert first.result(PATIENCE_S)
    with pytest.raises(CancelledError):
        second.result(PATIENCE_S)


def test_asyncio_takes_it_as_its_own_pool() -> None:
    pool = CalmPool(2)

    async def asked() -> int:
        asyncio.get_running_loop().set_default_executor(pool)
        return await asyncio.to_thread(abs, -5)

    assert asyncio.run(asked()) == 5
    with pytest.raises(RuntimeError):  # the loop's end shut it
        pool.submit(abs, -1)


@pytest.mark.parametrize("work", ["lambda: None", "lambda: os.write(1, b'done')"], ids=["free", "busy"])
def test_the_end_of_a_process_waits_for_work_and_for_no_calm(work: str) -> None:
    """With threads that wait out their calm this would take longer than anybody's patience."""
    program = (
        "import os, time; from cortex.base.calm_pool import CalmPool; "
        f"pool = CalmPool(2, calm_s={PATIENCE_S * 10}); pool.submit(abs, 1).result(); "
        f"pool.submit(time.sleep, 0.2); pool.submit(time.sleep, 0.2); pool.submit({work})"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        check=True,
        timeout=PATIENCE_S,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    assert ended.stdout == (b"done" if "done" in work else b"")
