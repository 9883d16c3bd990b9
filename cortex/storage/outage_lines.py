"""What the log says of a database that is away: one line at once, one a minute, and one when it answers again.

Everything that looks at the database says so at each try, here, in DBOS and in the drivers: 150 lines in 20 seconds
(2026-11-27). A filter on the handlers, so that it is one place, whoever speaks. `app.py` puts it there.
"""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from sqlalchemy.exc import SQLAlchemyError

from cortex.base.clock import ticks_s
from cortex.base.errors import DatabaseUnavailable, chain
from cortex.base.outages import Outages
from cortex.storage.failures import passing

EVERY_S = 60.0
BACK_S = 6.0  # without such a line: most look every five seconds, and one that answers may be another file
FOREIGN = ("dbos", "sqlalchemy", "psycopg")  # they say it in words alone
FIRST = "the database is away: from now on one such line a minute, until it answers"
_WORDS = re.compile(
    r"OperationalError|AdminShutdown|connection is bad|connection to server|closed the connection|database is locked"
    r"|terminating connection|the connection is (?:lost|closed)|Notification listener error|has not answered for"
)

log = logging.getLogger(__name__)


class OutageLines(logging.Filter):
    """Leaves out what was said a moment ago. `outages` tells it of each answer of the database."""

    def __init__(self, outages: Outages, ticks: Callable[[], float] = ticks_s) -> None:
        super().__init__()
        self._ticks_s = ticks
        self._since_s = self._said_s = self._last_s = 0.0
        self._answered_s: float | None = None
        self._is_away = False
        self._left_out = 0
        self._lock = Lock()  # DBOS speaks from threads
        outages.on_answer.append(self._answered)

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether it is written; asked once for each handler, it says the same to all."""
        with self._lock:
            if "is_left_out" not in record.__dict__:
                record.__dict__["is_left_out"] = _is_about_an_outage(record) and self._is_repeated(record)
        return not record.__dict__["is_left_out"]

    @contextmanager
    def on_every_handler(self) -> Iterator[None]:
        """Inside the block, each handler that the process has now asks here."""
        handlers = list(logging.getLogger().handlers)
        for handler in handlers:
            handler.addFilter(self)
        try:
            yield
        finally:
            for handler in handlers:
                handler.removeFilter(self)

    def _is_repeated(self, record: logging.LogRecord) -> bool:
        at_s = self._last_s = self._ticks_s()
        self._answered_s = None
        record.exc_info = record.exc_text = None  # how it was found out helps nobody: it is away
        if not self._is_away:
            self._is_away, self._since_s, self._said_s, self._left_out = True, at_s, at_s, 0
            record.msg, record.args = f"{record.getMessage()} ({FIRST})", ()
            return False
        if at_s - self._said_s < EVERY_S:
            self._left_out += 1
            return True
        record.msg, record.args = f"{record.getMessage()} (for {at_s - self._since_s:.0f} s now{self._more()})", ()
        self._said_s, self._left_out = at_s, 0
        return False

    def _more(self) -> str:
        return f"; {self._left_out:,} lines like this were left out" if self._left_out else ""

    def _answered(self) -> None:
        """The database answered: it is back once nobody has complained for a while."""
        if not self._is_away:
            return
        at_s = self._ticks_s()
        self._answered_s = at_s if self._answered_s is None else self._answered_s
        if at_s - self._last_s < BACK_S:
            return
        self._is_away = False
        log.warning("the database answers again, after %.0f s%s", self._answered_s - self._since_s, self._more())


def _is_about_an_outage(record: logging.LogRecord) -> bool:
    given = record.args if isinstance(record.args, tuple) else ()
    raised = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
    if any(_is_away(error) for error in (*given, raised) if isinstance(error, BaseException)):
        return True
    return record.name.split(".")[0] in FOREIGN and bool(_WORDS.search(record.getMessage()))


def _is_away(raised: BaseException | None) -> bool:
    for error in chain(raised):
        if isinstance(error, DatabaseUnavailable) or (isinstance(error, SQLAlchemyError) and passing(error)):
            return True
        names = {kind.__name__ for kind in type(error).__mro__}  # the driver is an extra
        if type(error).__module__.startswith("psycopg") and "OperationalError" in names:
            return True
    return False
