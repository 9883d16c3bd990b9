"""The engine's own database: a SQLite file beside the main one, or a schema of the PostgreSQL database.

DBOS neither sets WAL nor bounds its pool on SQLite, so the SQLAlchemy engine is ours. Used by `engine/dbos.py` only.
"""

import asyncio
import logging
import sqlite3
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from cortex.base import faults, private
from cortex.base.clock import now

BUSY_TIMEOUT_MS = 30_000
NO_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
PRIMARY = 0xFF  # the low byte of SQLite's extended codes
SQLITE_POOL = 2  # measured 2026-11-20: 190 runs/s at p99 0.5 s; a pool of 20 made 117 at 1.6 s
POSTGRES_POOL = 6
DBOS_SCHEMA = "dbos"
FREE_MOST_PAGES = 4_096  # of 4 KB each: more than that, and more than is used, goes back to the disk at a start
KNOWS_SUBSEC = (3, 42)  # https://sqlite.org/lang_datefunc.html, read 2026-11-27


log = logging.getLogger(__name__)


def is_postgres(url: str) -> bool:
    """Tell whether the URL names a PostgreSQL database."""
    return url.startswith("postgresql")


def open_database(url: str) -> sa.Engine:
    """A synchronous SQLAlchemy engine with our pragmas, or a small PostgreSQL pool."""
    if is_postgres(url):
        from cortex.base import postgresql  # noqa: PLC0415 - its driver is an extra

        address = sa.make_url(url).set(drivername="postgresql+psycopg")
        engine = sa.create_engine(
            address,
            pool_size=POSTGRES_POOL,
            max_overflow=0,
            pool_timeout=30,
            pool_pre_ping=True,
            hide_parameters=True,
            connect_args={"connect_timeout": 10, "application_name": "cortex-engine"},
        )
        sa.event.listen(engine, "do_connect", postgresql.connect)
        return engine
    address = sa.make_url(url).set(drivername="sqlite")
    engine = sa.create_engine(
        address,
        poolclass=QueuePool,
        pool_size=SQLITE_POOL,
        max_overflow=0,
        pool_timeout=30,
        hide_parameters=True,
        connect_args={"check_same_thread": False, "timeout": BUSY_TIMEOUT_MS / 1000},
    )
    file = Path(address.database or "")
    sa.event.listen(engine, "do_connect", lambda *_: private.make_database(file))
    sa.event.listen(engine, "connect", _prepare)
    return engine


async def examine(url: str, *, is_whole: bool = False) -> None:
    """ConfigError, with what to do, when the database cannot be used; one that is not there yet is well.

    is_whole: look through all of a SQLite file, and write to it once; else only whether it answers.
    """
    await asyncio.to_thread(_examine, url, is_whole)


def _examine(url: str, is_whole: bool) -> None:
    path = None if is_postgres(url) else Path(sa.make_url(url).database or "")
    if path and not path.exists():
        return
    engine = open_database(url)
    try:
        with faults.in_words(url), engine.connect() as connection:
            connection.execute(sa.text("SELECT 1"))
            if path:
                faults.refuse_damage(path, connection.execute(sa.text(faults.look_through(is_whole))).scalar())
            if is_whole:
                _write(connection)
    finally:
        engine.dispose()


def _write(connection: sa.Connection) -> None:
    """One real write that changes nothing; an empty database is left as it is."""
    schema = DBOS_SCHEMA if connection.dialect.name == "postgresql" else None
    if sa.inspect(connection).has_table("dbos_migrations", schema=schema):
        versions = sa.table("dbos_migrations", sa.column("version"), schema=schema)
        connection.execute(versions.update().values(version=versions.c.version))
        connection.commit()


def give_back(engine: sa.Engine) -> None:
    """Make the SQLite file smaller where most of it is free, as after a busy day; nobody else has it open."""
    with engine.connect() as connection:
        free, pages = (
            connection.exec_driver_sql(f"PRAGMA {what}").scalar_one() for what in ("freelist_count", "page_count")
        )
        if free > FREE_MOST_PAGES and free * 2 > pages:
            try:
                connection.exec_driver_sql("VACUUM")
            except sa.exc.OperationalError as error:  # the disk has no room for it now
                log.warning("engine: its database stays as large as it is: %s", error.orig)


def wait_for_room(engine: sa.Engine) -> None:
    """Let DBOS wait while the disk is full, as it waits for a lock; what it tries again it knows by these words."""
    sa.event.listen(engine, "handle_error", _as_locked)


def wait_no_longer(engine: sa.Engine) -> None:
    """An end must not wait for room."""
    if sa.event.contains(engine, "handle_error", _as_locked):
        sa.event.remove(engine, "handle_error", _as_locked)


def _as_locked(context: sa.engine.ExceptionContext) -> None:
    error = context.original_exception
    if isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & PRIMARY in NO_ROOM:
        locked = sqlite3.OperationalError(f"database is locked: {error}")
        raise sa.exc.OperationalError(context.statement, None, locked) from error


def _prepare(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    if not isinstance(connection, sqlite3.Connection):
        raise TypeError(f"Not a SQLite connection: {connection!r}")
    connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")  # NORMAL loses acknowledged commits at a power cut
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("PRAGMA secure_delete=ON")  # as Debian's SQLite is built: what is erased is not left in the file
    connection.execute(f"PRAGMA journal_size_limit={private.WAL_MOST_BYTES}")
    connection.execute("PRAGMA cache_size=-512")  # KB: a commit of one empties the other's, so that much is no use
    # A transaction begins IMMEDIATE at its first write; plain reads take no lock. DBOS's own migrations begin by hand.
    connection.isolation_level = "IMMEDIATE"
    if sqlite3.sqlite_version_info < KNOWS_SUBSEC:
        connection.create_function("unixepoch", 1, _unixepoch)


def _unixepoch(modifier: str) -> float | None:
    """SQLite's `unixepoch('subsec')` where SQLite is too old for it, as in Debian 12 and Ubuntu 22.04.

    DBOS 3.4 has it in its statements and in the defaults of its tables, on Python 3.12 and newer.
    """
    return round(now().timestamp(), 3) if modifier == "subsec" else None
