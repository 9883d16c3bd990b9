"""SQLite connections that hand each statement to their thread once: its cursor, its rows and its end together.

Through the driver's own cursor SQLAlchemy waits for the thread four times a statement: 25 of the 150 ms of processor
that a turn without a model took (2026-11-23). Made by `storage/db.py`; nothing streams rows here.
"""

import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import aiosqlite


class OneTripCursor:
    """The part of a driver's cursor that SQLAlchemy uses. All of it is known once `execute` has come back."""

    arraysize = 1

    def __init__(self, run: Callable[..., Awaitable[Any]]) -> None:
        """run: calls a function with the bare connection, in that connection's thread."""
        self._run = run
        self._rows: Sequence[Any] = ()
        self.description: Sequence[Any] | None = None
        self.rowcount = -1
        self.lastrowid: int | None = None

    async def __aenter__(self) -> "OneTripCursor":
        return self

    async def execute(self, statement: str, parameters: Iterable[Any] = ()) -> "OneTripCursor":
        """Run the statement and keep its rows."""
        await self._run(partial(self._executed, statement, parameters, is_many=False))
        return self

    async def executemany(self, statement: str, parameters: Iterable[Iterable[Any]]) -> "OneTripCursor":
        """Run the statement once for each of these."""
        await self._run(partial(self._executed, statement, parameters, is_many=True))
        return self

    async def fetchall(self) -> Sequence[Any]:
        """The rows that are kept."""
        return self._rows

    async def close(self) -> None:
        """Nothing: its thread has ended it."""

    def _executed(
        self, statement: str, parameters: Iterable[Any], connection: sqlite3.Connection, *, is_many: bool
    ) -> None:
        with closing(connection.cursor()) as cursor:
            (cursor.executemany if is_many else cursor.execute)(statement, parameters)  # type: ignore[arg-type]
            self._rows = cursor.fetchall() if cursor.description else ()
            self.description, self.rowcount, self.lastrowid = cursor.description, cursor.rowcount, cursor.lastrowid


class OneTripConnection(aiosqlite.Connection):
    """A connection whose cursors take one trip. One that only reads begins with its first statement."""

    is_reading = False
    _has_to_begin = False
    _may_be_open = True  # whether a transaction may be open: every trip since the last end that came back

    # SQLAlchemy enters what comes back, and asks no more of it than this.
    def cursor(self) -> OneTripCursor:  # type: ignore[override]
        """A cursor that is opened when it executes."""
        return OneTripCursor(self._run)

    def begin_with_next(self) -> None:
        """Begin a transaction on the trip of the next statement: a deferred BEGIN does nothing before that anyway."""
        self._has_to_begin = True

    async def commit(self) -> None:
        """End the transaction; where there was nothing to write nobody waits for that."""
        await self._end(self._conn.commit)

    async def rollback(self) -> None:
        """As `commit`, and nothing of it stands."""
        await self._end(self._conn.rollback)

    async def _end(self, end: Callable[[], None]) -> None:
        if not self.is_reading:
            if self._may_be_open:  # the pool rolls back behind each commit
                await self._execute(end)  # type: ignore[no-untyped-call]
                self._may_be_open = False
        elif self._has_to_begin:
            self._has_to_begin = False
        else:
            self._tx.put_nowait((None, end))

    async def _run(self, act: Callable[[sqlite3.Connection], None]) -> None:
        begins, self._has_to_begin = self._has_to_begin, False
        self._may_be_open = True
        await self._execute(self._acted, act, begins=begins)  # type: ignore[no-untyped-call]

    def _acted(self, act: Callable[[sqlite3.Connection], None], *, begins: bool) -> None:
        if begins:
            self._conn.execute("BEGIN").close()
        act(self._conn)


def connection(database: str, *, is_reading: bool, **how: Any) -> OneTripConnection:
    """A connection to this file, to be awaited; its thread ends with the process."""
    made = OneTripConnection(lambda: sqlite3.connect(database, **how), iter_chunk_size=64)
    made.is_reading = is_reading
    made._thread.daemon = True
    return made
