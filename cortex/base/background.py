"""Work that runs beside a block and ends with it, and what a thread makes for a block that may end before it."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from contextlib import asynccontextmanager
from threading import Lock
from typing import TypeVar

AGAIN_S = 5.0
LOGGER = __name__

log = logging.getLogger(LOGGER)

Made = TypeVar("Made")


@asynccontextmanager
async def background_tasks(*bodies: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Run them until the block ends; one that fails before is told in the log at once and takes nothing with it."""
    workers = [asyncio.create_task(body) for body in bodies]  # noqa: TID251 - this is the place
    for worker in workers:
        worker.add_done_callback(_log_failure)
    try:
        yield
    finally:
        await _end(workers)


async def handed(make: Callable[[], Made], let_go: Callable[[Made], object]) -> Made:
    """Return what `make` makes in a thread. Where whoever waits is cancelled meanwhile, a thread gives it to `let_go`.

    A thread goes on behind a cancel, and what it opens then, nobody else would close. Raises what `make` raises.
    """
    lock, came, is_left = Lock(), list[Made](), False

    def work() -> Made:
        made = make()
        with lock:
            came.append(made)
            is_alone = is_left
        if is_alone:
            let_go(made)
        return made

    try:
        return await asyncio.to_thread(work)
    except asyncio.CancelledError:
        with lock:
            is_left = True
        if came:
            asyncio.get_running_loop().run_in_executor(None, let_go, came[0])
        raise


async def _end(workers: Collection["asyncio.Task[None]"]) -> None:
    """Cancel them until they are over, more than once: a cancel that a library swallows must not hold up the end."""
    left, cancelled = set(workers), None
    while left:
        for worker in left:
            worker.cancel()
        try:
            _, left = await asyncio.wait(left, timeout=AGAIN_S)
        except asyncio.CancelledError as error:  # whoever waits for us is cancelled anew: nobody is left behind
            cancelled = error
    if cancelled is not None:
        raise cancelled


def _log_failure(worker: "asyncio.Task[None]") -> None:
    if not worker.cancelled() and worker.exception() is not None:
        log.error("background task failed", exc_info=worker.exception())
