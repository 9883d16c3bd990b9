"""How often a run was begun in vain: one that kills its process each time is not begun for ever, and dies alone.

A life counts when it began the run and completed no step of it. One spent in line did not begin it, and one in which
the run waits for a person is no fault of its own. Kept with the run, as attributes of DBOS's row.
"""

import asyncio
import logging

from dbos import DBOSClient, StepInfo

from cortex.engine.runs import Run
from cortex.ports.steps import begins_at_once, is_first_life

LIVES_MAX = 5
LIVES_TOGETHER = 2  # after so many lives in vain a run is begun alone
FIRST = {"lives": 1, "steps": 0}  # what a run that begins at once is started with: no transaction of its own
WAIT_STEP = "DBOS.recv"  # as DBOS keeps a wait that is over

log = logging.getLogger(__name__)


class BegunInVain(RuntimeError):
    """The run killed its process, or died with it, `LIVES_MAX` times at the same step: it is not begun again."""


class Lives:
    """Counts the lives of runs. Over a client, for it is asked from inside a run and must be no step of that."""

    def __init__(self, client: DBOSClient) -> None:
        self._client = client
        self._alone = asyncio.Lock()

    async def begin(self, run: Run) -> None:
        """Count the life that begins now, and the run's waits that are over. Raises BegunInVain.

        One that was begun in vain before waits until no other such run is between its begin and its next step.
        """
        if begins_at_once.get():
            return  # it was started with `FIRST`
        lives = 0
        steps: list[StepInfo] = []
        if not is_first_life.get():
            steps = await self._client.list_workflow_steps_async(run.run_id, load_output=False)
            states = await self._client.list_workflows_async(
                workflow_ids=[run.run_id], load_input=False, load_output=False
            )
            kept = states[0].attributes or {}
            lives = kept["lives"] if kept.get("steps") == len(steps) else 0
        if lives >= LIVES_MAX:
            log.error("engine: run %s was begun %d times and completed no step: given up", run.run_id, lives)
            raise BegunInVain(run.run_id)
        if lives >= LIVES_TOGETHER:
            await self._alone.acquire()
            run.alone = self._alone
        await self._client.update_workflow_attributes_async(run.run_id, {"lives": lives + 1, "steps": len(steps)})
        run.waits_over = sum(step["function_name"] == WAIT_STEP for step in steps)

    async def forgive(self, run_id: str) -> None:
        """What ends this life is no fault of the run: it waits."""
        await self._client.update_workflow_attributes_async(run_id, None)
