"""Which errors of a database pass by themselves: it is away, locked by another, or its disk is full for now."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, PendingRollbackError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoConnectionFree

from cortex.base.errors import DatabaseUnavailable, DiskFull

FULL = "the disk is full"
PASSING = {
    sqlite3.SQLITE_BUSY: "it is locked by another program",
    sqlite3.SQLITE_LOCKED: "it is locked",
    sqlite3.SQLITE_IOERR: "the disk failed",
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_CANTOPEN: "its file cannot be opened",
}
PRIMARY = 0xFF  # the low byte of SQLite's extended codes
LOST = "the connection is lost"
PASSING_STATES = {  # of PostgreSQL, by how the state begins
    "08": LOST,
    "53100": FULL,
    "53": "it has no disk, memory or connection left",
    "57P": "it stops or starts",
    "57014": "it took too long",
    "40P01": "two changes waited for each other",
}


@contextmanager
def unavailable() -> Iterator[None]:
    """Inside the block, an error that passes by itself is DatabaseUnavailable; others stay what they are.

    A cancel breaks the connection, and what SQLAlchemy says of that must not take the cancel's place: it would be lost.
    """
    try:
        yield
    except PendingRollbackError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError from error
        raise
    except SQLAlchemyError as error:
        reason = passing(error)
        if reason == FULL:
            raise DiskFull(f"Nothing was saved: {FULL}. Make room on it, then try again.") from error
        if reason:
            raise DatabaseUnavailable(f"The database does not answer ({reason}). Try again in a moment.") from error
        raise


def passing(error: SQLAlchemyError) -> str:
    """Why the database is away, in a few words; "" for an error that would come again."""
    if isinstance(error, NoConnectionFree):
        return "too many wait for it"
    if not isinstance(error, DBAPIError):
        return ""
    if isinstance(error.orig, sqlite3.OperationalError):
        return PASSING.get(error.orig.sqlite_errorcode & PRIMARY, "")
    state: str | None = getattr(error.orig, "sqlstate", None)
    # Without a state it never came to a statement: a refused, broken or silent connection.
    is_operational = any(kind.__name__ == "OperationalError" for kind in type(error.orig).__mro__)
    if state is None:
        return LOST if error.connection_invalidated or is_operational else ""
    said = next((words for prefix, words in PASSING_STATES.items() if state.startswith(prefix)), "")
    return said or (LOST if error.connection_invalidated else "")
