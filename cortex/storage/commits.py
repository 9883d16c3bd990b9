"""Whether anything was written since the last look, by whatever process: no query.

The alarm asks it every two seconds, so that an idle server reads no table. On SQLite it is one read of the file's own
counter. PostgreSQL keeps none: there each process counts its own commits that changed a row and tells the others,
which count what they hear (`app.py` lays the line). Where nobody tells, the answer is always yes.
"""

import asyncio
import json
import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

from sqlalchemy import Connection, Engine, event, text

from cortex.base.clock import ticks_s

WROTE = "wrote"  # the topic under which a commit is told
CHANNEL = "cortex"  # of the processes of one installation, as in `engine/wire.py`
FALLBACK_S = 60.0  # a look all the same: signals can be lost
_CHANGED = "cortex_changed"

log = logging.getLogger(__name__)


class WrittenRows:
    """The commits of one PostgreSQL that changed a row: counted here, told to others, heard from others."""

    def __init__(self, engine: Engine) -> None:
        self.count = 0
        self.is_heard = False  # whether others are listened to: without that nobody knows
        self._tell: Callable[[], None] | None = None
        self._is_told_within = False
        event.listen(engine, "after_cursor_execute", _notes)
        event.listen(engine, "commit", self._commits)
        event.listen(engine, "rollback", _forgets)

    def listen(self, tell: Callable[[], None]) -> None:
        """From now on others are heard, by `heard`, and told by this, soon after a commit, once for many."""
        self._tell, self.is_heard = tell, True

    def tell_within(self) -> None:
        """Tell others in each commit itself: of a command, which has no line of its own and soon ends."""
        self._is_told_within = True

    def heard(self) -> None:
        """Another process wrote, or may have while the line was down."""
        self.count += 1

    def _commits(self, connection: Connection) -> None:
        if not connection.info.pop(_CHANGED, False):
            return
        self.count += 1
        if self._is_told_within:
            said = json.dumps({"f": "", "k": WROTE, "c": ""})
            connection.execute(text("SELECT pg_notify(:channel, :said)"), {"channel": CHANNEL, "said": said})
        if self._tell is not None:
            self._tell()


def _notes(
    connection: Connection, cursor: Any, _statement: str, _parameters: Any, context: Any, _many: bool
) -> None:  # Any: the driver's own
    """A statement that changes rows, and did."""
    if context is not None and (context.isinsert or context.isupdate or context.isdelete) and cursor.rowcount:
        connection.info[_CHANGED] = True


def _forgets(connection: Connection) -> None:
    if not connection.invalidated:  # what a lost connection knew is gone with it
        connection.info.pop(_CHANGED, None)


class Commits:
    """Of one database. `path`: the SQLite file; `written`: of PostgreSQL. `close` it in the end."""

    def __init__(self, path: Path | None, written: WrittenRows | None = None) -> None:
        self._path = path
        self.written = written
        self._yes_s = 0.0
        self._connection: sqlite3.Connection | None = None
        self._seen: int | None = None
        self._is_closed = False
        self._looking = Lock()

    def another(self) -> "Commits":
        """A look of its own at the same database, for somebody who asks at other times."""
        return Commits(self._path, self.written)

    async def are_new(self) -> bool:
        """Tell whether something was committed since this was last asked; yes at first, and when it cannot be read."""
        if self._path is None:
            return self.written is None or not self.written.is_heard or self._are_heard(self.written)
        before = self._seen
        try:
            self._seen = await asyncio.to_thread(self._looked, self._path)
        except sqlite3.Error as error:
            self._seen = None
            log.warning("cannot read the database's change counter: %s", error)
        return self._seen is None or self._seen != before

    def _are_heard(self, written: WrittenRows) -> bool:
        before, self._seen = self._seen, written.count
        if self._seen == before and ticks_s() - self._yes_s < FALLBACK_S:
            return False
        self._yes_s = ticks_s()
        return True

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
