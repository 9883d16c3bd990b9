"""How long a call takes, in processor time of this process: other work of the machine is not in it."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


def timed(act: Callable[[], T]) -> tuple[T, float]:
    """What the call gives back, and its milliseconds."""
    start_ns = time.process_time_ns()
    made = act()
    return made, (time.process_time_ns() - start_ns) / 1e6


@contextmanager
def settled() -> Iterator[None]:
    """What stands by now is no garbage, and is not looked through again: rows and indexes are old, as in a daemon."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
