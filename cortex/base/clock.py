"""The only place where time is read. Everything else takes a `Clock`, so that tests can hold one still."""

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def now() -> datetime:
    """The present moment, aware, in UTC."""
    return datetime.now(UTC)  # noqa: TID251 - this is the place


def ticks_s() -> float:
    """A monotonic reading in seconds, for durations only."""
    return time.monotonic()  # noqa: TID251 - this is the place


def worked_s() -> float:
    """The processor time in seconds that this thread has had: what it waited for, a core too, is not in it."""
    return time.thread_time()


def boot_s() -> float:
    """Seconds since the machine started, sleep included: goes on evenly, and means the same in every process."""
    return time.clock_gettime(time.CLOCK_BOOTTIME if sys.platform == "linux" else time.CLOCK_MONOTONIC)
