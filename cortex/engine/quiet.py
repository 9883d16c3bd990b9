"""Keeps DBOS's log to what a reader of Cortex's log can act on. Called when an engine is launched."""

import logging

from dbos import error as dbos_error

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
