"""The runs that execute in this process: their asyncio tasks, the steps in flight, and the order of steps.

Replay finds a step by its number, and numbers are drawn in the order of the calls. So a branch that runs beside
others (`gather`, `TaskGroup`) may make one durable call: the order of a second one would depend on timing.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from weakref import WeakSet

_current: ContextVar["Run | None"] = ContextVar("cortex_engine_run", default=None)


class NotReplayable(RuntimeError):
    """The run's code makes durable calls in an order that a replay could not repeat. A bug of the run's author."""


class Run:
    """One execution of one run."""

    def __init__(self, run_id: str, task: "asyncio.Task[object]") -> None:
        self.run_id = run_id
        self.task = task
        self.is_interrupted = False
        self.has_ended = False
        self.is_parked = False  # it waits for a person, or for work to be resumed
        self.waits_over = 0  # of an earlier life: a replay passes them
        self.unmoved: tuple[int, int, int] | None = None  # what `lives.py` keeps of it, until it moves in this life
        self.alone: asyncio.Lock | None = None  # held while no other run that was begun in vain may begin
        self._branches: WeakSet[asyncio.Task[object]] = WeakSet()

    def draw(self, name: str) -> None:
        """Check that the next step number is drawn where a replay would draw it too; raises NotReplayable."""
        self.is_parked = False
        task = asyncio.current_task()
        if task is None or task is self.task:
            return
        if task in self._branches:
            raise NotReplayable(
                f"{name}: a second durable call in one parallel branch. Gather single calls, go on in the run itself"
            )
        self._branches.add(task)

    def let_others_begin(self) -> None:
        """It completed a step, waits for somebody, or ended: it was not begun in vain."""
        if self.alone is not None:
            self.alone.release()
            self.alone = None


class Runs:
    """All runs of this process."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}
        self._steps = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        self.is_closing = False

    @contextmanager
    def executing(self, run_id: str) -> Iterator[Run]:
        """The calling task is this run's body until the block ends; then it only writes down how the run ended."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("A run needs an event loop")
        self.interrupt(run_id)  # one that was resumed executes once: an earlier try of it here has lost it
        run = Run(run_id, task)
        self._runs[run_id] = run
        task.add_done_callback(lambda _: self._forget(run))
        token = _current.set(run)
        try:
            yield run
        finally:
            _current.reset(token)
            run.has_ended = True
            run.let_others_begin()

    def _forget(self, run: Run) -> None:
        if self._runs.get(run.run_id) is run:  # it may have been resumed, and run here a second time
            del self._runs[run.run_id]

    @asynccontextmanager
    async def step(self) -> AsyncIterator[None]:
        """A step in flight. While closing, a new one waits until its run is taken down: the next start makes it."""
        if self.is_closing:
            await asyncio.get_running_loop().create_future()
        self._steps += 1
        self._quiet.clear()
        try:
            yield
        finally:
            self._steps -= 1
            if self._steps == 0:
                self._quiet.set()

    def ids(self) -> list[str]:
        """The runs that execute here now."""
        return list(self._runs)

    def is_parked(self, run_id: str) -> bool:
        """Tell whether it executes here and waits for somebody."""
        run = self._runs.get(run_id)
        return run is not None and run.is_parked

    def interrupt(self, run_id: str) -> "asyncio.Task[object] | None":
        """Cancel the task of a run at whatever it awaits; the task, or None when it does not run here."""
        run = self._runs.get(run_id)
        if run is None:
            return None
        # Once only: a second cancel would cut the run's own cleaning up short.
        if not run.is_interrupted and not run.has_ended:
            run.is_interrupted = True
            run.task.cancel()
        return run.task

    async def wind_down(self, grace_s: float) -> list[str]:
        """Let the steps in flight end, start no other, take the runs down; the ids of those that had not ended."""
        self.is_closing = True
        try:
            async with asyncio.timeout(grace_s):
                await self._quiet.wait()
        except TimeoutError:
            pass  # a step that is cut off here is run again after the next start
        ids = self.ids()
        tasks = [task for run_id in ids if (task := self.interrupt(run_id)) is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=2)
        return ids


def current() -> Run | None:
    """The run whose body is executing, seen from the body, its branches and its steps."""
    return _current.get()
