"""Connections to PostgreSQL that give a server up which is there and says nothing: frozen, or its disk hangs.

Its kernel goes on answering for it, so neither keepalives nor `statement_timeout` notice. Imported where a PostgreSQL
is used only.
"""

from collections.abc import AsyncGenerator, Generator
from typing import Any, TypeVar

import psycopg
from psycopg import Notify, errors
from psycopg.abc import PQGen
from psycopg.rows import TupleRow

RV = TypeVar("RV")

ANSWER_S = 70.0  # longer than any statement of ours may take on a server that lives (`storage/db.py`: 60 s)
LISTEN_S = 1e9  # who listens waits for others, not for the server
LOOK_S = 0.1  # as psycopg does by itself
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
