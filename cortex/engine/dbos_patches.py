"""Changes in DBOS: its log to what a reader can act on, its looks to those that are needed. Called at launch.

They have no setting in DBOS 3.4.0, the newest on 2026-11-27, so its internals are reached here, and only here. Upstream
(dbos-inc/dbos-transact-py) issue 515, intervals of queue polls, would end `poll_often` and `poll_rarely`. No issue asks
for the rest: unused threads, queues that are woken, first-life looks, parked runs, the wait between retries, `requeue`.
"""

import logging
import threading
import time
from collections.abc import Callable
from time import monotonic
from typing import Any, cast
from weakref import WeakSet

from dbos import DBOS, DBOSClient, Queue, _dbos, _queue, _sys_db
from dbos import error as dbos_error
from dbos._utils import INTERNAL_QUEUE_NAME

from cortex.base.calm_pool import CalmPool

RESUMING_POLL_S = 0.3  # while runs are resumed after a start
IDLE_POLL_S = 10.0  # afterwards: a process that is alone resumes nothing in its life
_NEW_QUEUES_S = 60.0  # how often the list of queues is read, unless somebody wakes it
TAKEN_A_LOOK = 2  # runs that a worker takes from a queue before others get to look
_BESIDE_S = 0.015  # for each run that it has at work, it lets workers with less to do look first
_BESIDE_MOST_S = 0.3
_AGAIN_S = 0.02
RETRY_MOST_S = 5.0
_LOOK_FOR_STOP_S = 2.0  # should an end not wake it

_FAILED_LAUNCH = "DBOS failed to launch"
_CANCELLED_TASK = "Asyncio task cancelled for workflow or step"


class _OrdinaryEnds(logging.Filter):
    """Drops the lines about runs that were stopped on purpose, and a launch's traceback: whoever launches says it."""

    def filter(self, record: logging.LogRecord) -> bool:
        if str(record.msg).startswith((_CANCELLED_TASK, _FAILED_LAUNCH)):
            return False
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, dbos_error.DBOSAwaitedWorkflowCancelledError)


_FILTER = _OrdinaryEnds()


def quiet_log() -> None:
    """Send DBOS's log through the program's own handlers, without its console handler and its advice."""
    logger = logging.getLogger("dbos")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    logger.propagate = True
    logger.setLevel(logging.WARNING)
    logger.addFilter(_FILTER)


def quiet_threads() -> None:
    """Before a launch: look for nothing that Cortex does not have, and let the queue threads be woken.

    DBOS looks once a second for delayed and overdue runs, for its own schedules in its first minute, and for queues.
    Measured 2026-11-21, idle on SQLite: its threads take 0.08 % of a core with `poll_rarely`, 0.39 % before.
    """
    _taken.clear()
    _loads.clear()  # of an engine that was open before
    # Cortex starts no run with a delay or a deadline, and has no schedule of DBOS's.
    _dbos.background_jobs_thread = _end_at_once  # type: ignore[assignment,attr-defined]  # called by that name
    _dbos.dynamic_scheduler_loop = _end_at_once  # type: ignore[assignment,attr-defined]
    _queue.queue_worker_thread = _poll_until_woken
    _dbos.queue_thread = _manage_until_woken  # type: ignore[attr-defined]
    # Its pool is the loop's default one too: as many threads as were ever busy at once stayed for good.
    _dbos.ThreadPoolExecutor = CalmPool  # type: ignore[assignment,attr-defined]  # called by that name


def _end_at_once(*_: object) -> None:
    """The whole of a thread that has nothing to do."""


def poll_often(instance: DBOS) -> None:
    """Look for resumed runs at once: they wait in DBOS's internal queue."""
    instance._registry.get_internal_queue()._polling_interval_sec = RESUMING_POLL_S
    wake()


def poll_rarely(instance: DBOS, poll_s: float) -> None:
    """Look for resumed runs as often as an idle daemon can afford."""
    instance._registry.get_internal_queue()._polling_interval_sec = poll_s


def look_up_resumed_runs_only(instance: DBOS, is_first_life: Callable[[], bool]) -> None:
    """Let a run that was begun in this life make its steps without asking, ahead of each, for a result of it.

    DBOS asks in a transaction of its own, and refuses a cancelled run there: `Engine.cancel` interrupts the run here,
    and the look of every half second one that another process cancelled.
    """
    system = instance._sys_db
    look_up = system.check_operation_execution

    def looked_up(workflow_id: str, function_id: int, function_name: str, **more: Any) -> Any:
        return None if is_first_life() else look_up(workflow_id, function_id, function_name, **more)

    # An instance's own attribute in place of the method: the class stays as it is.
    system.check_operation_execution = looked_up  # type: ignore[method-assign]


def keep_the_clocks_expression(instance: DBOS) -> None:
    """Let DBOS make the SQL of its clock once: a type of its own each time cost 900 calls of Python a run."""
    system = instance._sys_db
    expression = system._now_ms_sql()
    system._now_ms_sql = lambda: expression  # type: ignore[method-assign]  # as in `look_up_resumed_runs_only`


def requeue(run_id: str, executor_id: str) -> bool:
    """Put a run back in line if it still counts as this executor's; whether it did.

    DBOS's own recovery of a single run. `resume_workflow` would also take one that another worker has meanwhile.
    """
    system = _dbos._get_dbos_instance()._sys_db
    return system.reenqueue_for_recovery(run_id, [executor_id], INTERNAL_QUEUE_NAME)


class _Time:
    """The module `time` as DBOS sees it, with shorter sleeps, which an end cuts short."""

    def __init__(self) -> None:
        self._ended = threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def sleep(self, seconds: float) -> None:
        self._ended.wait(min(seconds, RETRY_MOST_S))

    def end(self) -> None:
        self._ended.set()


def sleep_briefly() -> _Time:
    """Let DBOS try again every five seconds while its database is away, where it would wait up to a minute."""
    brief = _Time()
    _sys_db.time = brief  # type: ignore[assignment,attr-defined]  # it sleeps there and nowhere else for so long
    return brief


def retry_no_longer(client: DBOSClient) -> None:
    """Let what waits for a database that is away fail: a thread that tries again for ever keeps the process alive."""
    for system in (_dbos._get_dbos_instance()._sys_db, client._sys_db):
        system._retry_connection_errors = False


class _Wakeable:
    """A stop event whose wait also ends when it is woken. DBOS's queue threads wait on it between their polls."""

    def __init__(self, stop: "threading.Event | _Wakeable", least_s: float = 0.0, queue: str = "") -> None:
        # The queue's threads are given what their manager waits on.
        self._stop: threading.Event = stop._stop if isinstance(stop, _Wakeable) else stop
        self._least_s = least_s
        self._woken = threading.Event()
        if queue:
            self._woken.set()  # what stood in line before it began to listen
        self.queue = queue
        _waiting.add(self)

    def wake(self) -> None:
        self._woken.set()

    def is_set(self) -> bool:
        return self._stop.is_set()

    def wait(self, timeout: float = 0.0) -> bool:
        has_taken = _taken.pop(self.queue, 0) > 0  # there may be more
        ends_s = monotonic() + (_AGAIN_S if has_taken else max(timeout, self._least_s))
        while not self._stop.is_set() and (left_s := ends_s - monotonic()) > 0:
            if self._woken.wait(min(left_s, _LOOK_FOR_STOP_S)):
                break
        self._stop.wait(min(_BESIDE_S * _load(self.queue), _BESIDE_MOST_S))
        self._woken.clear()
        return self._stop.is_set()


_waiting: WeakSet[_Wakeable] = WeakSet()
_taken: dict[str, int] = {}  # by queue, in the look that goes on
_loads: list[Callable[[str], int]] = []  # of the engine that is open, if that is a worker
_poll = _queue.queue_worker_thread
_manage = _queue.queue_thread


def _load(queue: str) -> int:
    return _loads[-1](queue) if _loads and queue else 0


# The threads call `is_set` and `wait` of what they take for an Event, nothing else.
def _poll_until_woken(stop_event: threading.Event, dbos: DBOS, queue: Queue) -> None:
    _poll(cast("threading.Event", _Wakeable(stop_event, queue=queue.name)), dbos, queue)


def _manage_until_woken(stop_event: threading.Event, dbos: DBOS) -> None:
    _manage(cast("threading.Event", _Wakeable(stop_event, _NEW_QUEUES_S)), dbos)


def share_queues(instance: DBOS, is_parked: Callable[[str], bool]) -> None:
    """Let workers share what waits: each takes a few at a time, those with less to do first.

    A run that waits for a person takes none of its worker's places. Where one ends, its queue is looked at again.
    """
    active, system = instance._active_workflows_set, instance._sys_db
    claim, remove = system.start_queued_workflows, active._remove

    def at_work(queue_name: str) -> int:
        with active._lock:
            found = [(run_id, bucket) for run_id, buckets in active._m.items() for bucket in buckets]
        return sum(bucket is not None and bucket[0] == queue_name and not is_parked(id) for id, bucket in found)

    def claimed(queue: Queue, *about: Any, **more: Any) -> Any:
        if queue.name != INTERNAL_QUEUE_NAME and _taken.get(queue.name, 0) >= TAKEN_A_LOOK:
            return [], "worker_concurrency"
        found = claim(queue, *about, **more)
        _taken[queue.name] = _taken.get(queue.name, 0) + len(found[0])
        return found

    def removed(key: str, bucket: Any) -> None:
        remove(key, bucket)
        if bucket is not None:
            wake(bucket[0])

    # An instance's own attributes in place of the methods, as in `look_up_resumed_runs_only`.
    active.count_for_queue = at_work  # type: ignore[method-assign]
    active._remove = removed  # type: ignore[method-assign]
    system.start_queued_workflows = claimed  # type: ignore[method-assign]
    _loads[:] = [at_work]


class _End(threading.Event):
    """The last of DBOS's stop events: once the others are set, those who wait are woken."""

    def set(self) -> None:
        super().set()
        wake()


def wake_at_end(instance: DBOS, sleeping: _Time) -> None:
    """After the launch: let its end wake the queue threads too, and the one that sleeps between looks for news.

    The latter is woken when it has been told to stop, which is just before its connections are let go: its end took
    0.2 s before (2026-11-24).
    """
    instance.background_thread_stop_events.append(_End())
    system = instance._sys_db
    let_go = system._cleanup_connections

    def woken() -> None:
        sleeping.end()
        let_go()

    system._cleanup_connections = woken  # type: ignore[method-assign]  # as in `look_up_resumed_runs_only`


def wake(queue: str = "") -> None:
    """Look into this queue now, or into all, and for new ones."""
    for waiting in list(_waiting):
        if not queue or waiting.queue == queue:
            waiting.wake()
