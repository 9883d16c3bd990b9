"""The database: engines, session scopes, and repositories opened for one user.

SQLite has two engines on one file, because a deferred BEGIN that reads and then writes loses transactions to "database
is locked" (1,913 of 2,000 with 50 writers, measured): `write` has one connection and begins IMMEDIATE, `read` six that
cannot write and wait for no writer. On PostgreSQL both are one. Who writes next: `write_line.py` beside.
"""

import asyncio
import functools
import json
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from contextvars import ContextVar
from itertools import count
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from sqlalchemy import URL, Connection, event, make_url, text
from sqlalchemy.exc import ArgumentError, OperationalError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool

from cortex.base import faults, private, scan
from cortex.base.clock import Clock, now, ticks_s
from cortex.base.errors import Busy, ConfigError, DatabaseUnavailable
from cortex.base.outages import Outages
from cortex.storage import revisions, sqlite_connection
from cortex.storage.audit import AUDIT_KEY, AUDITED, AuditRepository
from cortex.storage.audit_head import BEGINNING, AuditHead
from cortex.storage.calm_readers import CalmReaders
from cortex.storage.commits import Commits, WrittenRows
from cortex.storage.failures import unavailable
from cortex.storage.repository import Repository
from cortex.storage.write_line import WriteLine, write_limit_s

R = TypeVar("R", bound=Repository)

log = logging.getLogger(__name__)

BUSY_TIMEOUT_S = 30
REHEARSAL_WAITS_S = 10  # for locks of PostgreSQL, rather than hold up who waits behind it
TRY_TO_WRITE_S = 1  # one try to begin; a waiter who gives up leaves a thread behind for no longer than that
TRIES_IN_SILENCE = 2  # of that length: whoever waits longer for another program's lock says so
STATEMENT_TIMEOUT_S = 60
READERS = 6
POSTGRESQL_CONNECTIONS = 10
# synchronous: NORMAL loses acknowledged commits at a power cut
PRAGMAS = (f"busy_timeout={BUSY_TIMEOUT_S * 1000}", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON")
READER_CACHE = "cache_size=-512"  # KB: another's commit empties it anyway, and the system has the file at hand
_compact = json.JSONEncoder(separators=(",", ":")).encode


class Opener(Protocol):
    """Opens repositories that share one transaction."""

    def __call__(self, kind: type[R], /) -> R:
        """A repository of this kind, bound to the transaction's session and user."""
        ...


class Database:
    """One database, opened lazily: nothing is connected before the first scope. `close` it in the end.

    `url`: `sqlite:///path` or `postgresql://…`, with or without a driver's name. `audit_head`: the key of the audit
    log and where its head is kept; without one the log has an empty key and no head.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock = now,
        write_wait_s: float = BUSY_TIMEOUT_S,
        audit_head: AuditHead | None = None,
        outages: Outages | None = None,
    ) -> None:
        """write_wait_s: how long a transaction that writes waits for its turn, unless `write_line.py` says less.

        outages: learns of each answer, and that one waits for another program that holds a SQLite file.
        """
        self.clock = clock
        self.audit_head = audit_head
        self._outages = outages or Outages()
        self.url = _normal(url)
        self.is_postgresql = self.url.get_backend_name() == "postgresql"
        if self.is_postgresql:
            self.write = self.read = _postgresql(self.url)
            self.commits = Commits(None, WrittenRows(self.write.sync_engine))
        else:
            private.make_database(Path(self.url.database or ""))
            self.write = _sqlite(self.url, pool_size=1, is_reading=False, wait_s=write_wait_s, outages=self._outages)
            self.read = _sqlite(self.url, pool_size=READERS, is_reading=True, wait_s=BUSY_TIMEOUT_S)
            self.commits = Commits(Path(self.url.database or ""))
        info = {AUDIT_KEY: audit_head.key if audit_head else b""}
        self._writing = async_sessionmaker(self.write, expire_on_commit=False, info=info)
        self._reading = async_sessionmaker(self.read, expire_on_commit=False, info=info)
        readers = POSTGRESQL_CONNECTIONS if self.is_postgresql else READERS
        # A third is left to single reads, and pages that are slow to make hold up no turn.
        self._views, self._page_views = asyncio.Semaphore(readers // 3), asyncio.Semaphore(readers // 3)
        # On PostgreSQL too some connections are always free to read: a transaction that writes may wait for a read.
        self.write_line = WriteLine(readers - readers // 3 if self.is_postgresql else 1)
        self._write_wait_s = write_wait_s

    @asynccontextmanager
    async def session_scope(self, *, reading: bool = False) -> AsyncIterator[AsyncSession]:
        """A session that commits when the block ends well and rolls back when it does not.

        DatabaseUnavailable when the database is away, locked, or out of space: the same may be tried again.
        """
        with unavailable():
            view = _view.get()
            # A task begun inside the block inherits the view, and a session is for one task alone.
            if view is None or view.task is not asyncio.current_task() or view.database is not self:
                async with self._session(reading=reading) as session:
                    yield session
            elif reading:
                async with view.session() as session:
                    yield session
            else:
                await view.end()  # so that what is read after this sees what it wrote
                async with self._session(reading=False) as session:
                    yield session

    @asynccontextmanager
    async def _session(self, *, reading: bool) -> AsyncIterator[AsyncSession]:
        async with AsyncExitStack() as opened:
            if reading:
                session = await opened.enter_async_context(self._reading())
                await opened.enter_async_context(session.begin())
            else:
                session = await self._turn_to_write(opened)
            yield session
        self._outages.answered()
        if AUDITED in session.info and self.audit_head is not None:
            await self._keep_audit_head(self.audit_head, is_first=session.info[AUDITED] == 1)

    async def _turn_to_write(self, opened: AsyncExitStack) -> AsyncSession:
        """A session whose transaction has begun, once it is this task's turn; `opened` ends it."""
        limit_s = write_limit_s.get()
        try:
            async with asyncio.timeout(2 * self._write_wait_s if limit_s is None else limit_s):
                await opened.enter_async_context(self.write_line.place())
                session = await opened.enter_async_context(self._writing())
                await opened.enter_async_context(session.begin())
                await session.connection()
        except TimeoutError as error:
            if limit_s is None:
                raise DatabaseUnavailable("The database does not answer (too many wait for it).") from error
            raise Busy("The database is busy, so nothing was changed. Try again in a moment.") from error
        return session

    async def _keep_audit_head(self, audit_head: AuditHead, *, is_first: bool) -> None:
        """Let the kept head of the audit log follow its newest row, unless the log no longer holds the row it names."""
        try:
            if is_first and await asyncio.to_thread(audit_head.read) is None:
                await asyncio.to_thread(audit_head.start, BEGINNING)  # the tables were made from another HOME
            while (kept := await asyncio.to_thread(audit_head.read)) is not None:
                named, newest = await self.repository(AuditRepository).heads(kept.number)
                if named != kept:
                    log.error("audit log: row %d is not the one that was kept; see `cortex audit verify`", kept.number)
                    return
                if newest.number <= kept.number or await asyncio.to_thread(audit_head.move_on, kept, newest):
                    return
        except (
            DatabaseUnavailable,
            OSError,
            SQLAlchemyError,
        ) as error:  # what was audited is committed; the next row makes up for it
            log.warning("audit log: its head cannot be kept: %s", error)

    @asynccontextmanager
    async def one_view(self, *, of_page: bool = False) -> AsyncIterator[None]:
        """Let all that this task reads inside the block share one transaction: what is read belongs together.

        A write in between has a transaction of its own, and reads after it begin another one. Wait for nothing but
        the database in here: the connection is held; or call `end_view` before.
        """
        if _view.get() is not None:
            yield
            return
        view = _View(self, asyncio.current_task(), self._page_views if of_page else self._views)
        token = _view.set(view)
        try:
            yield
        finally:
            _view.reset(token)
            await view.end()

    async def end_view(self) -> None:
        """Let go of the connection of this task's view, if it has one; what is read from here on begins another."""
        view = _view.get()
        if view is not None and view.task is asyncio.current_task() and view.database is self:
            await view.end()

    @asynccontextmanager
    async def transaction(self, owner_id: str = "") -> AsyncIterator[Opener]:
        """One transaction for several repositories of a user: all that they write stands, or nothing.

        `async with db.transaction(user.id) as repository: await repository(TurnsRepository).create(new)`
        """
        async with self.session_scope() as session:
            yield self._opener(session, owner_id)

    @asynccontextmanager
    async def read_transaction(self, owner_id: str = "") -> AsyncIterator[Opener]:
        """As `transaction`, to read alone: beside any writer."""
        async with self.session_scope(reading=True) as session:
            yield self._opener(session, owner_id)

    def _opener(self, session: AsyncSession, owner_id: str) -> Opener:
        """Each kind is made once, when it is first asked for."""
        return cast("Opener", functools.cache(lambda kind: kind(session, owner_id, self.clock)))

    def repository(self, kind: type[R], owner_id: str = "") -> R:
        """A repository whose every method runs in a short scope of its own (`@reading` ones on the read engine)."""
        return kind(self, owner_id, self.clock)

    async def migrate(self) -> str:
        """Bring the tables up to date; the revision they then have. Costs next to nothing when they are.

        ConfigError, with nothing changed, when a newer Cortex made them.
        """
        here, newest = await self.revision(), revisions.newest()
        if here > newest:
            raise ConfigError(
                f"The tables are from a newer Cortex (revision {here!r}, this one knows {newest!r}): "
                "run that version again, or restore a backup."
            )
        return here if here == newest else await self.move_to("head")

    async def revision(self) -> str:
        """The revision that the tables have now, "" for none."""
        async with self.read.connect() as connection:
            return await connection.run_sync(revisions.current)

    async def move_to(self, revision: str) -> str:
        """Migrate up or down to `revision` ("head", "base" or a number), in one transaction; what then stands."""
        migrate = scan.load("cortex.storage.migrate")
        async with self.write.begin() as connection:
            return cast("str", await connection.run_sync(migrate.move_to, revision, self.audit_head))

    async def rehearse(self, revision: str) -> str:
        """Move as `move_to` does, and take all of it back; what would stand. PostgreSQL alone undoes all of it."""
        migrate = scan.load("cortex.storage.migrate")
        async with self.write.connect() as connection:
            await connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{REHEARSAL_WAITS_S}s'")
            stands = await connection.run_sync(migrate.move_to, revision)
            await connection.rollback()
        return cast("str", stands)

    async def look_through(self) -> None:
        """ConfigError, with what to do, when something in a SQLite file is damaged. Reads all of it."""
        if not self.is_postgresql:
            async with self.read.connect() as connection:
                answer = await connection.exec_driver_sql(faults.look_through(is_whole=True))
                faults.refuse_damage(Path(self.url.database or ""), answer.scalar())

    async def try_to_write(self) -> None:
        """One real write that changes nothing: what is full, locked or read-only raises, as it would later."""
        async with self.session_scope() as session:
            await session.execute(text("UPDATE alembic_version SET version_num = version_num"))

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConnection]:
        """A bare connection of the write engine, for backup and maintenance; the caller commits."""
        async with self.write.connect() as connection:
            yield connection

    async def close(self) -> None:
        """Let go of every connection, also where the caller is cancelled while it waits for that."""
        self.commits.close()
        closing = asyncio.gather(*(engine.dispose() for engine in {self.write, self.read}))
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:  # a connection that is cut off while it closes is logged as a fault
            await closing
            raise


class _View:
    """The transaction that the reads of one task share."""

    def __init__(self, database: Database, task: "asyncio.Task[Any] | None", places: asyncio.Semaphore) -> None:
        self.database, self.task, self._places = database, task, places
        self._session: AsyncSession | None = None

    @asynccontextmanager
    async def session(self) -> AsyncIterator[AsyncSession]:
        """The session of the reads; its transaction begins with the first of them, and ends with one that fails."""
        if self._session is None:
            await self._places.acquire()
            self._session = self.database._reading()
        try:
            yield self._session
        except (SQLAlchemyError, asyncio.CancelledError):  # a cancel breaks the connection
            await self.end()
            raise

    async def end(self) -> None:
        """Let go of the connection; the next read begins another transaction."""
        session, self._session = self._session, None
        if session is not None:
            self._places.release()
            await asyncio.shield(session.close())  # a task that is cancelled here would keep the connection


_view: ContextVar[_View | None] = ContextVar("cortex_database_view", default=None)


def _normal(url: str) -> URL:
    try:
        parsed = make_url(url.replace("postgres://", "postgresql://", 1) if url.startswith("postgres://") else url)
    except ArgumentError as error:
        raise ConfigError("the database URL cannot be read; write sqlite:///path or postgresql://…") from error
    backend = parsed.get_backend_name()
    if backend == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if backend == "sqlite" and parsed.database and parsed.database != ":memory:":
        return parsed.set(drivername="sqlite+aiosqlite")
    raise ConfigError(f"{backend!r} databases are not supported; write sqlite:///path or postgresql://…")


def _sqlite(
    url: URL, *, pool_size: int, is_reading: bool, wait_s: float, outages: Outages | None = None
) -> AsyncEngine:
    engine = create_async_engine(
        url,
        poolclass=CalmReaders if is_reading else AsyncAdaptedQueuePool,
        pool_use_lifo=is_reading,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=wait_s * 2,
        hide_parameters=True,
        json_serializer=_compact,
        connect_args={"async_creator_fn": functools.partial(sqlite_connection.connection, is_reading=is_reading)},
    )

    @event.listens_for(engine.sync_engine, "connect")
    def configure(connection: Any, _record: Any) -> None:  # Any: the driver's own connection
        connection.isolation_level = None  # the driver begins nothing by itself; `begin` below does
        cursor = connection.cursor()
        writing = (f"busy_timeout={TRY_TO_WRITE_S * 1000}", f"journal_size_limit={private.WAL_MOST_BYTES}")
        for pragma in (*PRAGMAS, "secure_delete=ON", *(("query_only=ON", READER_CACHE) if is_reading else writing)):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine.sync_engine, "invalidate")
    def let_go(connection: Any, _record: Any, _error: Any) -> None:  # Any: the driver's own connection
        # A statement that was cancelled between execute and fetch keeps its connection, closed or not, inside the
        # transaction for as long as a traceback names it: nobody else could write. Behind what still runs, roll back.
        driver = connection.driver_connection
        if driver._connection is not None:
            driver._tx.put_nowait((None, driver._connection.rollback))

    @event.listens_for(engine.sync_engine, "begin")
    def begin_now(connection: Connection) -> None:
        if is_reading:
            driver: Any = connection.connection.driver_connection
            driver.begin_with_next()
        else:
            _begin(connection, wait_s, outages or Outages())

    return engine


def _begin(connection: Connection, wait_s: float, outages: Outages) -> None:
    """Begin a transaction that writes, once no other program holds the lock."""
    ends_s = ticks_s() + wait_s
    with ExitStack() as waiting:
        for tries in count(1):
            try:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            except OperationalError as error:
                if getattr(error.orig, "sqlite_errorcode", None) != sqlite3.SQLITE_BUSY or ticks_s() > ends_s:
                    raise
            else:
                return
            if tries == TRIES_IN_SILENCE:
                waiting.enter_context(outages.waiting())


def _postgresql(url: URL) -> AsyncEngine:
    from cortex.base.postgresql import TimedAsyncConnection  # noqa: PLC0415 - its driver is an extra

    return create_async_engine(
        url,
        pool_size=POSTGRESQL_CONNECTIONS,
        max_overflow=0,
        pool_timeout=BUSY_TIMEOUT_S,
        pool_pre_ping=True,
        hide_parameters=True,
        json_serializer=_compact,
        connect_args={
            "async_creator_fn": TimedAsyncConnection.connect,
            "connect_timeout": 10,
            "options": f"-c statement_timeout={STATEMENT_TIMEOUT_S * 1000} -c timezone=UTC",
        },
    )
