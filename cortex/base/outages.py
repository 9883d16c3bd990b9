"""Waiting for a database that is away: what needs it is tried again for minutes, and who watches learns of it.

Used by the engine for every step, by services for a commit whose work must not be done twice, and by `storage/db.py`
while another program holds a lock. It knows no database: whoever asks one raises DatabaseUnavailable
(`storage/failures.py`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from cortex.base.clock import ticks_s
from cortex.base.errors import DatabaseUnavailable

FIRST_WAIT_S = 0.25
LONGEST_WAIT_S = 5.0
LATE_S = 2.0  # after which what is not written yet counts as waiting
GIVE_UP_S = 900.0

T = TypeVar("T")


class Outages:
    """The waits for the database in this process. `on_change` is called when the first begins and the last ends.

    `on_answer` is called whenever the database has done what it was asked for.
    """

    def __init__(self) -> None:
        self.on_change: list[Callable[[], None]] = []
        self.on_answer: list[Callable[[], None]] = []
        self._waiting = 0

    @property
    def is_waiting(self) -> bool:
        """Tell whether something waits for the database now."""
        return self._waiting > 0

    def answered(self) -> None:
        """The database is there."""
        for listener in self.on_answer:
            listener()

    async def wait_out(self, action: Callable[[], Awaitable[T]]) -> T:
        """Give what the action returns, which is begun anew while the database is away: it must bear being done twice.

        Raises DatabaseUnavailable when the database has been away for a quarter of an hour.
        """
        try:
            return await action()
        except DatabaseUnavailable:
            pass
        with self.waiting():
            return await self._again(action)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Inside the block something waits for the database."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    @contextmanager
    def waiting_when_late(self) -> Iterator[Callable[[], None]]:
        """Gives what says that writing begins: some seconds later, until the block ends, something waits."""
        clock: asyncio.TimerHandle | None = None
        with ExitStack() as late:

            def begin() -> None:
                nonlocal clock
                clock = asyncio.get_running_loop().call_later(LATE_S, lambda: late.enter_context(self.waiting()))

            try:
                yield begin
            finally:
                if clock is not None:
                    clock.cancel()

    async def _again(self, action: Callable[[], Awaitable[T]]) -> T:
        ends_s, wait_s = ticks_s() + GIVE_UP_S, FIRST_WAIT_S
        while True:
            await asyncio.sleep(wait_s)
            try:
                return await action()
            except DatabaseUnavailable:
                if ticks_s() > ends_s:
                    raise
            wait_s = min(wait_s * 2, LONGEST_WAIT_S)

    def _count(self, change: int) -> None:
        was_waiting = self.is_waiting
        self._waiting += change
        if self.is_waiting != was_waiting:
            for listener in self.on_change:
                listener()
