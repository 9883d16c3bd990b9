"""Threads that end when nobody has needed them for a while, and at the end of the process wait for nothing.

Python's own pool keeps as many threads as were ever busy at once, each with a stack and a place for memory of its own.
"""

import atexit
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event, Lock, Thread, current_thread
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
Job = tuple[Future[Any], Callable[[], Any]]  # Any: whatever is asked for

CALM_S = 20.0
_open: "weakref.WeakSet[CalmPool]" = weakref.WeakSet()


class CalmPool(ThreadPoolExecutor):
    """A pool whose last threads end `calm_s` after their last work. asyncio takes it as any pool of this class."""

    def __init__(self, max_workers: int, thread_name_prefix: str = "calm", *, calm_s: float = CALM_S) -> None:
        """No thread yet: each begins when there is work and none is free."""
        super().__init__(max_workers, thread_name_prefix)  # `submit` is ours, so it starts no thread itself
        self._most, self._prefix, self._calm_s = max_workers, thread_name_prefix, calm_s
        self._lock = Lock()
        self._jobs: deque[Job] = deque()
        self._alive: set[Thread] = set()
        self._free: list[Event] = []  # what each thread waits for that has nothing to do; the last one is woken first
        self._begun = 0
        self._is_shut = False
        _open.add(self)

    @property
    def threads(self) -> int:
        """Tell how many there are now."""
        return len(self._alive)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Have it done by a thread; RuntimeError once the pool is shut."""
        with self._lock:
            if self._is_shut:
                raise RuntimeError("cannot schedule new futures after shutdown")
            future: Future[T] = Future()
            self._jobs.append((future, lambda: fn(*args, **kwargs)))
            if self._free:
                self._free.pop().set()
            elif len(self._alive) < self._most:
                self._begin()
            return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take nothing more; what was taken is done, unless it is to be cancelled. Free threads end at once."""
        with self._lock:
            self._is_shut = True
            left = [self._jobs.popleft() for _ in range(len(self._jobs))] if cancel_futures else []
            for woken in self._free:
                woken.set()
            self._free.clear()
            alive = list(self._alive)
        for future, _ in left:
            future.cancel()
        for thread in alive if wait else ():
            thread.join()

    def _begin(self) -> None:
        """One thread more. A daemon, so that the end of the process wakes it (`_end_all`) before it is waited for."""
        self._begun += 1
        thread = Thread(target=self._work, name=f"{self._prefix}_{self._begun}", daemon=True)
        self._alive.add(thread)
        try:
            thread.start()
        except RuntimeError:  # of too many threads, or of an interpreter that ends
            self._alive.discard(thread)
            if not self._alive:
                self._jobs.pop()
                raise

    def _work(self) -> None:
        while (job := self._next()) is not None:
            future, act = job
            if future.set_running_or_notify_cancel():
                _done(future, act)
            del job, future, act  # what it gave is nobody's but the caller's

    def _next(self) -> Job | None:
        """The next work; None after a while without any, and then this thread counts no more."""
        while True:
            with self._lock:
                if self._jobs:
                    return self._jobs.popleft()
                if self._is_shut:
                    self._alive.discard(current_thread())
                    return None
                woken = Event()
                self._free.append(woken)
            if not woken.wait(self._calm_s):
                with self._lock:
                    if woken in self._free:  # else it was woken as it gave up
                        self._free.remove(woken)
                        self._alive.discard(current_thread())
                        return None


def _done(future: "Future[Any]", act: Callable[[], Any]) -> None:
    try:
        result = act()
    except BaseException as error:  # noqa: BLE001 - whoever waits for the future is told of it
        future.set_exception(error)
    else:
        future.set_result(result)


@atexit.register
def _end_all() -> None:
    """Have what was taken done, and nobody wait until a thread is tired of waiting."""
    for pool in list(_open):
        pool.shutdown()
