"""Counts how often a run was begun in vain: one that kills its process each time is not begun for ever, and dies alone.

A life counts when it began the run, completed no step of it, and showed nothing of its answer. One spent in line did
not begin it, one in which the run waits for a person is no fault of its own, nor one that ends in order or while the
process is still starting. Kept with the run, as attributes of DBOS's row.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dbos import DBOSClient, StepInfo
from sqlalchemy.exc import SQLAlchemyError

from cortex.base.clock import ticks_s
from cortex.engine.runs import Run
from cortex.ports.steps import begins_at_once, is_first_life

LIVES_MAX = 5
LIVES_MOVED_MAX = 25  # in which it moved, and completed no step: one that dies in the middle of each answer ends too
LIVES_TOGETHER = 2  # after so many lives in vain a run is begun alone, and not before the process has lived for a while
CALM_S = 2.0  # so long at first, then twice that: what dies sooner did not die of this run, and has not begun it
FIRST = {"lives": 1, "steps": 0}  # what a run that begins at once is started with: no transaction of its own
WAIT_STEP = "DBOS.recv"  # as DBOS keeps a wait that is over

log = logging.getLogger(__name__)


class BegunInVain(RuntimeError):
    """The run killed its process, or died with it, `LIVES_MAX` times at the same step: it is not begun again."""


class Lives:
    """Counts the lives of runs. Over a client, for it is asked from inside a run and must be no step of that."""

    def __init__(self, client: DBOSClient, calm_s: float = CALM_S, ticks: Callable[[], float] = ticks_s) -> None:
        """Made when the process begins to run what was left. `calm_s`: see `CALM_S`."""
        self._client = client
        self._calm_s = calm_s
        self._ticks = ticks
        self._since_s = ticks()
        self._alone = asyncio.Lock()

    async def begin(self, run: Run) -> None:
        """Count the life that begins now, and the run's waits that are over. Raises BegunInVain.

        One that was begun in vain before waits until the process has lived for a while, and until no other such run is
        between its begin and its next step.
        """
        if begins_at_once.get():
            return  # it was started with `FIRST`
        lives = moved = 0
        steps: list[StepInfo] = []
        if not is_first_life.get():
            steps = await self._client.list_workflow_steps_async(run.run_id, load_output=False)
            states = await self._client.list_workflows_async(
                workflow_ids=[run.run_id], load_input=False, load_output=False
            )
            kept = states[0].attributes or {}
            if kept.get("steps") == len(steps):
                lives, moved = kept["lives"], kept.get("moved", 0)
        if lives >= LIVES_MAX or moved >= LIVES_MOVED_MAX:
            log.error("engine: run %s was begun %d times and completed no step: given up", run.run_id, lives + moved)
            raise BegunInVain(run.run_id)
        if lives >= LIVES_TOGETHER or moved >= LIVES_MAX:
            left_s = self._since_s + self._calm_s * 2 ** max(lives - LIVES_TOGETHER, 0) - self._ticks()
            await asyncio.sleep(max(left_s, 0))
            await self._alone.acquire()
            run.alone = self._alone
        await self._write(run.run_id, lives + 1, len(steps), moved)
        if not is_first_life.get():
            run.unmoved = (lives, len(steps), moved)
        run.waits_over = sum(step["function_name"] == WAIT_STEP for step in steps)

    async def has_moved(self, run: Run) -> None:
        """It shows something of the step it is at: this life was not in vain. Written down once a life."""
        if run.unmoved is not None:
            (lives, steps, moved), run.unmoved = run.unmoved, None
            with _tolerated(run.run_id):
                await self._write(run.run_id, lives, steps, moved + 1)

    async def forgive(self, run_id: str) -> None:
        """Count this life as none begun in vain: the run waits, and what ends it is no fault of its own."""
        with _tolerated(run_id):
            await self._client.update_workflow_attributes_async(run_id, None)

    async def _write(self, run_id: str, lives: int, steps: int, moved: int) -> None:
        await self._client.update_workflow_attributes_async(run_id, {"lives": lives, "steps": steps, "moved": moved})


@contextmanager
def _tolerated(run_id: str) -> Iterator[None]:
    """The run goes on where its count cannot be written down."""
    try:
        yield
    except SQLAlchemyError as error:
        log.warning("engine: how run %s goes on cannot be written down: %s", run_id, error)
