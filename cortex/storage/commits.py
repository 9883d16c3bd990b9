"""Whether anything was written since the last look, by whatever process: one read of a counter, no query.

The alarm asks it every two seconds, so that an idle server reads no table. Knows of one SQLite file; on PostgreSQL,
which keeps no such counter, the answer is always yes.
"""

import asyncio
import logging
import sqlite3
from pathlib import Path
from threading import Lock

log = logging.getLogger(__name__)


class Commits:
    """Of one database. `path`: the SQLite file; None elsewhere. `close` it in the end."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._seen: int | None = None
        self._is_closed = False
        self._looking = Lock()

    def another(self) -> "Commits":
        """A look of its own at the same database, for somebody who asks at other times."""
        return Commits(self._path)

    async def are_new(self) -> bool:
        """Whether something was committed since this was last asked; yes at first, and when it cannot be read."""
        if self._path is None:
            return True
        before = self._seen
        try:
            self._seen = await asyncio.to_thread(self._looked, self._path)
        except sqlite3.Error as error:
            self._seen = None
            log.warning("cannot read the database's change counter: %s", error)
        return self._seen is None or self._seen != before

    def close(self) -> None:
        """Let go of the file, as soon as a look that is under way has ended."""
        self._is_closed = True
        self._let_go()

    def _let_go(self) -> None:
        if self._is_closed and self._looking.acquire(blocking=False):
            if self._connection is not None:
                self._connection.close()
            self._looking.release()

    def _looked(self, path: Path) -> int:
        # A task that is cancelled leaves its look behind, and Python's sqlite3 ends the whole process when one thread
        # closes a connection that another one is asking.
        try:
            with self._looking:
                return self._counter(path)
        finally:
            self._let_go()

    def _counter(self, path: Path) -> int:
        """Another one after each commit of another connection; this one commits nothing (SQLite's data_version)."""
        if self._is_closed:
            raise sqlite3.ProgrammingError("nobody asks any more")
        if self._connection is None:
            self._connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)
        return int(self._connection.execute("PRAGMA data_version").fetchone()[0])
