import asyncio
import logging
from functools import partial
from io import BufferedReader
from pathlib import Path
from threading import Event

import pytest

from cortex.base import background
from cortex.base.background import background_tasks, crew, handed
from tests.patience import PATIENCE_S


async def test_what_runs_beside_a_block_ends_with_it() -> None:
    ended: list[str] = []

    async def forever(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(name)

    async with background_tasks(partial(forever, "a"), partial(forever, "b")):
        await asyncio.sleep(0)
        assert ended == []
    assert sorted(ended) == ["a", "b"]


async def test_a_failure_is_told_and_the_block_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async def fails() -> None:
        raise RuntimeError("out of cheese")

    with caplog.at_level(logging.ERROR):
        async with asyncio.timeout(PATIENCE_S), background_tasks(fails):
            while "out of cheese" not in caplog.text:  # noqa: ASYNC110 - a log tells nobody
                await asyncio.sleep(0.01)


async def test_what_failed_is_begun_again(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(background, "AGAIN_S", 0.01)
    begun, works = 0, asyncio.Event()

    async def fails_twice() -> None:
        nonlocal begun
        begun += 1
        if begun < 3:
            raise RuntimeError("out of cheese")
        works.set()

    async with asyncio.timeout(PATIENCE_S), background_tasks(fails_twice):
        await works.wait()
    assert [line.getMessage() for line in caplog.records] == [
        "background task failed, begun again in 0.01 s",
        "background task failed, begun again in 0.02 s",
    ]


async def test_what_failed_is_not_begun_behind_the_block(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(background, "AGAIN_S", 0.01)
    begun = 0

    async def fails() -> None:
        nonlocal begun
        begun += 1
        raise RuntimeError("out of cheese")

    async with background_tasks(fails):
        while "begun again" not in caplog.text:  # noqa: ASYNC110 - a log tells nobody
            await asyncio.sleep(0)
    later = asyncio.Event()  # timers of one loop go off in the order of their times
    asyncio.get_running_loop().call_later(0.05, later.set)
    await later.wait()
    assert begun == 1


class Deaf:
    """A worker that swallows so many cancels."""

    def __init__(self, cancels: int) -> None:
        self.left = cancels

    async def work(self) -> None:
        while self.left:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.left -= 1


async def test_a_crew_ends_whatever_is_swallowed_and_whoever_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(background, "AGAIN_S", 0.01)
    deaf, below = Deaf(2), Deaf(3)

    async def fails() -> None:
        raise RuntimeError("out of cheese")

    async def foreman() -> None:
        async with crew() as begin:
            begin(below.work())
            await asyncio.Event().wait()

    async with asyncio.timeout(PATIENCE_S), crew() as begin:
        begin(deaf.work())
        begin(foreman())
        await asyncio.wait([begin(fails())])
        await asyncio.sleep(0)
        assert deaf.left == 2
    assert (deaf.left, below.left) == (0, 0)
    assert "out of cheese" in caplog.text


async def test_one_whose_cancel_is_swallowed_is_cancelled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "AGAIN_S", 0.01)
    deaf = Deaf(2)
    async with background_tasks(deaf.work):
        await asyncio.sleep(0)
    assert deaf.left == 0


async def test_one_below_another_is_not_left_behind_when_that_is_cancelled_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background, "AGAIN_S", 0.01)
    deaf, begun = Deaf(5), asyncio.Event()

    async def owner() -> None:
        async with background_tasks(deaf.work):
            begun.set()
            await asyncio.Event().wait()

    async with background_tasks(owner):
        await begun.wait()
    assert deaf.left == 0


class Slow:
    """Opens a file in its thread once it may, and tells what became of it."""

    def __init__(self, path: Path) -> None:
        path.touch()
        self.path, self.begun, self.may_open, self.closed = path, Event(), Event(), Event()
        self.file: BufferedReader | None = None

    def open(self) -> BufferedReader:
        self.begun.set()
        assert self.may_open.wait(PATIENCE_S)
        self.file = self.path.open("rb")
        return self.file

    def let_go(self, file: BufferedReader) -> None:
        file.close()
        self.closed.set()


async def test_what_a_thread_opens_for_nobody_is_closed(tmp_path: Path) -> None:
    slow = Slow(tmp_path / "file")
    waiting = asyncio.ensure_future(handed(slow.open, slow.let_go))
    assert await asyncio.to_thread(slow.begun.wait, PATIENCE_S)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    slow.may_open.set()
    assert await asyncio.to_thread(slow.closed.wait, PATIENCE_S)
    assert slow.file is not None
    assert slow.file.closed


async def test_what_came_in_the_moment_of_the_cancel_is_closed(tmp_path: Path) -> None:
    slow = Slow(tmp_path / "file")
    slow.may_open.set()
    waiting = asyncio.ensure_future(handed(slow.open, slow.let_go))
    await asyncio.sleep(0)  # the thread is asked
    while slow.file is None:
        """Hold the loop: what came is not told yet."""
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await asyncio.to_thread(slow.closed.wait, PATIENCE_S)


async def test_what_somebody_waits_for_stays_open(tmp_path: Path) -> None:
    slow = Slow(tmp_path / "file")
    slow.may_open.set()
    with await handed(slow.open, slow.let_go) as file:
        assert not file.closed
    assert not slow.closed.is_set()
