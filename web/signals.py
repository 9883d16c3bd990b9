"""The signals of a process that serves or works, heard from its first moment to its last (the loop's own end earlier).

SIGTERM, SIGINT and, unless nohup had it ignored, SIGHUP end it, whatever it is at: what is being opened or served says
how, and nothing begins anew afterwards. One more of them while it closes ends it where it stands, as a kill would; a
SIGHUP does not: a terminal that is closed may send two.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

IS_TERMINAL_HEARD = signal.getsignal(signal.SIGHUP) != signal.SIG_IGN
ENDINGS = (signal.SIGTERM, signal.SIGINT, *([signal.SIGHUP] * IS_TERMINAL_HEARD))
ORDERS = (signal.SIGUSR1, signal.SIGUSR2)  # for as long as nobody takes them they do nothing: by default they kill

T = TypeVar("T")


class ProcessSignals:
    """The signals of this process, and what they do now. `ends` counts how often it was told to end."""

    def __init__(self) -> None:
        self.ends = 0
        self._end: Callable[[], object] | None = None
        self._orders: dict[int, Callable[[], object]] = {}

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Hear them inside the block; afterwards they do what they do by default."""
        for number in (*ENDINGS, *ORDERS):
            signal.signal(number, self._hear)
        try:
            yield
        finally:
            for number in (*ENDINGS, *ORDERS):
                signal.signal(number, signal.SIG_DFL)

    @contextmanager
    def ending(self, act: Callable[[], object]) -> Iterator[None]:
        """Inside the block `act` is called, in this loop, each time the process is told to end; if it was, at once."""
        loop = asyncio.get_running_loop()
        outer, self._end = self._end, lambda: loop.call_soon_threadsafe(act)
        try:
            if self.ends:
                loop.call_soon(act)
            yield
        finally:
            self._end = outer

    @contextmanager
    def obeying(self, number: signal.Signals, act: Callable[[], object]) -> Iterator[None]:
        """Inside the block this one of `ORDERS` calls `act`, in this loop."""
        loop = asyncio.get_running_loop()
        self._orders[number] = lambda: loop.call_soon_threadsafe(act)
        try:
            yield
        finally:
            del self._orders[number]

    def run(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Return what it returns, by a loop of its own; None where it was cancelled because the process shall end."""
        try:
            return asyncio.run(work)
        except asyncio.CancelledError:
            if not self.ends:
                raise
            return None

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        if number in ENDINGS:
            self.ends += 1
            if self._end is not None:
                self._end()
            elif self.ends > 1 and number != signal.SIGHUP:  # it closes, and somebody does not want to wait
                os._exit(128 + number)
        elif number in self._orders:
            self._orders[number]()


async def cancelled_by(signals: ProcessSignals, work: Coroutine[Any, Any, T]) -> T:
    """Return what the work returns; it is cancelled when the process is told to end."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine runs in one
    with signals.ending(task.cancel):
        return await work
