"""Keeps DBOS quiet: its log to what a reader can act on, its polling to what an idle house can afford.

The intervals have no setting in DBOS 3.4, so its internals are reached here, and only here. Called at launch.
"""

import logging

from dbos import DBOS, _workflow_commands
from dbos import error as dbos_error

EAGER_POLL_S = 0.3  # while runs are resumed after a start
CALM_POLL_S = 2.0

_CANCELLED_TASK = "Asyncio task cancelled for workflow or step"


class _OrdinaryEnds(logging.Filter):
    """Drops the lines about runs that were stopped on purpose: a stop is no fault."""

    def filter(self, record: logging.LogRecord) -> bool:
        if str(record.msg).startswith(_CANCELLED_TASK):
            return False
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, dbos_error.DBOSAwaitedWorkflowCancelledError)


_FILTER = _OrdinaryEnds()


def hush() -> None:
    """Send DBOS's log through the program's own handlers, without its console handler and its advice."""
    logger = logging.getLogger("dbos")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    logger.propagate = True
    logger.addFilter(_FILTER)


def slow_housekeeping(interval_s: float) -> None:
    """Look less often for delayed and overdue runs, of which there are none here; DBOS does so once a second.

    Measured 2026-11-21, idle on SQLite: with the queues of `calm` 0.28 % of a core, 0.96 % without.
    """
    _workflow_commands._BACKGROUND_JOBS_INTERVAL_SEC = interval_s


def eager(instance: DBOS) -> None:
    """Look for resumed runs at once: they wait in DBOS's internal queue."""
    instance._registry.get_internal_queue()._polling_interval_sec = EAGER_POLL_S


def calm(instance: DBOS) -> None:
    """Look for resumed runs as often as an idle house can afford."""
    instance._registry.get_internal_queue()._polling_interval_sec = CALM_POLL_S
