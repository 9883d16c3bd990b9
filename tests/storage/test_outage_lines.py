"""A database that is away is told of once a minute, whoever meets it, and what else happens meanwhile stays."""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from sqlalchemy.exc import OperationalError

from cortex.base.errors import CortexError, DatabaseUnavailable, ToolFailed
from cortex.base.outages import Outages
from cortex.storage.outage_lines import BACK_S, OutageLines

GONE = OperationalError("SELECT 1", None, psycopg.OperationalError("connection is bad"))
AWAY = DatabaseUnavailable("The database does not answer (the connection is lost).")


def wrong() -> OperationalError:
    """An error that no waiting mends."""
    with closing(sqlite3.connect(":memory:")) as connection, pytest.raises(sqlite3.OperationalError) as raised:
        connection.execute("SELECT x")
    return OperationalError("SELECT x", None, raised.value)


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


class Outage:
    """A log of two handlers, and a clock that the test moves."""

    def __init__(self) -> None:
        self.at_s = 1_000.0
        self.outages = Outages()
        self.log, self.book = Kept(), Kept()
        self.filter = OutageLines(self.outages, ticks=lambda: self.at_s)

    def every_kind(self) -> None:
        """What stood in the log at each try."""
        logging.getLogger("cortex.services.jobs.alarm").warning("alarm: database error, retrying: %s", AWAY)
        logging.getLogger("cortex.engine.dbos").warning("engine: cannot read %s, retrying: %s", "cancelled runs", GONE)
        logging.getLogger("cortex.engine.wire").warning("relay: %s", psycopg.OperationalError("server closed"))
        logging.getLogger("dbos").warning("Exception listing queues: (psycopg.OperationalError) connection is bad")
        logging.getLogger("sqlalchemy.pool.impl").error("Exception during reset or similar", exc_info=GONE)
        try:
            raise ToolFailed("It failed.") from GONE
        except ToolFailed as error:
            logging.getLogger("web.errors").error("request=1 GET /tasks", exc_info=error)


@pytest.fixture
def outage() -> Iterator[Outage]:
    made, root = Outage(), logging.getLogger()
    root.addHandler(made.log)
    root.addHandler(made.book)
    try:
        with made.filter.on_every_handler():
            yield made
    finally:
        root.removeHandler(made.log)
        root.removeHandler(made.book)


def test_ninety_seconds_are_two_lines_and_one_that_it_is_back(outage: Outage) -> None:
    for _ in range(90):
        outage.every_kind()
        outage.at_s += 1
    outage.outages.answered()
    outage.at_s += BACK_S
    outage.outages.answered()
    first, again, back = outage.log.lines
    assert "database error, retrying" in first
    assert "line a minute" in first
    assert ("60 s now" in again, "359 lines" in again) == (True, True)
    assert ("after 90 s" in back, "179 lines" in back) == (True, True)
    assert outage.book.lines == outage.log.lines
    outage.every_kind()
    assert len(outage.log.lines) == 4, "another outage is told of at once"


def test_who_still_finds_it_away_is_believed_more_than_who_was_answered(outage: Outage) -> None:
    """Another file may be the one that is locked, and the connections of one process come back one by one."""
    outage.every_kind()
    for _ in range(20):
        outage.at_s += 1
        outage.outages.answered()
        outage.every_kind()
    assert len(outage.log.lines) == 1


def test_all_else_is_written_whole_while_it_is_away(outage: Outage) -> None:
    outage.every_kind()
    logging.getLogger("web.errors").error("request=2 GET /x", exc_info=wrong())
    logging.getLogger("cortex.services.turns").warning("a mail holds the words 'connection to server'")
    logging.getLogger("dbos").warning("Workflow a is run twice")
    assert [line.splitlines()[0] for line in outage.log.lines[1:]] == [
        "request=2 GET /x",
        "a mail holds the words 'connection to server'",
        "Workflow a is run twice",
    ]
    assert "no such column" in outage.log.lines[1]


def test_errors_that_stand_behind_each_other_hold_nobody() -> None:
    first, second = CortexError("the first"), CortexError("the second")
    first.__cause__, second.__cause__ = second, first
    record = logging.LogRecord("cortex", logging.WARNING, __file__, 1, "failed: %s", (first,), None)
    assert OutageLines(Outages()).filter(record)
