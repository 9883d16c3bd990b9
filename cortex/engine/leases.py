"""Several daemons on one SQLite home: each has an executor id of its own, and takes up the runs of those that are dead.

An id is leased by a lock on a file beside the engine's database: it ends with its process, however that ends. One
daemon alone is always "local". Used by `engine/dbos.py` on SQLite only; `recover.py` does the same on PostgreSQL.
"""

import asyncio
import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import IO

from dbos import DBOS

from cortex.base import private
from cortex.engine import dbos_patches

ALONE = "local"

log = logging.getLogger(__name__)


class LocalRecovery:
    """This executor's lease, and a watch over the others'."""

    def __init__(self, database: Path, executor_id: str = "") -> None:
        """executor_id: the one to lease; by default the first that no living process has."""
        self.executor_id = executor_id
        self.has_others = False  # whether another process lived between the last two looks
        self._database = database
        self._file: IO[str] | None = None
        self._settled: dict[str, int] = {}  # id of a dead process -> when it was leased last, once its runs are ours

    def claim(self) -> str:
        """Lease an executor id, and say which. What its last owner left unfinished is ours."""
        wanted = (
            [self.executor_id] if self.executor_id else chain([ALONE], (f"{ALONE}-{number}" for number in count(2)))
        )
        for name in wanted:
            private.make_file(self._path(name))
            file = self._path(name).open("r+")
            if _lock(file):
                file.truncate()
                file.write(f"{os.getpid()}\n")  # so that those who look see that it changed hands
                file.flush()
                self._file, self.executor_id = file, name
                return name
            file.close()
        raise RuntimeError(f"another engine of this home calls itself {self.executor_id!r}")

    async def look(self) -> None:
        """Take over the runs of the dead."""
        await asyncio.to_thread(self._look)

    async def release(self) -> None:
        """Let go of the lease: what this process had left is the others' from now on."""
        if self._file is not None:
            self._file.close()

    def _look(self) -> None:
        """One look around: the database is asked only about those that died since the last one."""
        has_others = False
        for path in self._database.parent.glob(self._path("*").name):
            name, leased_at = self._name(path), path.stat().st_mtime_ns
            if name == self.executor_id or self._settled.get(name) == leased_at:
                continue
            has_others = True  # one that has just died too: what it cancelled last is still looked for
            with _held(path) as is_dead:
                if is_dead:
                    taken = DBOS._recover_pending_workflows([name])
                    self._settled[name] = leased_at
            if is_dead and taken:
                log.info("engine: process %s is gone, took over %d runs", name, len(taken))
                dbos_patches.wake()
        self.has_others = has_others

    def _path(self, name: str) -> Path:
        return self._database.with_name(f"{self._database.name}.{name}.lease")

    def _name(self, path: Path) -> str:
        return path.name.removeprefix(f"{self._database.name}.").removesuffix(".lease")


@contextmanager
def _held(path: Path) -> Iterator[bool]:
    """Tell whether nobody else holds the lease; it is held inside the block, so that nobody takes it meanwhile."""
    with path.open("r+") as file:
        yield _lock(file)


def _lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
