"""Keeps DBOS quiet: its log to what a reader can act on, its polling to what an idle house can afford.

The intervals have no setting in DBOS 3.4, so its internals are reached here, and only here. Called at launch.
"""

import logging
import threading
from time import monotonic
from typing import cast
from weakref import WeakSet

from dbos import DBOS, Queue, _queue, _workflow_commands
from dbos import error as dbos_error

EAGER_POLL_S = 0.3  # while runs are resumed after a start
CALM_POLL_S = 2.0

_LOOK_FOR_STOP_S = 0.25

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
    logger.setLevel(logging.WARNING)
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


class _Bell:
    """A stop event whose wait also ends when there is work. DBOS's queue threads wait on it between their polls."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._rung = threading.Event()
        _bells.add(self)

    def ring(self) -> None:
        self._rung.set()

    def is_set(self) -> bool:
        return self._stop.is_set()

    def wait(self, timeout: float = 0.0) -> bool:
        ends_s = monotonic() + timeout
        while not self._stop.is_set() and (left_s := ends_s - monotonic()) > 0:
            if self._rung.wait(min(left_s, _LOOK_FOR_STOP_S)):
                self._rung.clear()
                break
        return self._stop.is_set()


_bells: WeakSet[_Bell] = WeakSet()
_poll = _queue.queue_worker_thread


def _poll_on_bell(stop_event: threading.Event, dbos: DBOS, queue: Queue) -> None:
    # The thread calls `is_set` and `wait` of what it takes for an Event, nothing else.
    _poll(cast("threading.Event", _Bell(stop_event)), dbos, queue)


def wakeful() -> None:
    """Let the queue threads of the next launch be woken by `wake`: a message need not wait for a slow poll."""
    _queue.queue_worker_thread = _poll_on_bell


def wake() -> None:
    """Look into the queues now."""
    for bell in list(_bells):
        bell.ring()
