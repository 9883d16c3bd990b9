"""Connections to PostgreSQL that give a server up which is there and says nothing: frozen, or its disk hangs.

Its kernel goes on answering for it, so neither keepalives nor `statement_timeout` notice. Imported where a PostgreSQL
is used only.
"""

from collections.abc import AsyncGenerator, Generator
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, NullPool, create_engine

from cortex.base.errors import ConfigError

try:
    import psycopg
    from psycopg import Notify, errors
    from psycopg.abc import PQGen
    from psycopg.rows import TupleRow
except ImportError as error:  # psycopg is there, but neither libpq nor the package that brings it
    raise ConfigError(
        "PostgreSQL needs its driver: install libpq (on Debian and Ubuntu the package libpq5), run `make postgres`, or "
        "`pip install psycopg-binary` where there is no Makefile. An update by a version of before 28 November 2026 "
        "needs libpq; then try again."
    ) from error

RV = TypeVar("RV")

ANSWER_S = 70.0  # longer than any statement of ours may take on a server that lives (`storage/db.py`: 60 s)
LISTEN_S = 1e9  # who listens waits for others, not for the server
LOOK_S = 0.1  # as psycopg does by itself
CONNECT_S = 10
OLDEST = 13
SILENT = f"the server has not answered for {ANSWER_S:.0f} s"


class TimedAsyncConnection(psycopg.AsyncConnection[TupleRow]):
    """OperationalError, and closed, when a statement has no answer after `ANSWER_S`."""

    async def wait(  # the names are psycopg's
        self,
        gen: PQGen[RV],
        interval: float = LOOK_S,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> RV:
        """As psycopg's."""
        try:
            return await super().wait(gen, interval, ANSWER_S if timeout is None else timeout)
        except errors._WaitTimeout as error:
            if timeout is not None:
                raise
            self.pgconn.finish()
            raise psycopg.OperationalError(SILENT) from error

    def notifies(self, *, timeout: float | None = None, stop_after: int | None = None) -> AsyncGenerator[Notify]:
        """As psycopg's."""
        return super().notifies(timeout=LISTEN_S if timeout is None else timeout, stop_after=stop_after)


class TimedConnection(psycopg.Connection[TupleRow]):
    """The same for threads."""

    def wait(self, gen: PQGen[RV], interval: float = LOOK_S, timeout: float | None = None) -> RV:
        """As psycopg's."""
        try:
            return super().wait(gen, interval, ANSWER_S if timeout is None else timeout)
        except errors._WaitTimeout as error:
            if timeout is not None:
                raise
            self.pgconn.finish()
            raise psycopg.OperationalError(SILENT) from error

    def notifies(self, *, timeout: float | None = None, stop_after: int | None = None) -> Generator[Notify]:
        """As psycopg's."""
        return super().notifies(timeout=LISTEN_S if timeout is None else timeout, stop_after=stop_after)


def connect(_dialect: Any, _record: Any, arguments: Any, options: Any) -> TimedConnection:
    """For SQLAlchemy's event `do_connect`."""
    return TimedConnection.connect(*arguments, **options)


def refuse_unfit(url: URL) -> None:
    """ConfigError unless the server is new enough and gives each connection a session of its own.

    A pooler that hands out sessions by the transaction (pgbouncer's pool_mode=transaction) loses prepared statements,
    locks and what is listened for: Cortex would start, and answer nobody. SQLAlchemy's OperationalError when the
    server does not answer.
    """
    address = url.set(drivername="postgresql+psycopg")
    options = {"connect_timeout": CONNECT_S, "prepare_threshold": None}
    engine = create_engine(address, poolclass=NullPool, hide_parameters=True, connect_args=options)
    try:
        with engine.connect() as one, engine.connect() as other:
            _refuse(one, other)
    finally:
        engine.dispose()


def _refuse(one: Connection, other: Connection) -> None:
    number = int((one.dialect.server_version_info or (OLDEST,))[0])
    if number < OLDEST:
        raise ConfigError(
            f"The database server is PostgreSQL {number}; Cortex needs {OLDEST} or newer. Update the server."
        )
    # With sessions of their own, these are two processes of the server, and the first one's stays.
    first = _process_of(one)
    one.commit()
    if _process_of(other) == first or _process_of(one) != first:
        raise ConfigError(
            f"Between Cortex and PostgreSQL {number} a pooler hands out sessions by the transaction, so what one "
            "process tells another is lost. Set pool_mode=session in pgbouncer, or connect to the server itself."
        )


def _process_of(session: Connection) -> int:
    return int(session.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())
