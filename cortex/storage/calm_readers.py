"""Connections that read, the last used one first, so that those that a calm time does not need can be closed.

Each of them is a thread, two open files, and up to 2 MB of SQLite's own memory. Used by `storage/db.py`.
"""

import asyncio
import logging

from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import AsyncAdaptedQueuePool, ConnectionPoolEntry
from sqlalchemy.util import greenlet_spawn

LOOK_S = 30.0
KEPT = 1

logging.getLogger(__name__).setLevel(logging.WARNING)  # SQLAlchemy tells there of each close, as if it were our log


class CalmReaders(AsyncAdaptedQueuePool):
    """A pool that knows how many of its connections nobody needed since the last look."""

    _spare = 0

    def _do_get(self) -> ConnectionPoolEntry:
        found = super()._do_get()
        self._spare = min(self._spare, self.checkedin())
        return found

    def end_spare(self) -> None:
        """Close those that lay still since the last call, all but KEPT. Inside `greenlet_spawn`, as a close waits."""
        resting = [self._pool.get(False) for _ in range(self.checkedin())]
        kept = max(KEPT, len(resting) - self._spare)
        for record in reversed(resting[:kept]):  # the last used one is on top again
            self._pool.put(record, False)
        self._spare = self.checkedin()
        spare = resting[kept:]
        for _ in spare:  # their places are free before the first close waits: nobody wakes who waits for a place
            self._dec_overflow()
        for record in spare:
            record.close()


async def keep_few(engine: AsyncEngine) -> None:
    """For ever: close what a whole time of LOOK_S did not need. Ends at once for an engine with another pool."""
    while isinstance(engine.pool, CalmReaders):
        await asyncio.sleep(LOOK_S)
        if isinstance(engine.pool, CalmReaders):
            closing = asyncio.gather(greenlet_spawn(engine.pool.end_spare))
            try:
                await asyncio.shield(closing)
            except asyncio.CancelledError:  # the rest would stay open, and the one cut off be logged as a fault
                await closing
                raise
