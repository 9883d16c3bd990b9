"""Who writes next: what a person waits for goes ahead of turns, jobs and housekeeping, which are not kept out for long.

SQLite has one writer; of PostgreSQL's connections some are left to who reads. `storage/db.py` takes a place here for
each transaction that writes, so this is the one line in front of it. Knows no database.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar

PEOPLE_IN_A_ROW = 8  # then one of the others, if any waits: whoever writes without a pause does not keep turns out


class WriteLine:
    """Two lines in front of a number of places, each in the order of coming."""

    def __init__(self, places: int) -> None:
        """places: how many may write at once."""
        self._free = places
        self._people: deque[asyncio.Future[None]] = deque()
        self._others: deque[asyncio.Future[None]] = deque()
        self._in_a_row = 0

    @property
    def waiting(self) -> tuple[int, int]:
        """Return how many wait for a place: people, and all else."""
        return len(self._people), len(self._others)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold a place inside the block."""
        if self._free:
            self._free -= 1
        else:
            await self._stand_in(self._people if _is_person.get() else self._others)
        try:
            yield
        finally:
            self._give_on()

    async def _stand_in(self, line: deque[asyncio.Future[None]]) -> None:
        waiter = asyncio.get_running_loop().create_future()
        line.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter in line:
                line.remove(waiter)
            elif not waiter.cancelled():  # it was given the place in the same moment
                self._give_on()
            raise

    def _give_on(self) -> None:
        for line in (self._people, self._others):
            while line and line[0].done():  # cancelled, and its task did not run yet
                line.popleft()
        are_people_next = bool(self._people) and (not self._others or self._in_a_row < PEOPLE_IN_A_ROW)
        line = self._people if are_people_next else self._others
        if not line:
            self._free += 1
            return
        self._in_a_row = self._in_a_row + 1 if are_people_next and self._others else 0
        line.popleft().set_result(None)


write_limit_s: ContextVar[float | None] = ContextVar("cortex_write_limit_s", default=None)
_is_person: ContextVar[bool] = ContextVar("cortex_writes_for_a_person", default=False)


@contextmanager
def writes_within(seconds: float) -> Iterator[None]:
    """Let no transaction of this task wait longer than this for its turn to write: Busy, and nothing is changed."""
    token = write_limit_s.set(seconds)
    try:
        yield
    finally:
        write_limit_s.reset(token)


@contextmanager
def people_first() -> Iterator[None]:
    """Somebody sits and waits for what this task writes: it goes ahead of what nobody waits for."""
    token = _is_person.set(True)
    try:
        yield
    finally:
        _is_person.reset(token)
