"""Work that runs beside a block and ends with it, and what a thread makes for a block that may end before it."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from contextlib import asynccontextmanager
from threading import Lock
from typing import TypeVar

from cortex.base.clock import ticks_s

AGAIN_S = 5.0
RARELY_S = 600.0

log = logging.getLogger(__name__)

Made = TypeVar("Made")
Body = Callable[[], Coroutine[None, None, None]]
Begin = Callable[[Coroutine[None, None, None]], "asyncio.Task[None]"]


class _Kept:
    """Work that is begun again when it fails: a little later, and more and more rarely while it fails at once."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self._wait_s = AGAIN_S
        self._next: asyncio.TimerHandle | None = None
        self._is_over = False
        self._begin()

    def stop(self) -> "asyncio.Task[None]":
        """Begin it no more; what of it may still run."""
        self._is_over = True
        if self._next is not None:
            self._next.cancel()
        return self._worker

    def _begin(self) -> None:
        self._begun_s = ticks_s()
        self._worker = asyncio.create_task(self._body())  # noqa: TID251 - this is the place
        self._worker.add_done_callback(self._ended)

    def _ended(self, worker: "asyncio.Task[None]") -> None:
        if worker.cancelled() or (error := worker.exception()) is None:
            return
        if self._is_over:
            log.error("background task failed at its end", exc_info=error)
            return
        wait_s = self._wait_s = AGAIN_S if ticks_s() - self._begun_s > RARELY_S else self._wait_s
        log.error("background task failed, begun again in %g s", wait_s, exc_info=error)
        self._next = asyncio.get_running_loop().call_later(wait_s, self._begin)
        self._wait_s = min(2 * wait_s, RARELY_S)


@asynccontextmanager
async def background_tasks(*bodies: Body) -> AsyncIterator[None]:
    """Run them until the block ends. One that fails takes nothing with it: it is told in the log and begun again."""
    kept = [_Kept(body) for body in bodies]
    try:
        yield
    finally:
        await _end([one.stop() for one in kept])


@asynccontextmanager
async def crew() -> AsyncIterator[Begin]:
    """Give what begins work inside the block, piece by piece; the end of the block ends all that goes on still.

    A TaskGroup cancels once: one cancel that is swallowed, and the block would never end.
    """
    workers = set[asyncio.Task[None]]()

    def begin(body: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        worker = asyncio.create_task(body)  # noqa: TID251 - this is the place
        workers.add(worker)
        worker.add_done_callback(workers.discard)
        worker.add_done_callback(_log_failure)
        return worker

    try:
        yield begin
    finally:
        await _end(workers)


async def apart(work: Coroutine[None, None, None]) -> BaseException | None:
    """Do what is done for one among many; its failure, of whatever kind, so that it ends nothing of the others."""
    (failure,) = await asyncio.gather(work, return_exceptions=True)
    return failure


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
