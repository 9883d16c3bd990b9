"""Looks that the engine takes again and again, for as long as it is open, and what one for lost runs remembers."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from dbos import DBOS
from sqlalchemy.exc import SQLAlchemyError

from cortex.engine import dbos_patches
from cortex.engine.runs import Runs

log = logging.getLogger(__name__)


async def repeat(what: str, look: Callable[[], Awaitable[None]], every_s: float) -> None:
    """Look until cancelled; a database error is no end of it."""
    while True:
        try:
            await look()
        except (SQLAlchemyError, OSError) as error:
            log.warning("engine: cannot read %s, retrying: %s", what, error)
        await asyncio.sleep(every_s)


class LostRuns:
    """Runs that count as this process's and that no task here executes; remembers those of its last look."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._lost: set[str] = set()

    async def take_up(self, executor_id: str, version: str) -> int:
        """Resume them; how many were seen so. Not at first sight: between a run's row and its task lies a moment."""
        mine = await DBOS.list_workflows_async(
            status="PENDING", executor_id=executor_id, app_version=version, load_input=False
        )
        here = set(self._runs.ids())
        lost = {state.workflow_id for state in mine if state.workflow_id not in here}
        for run_id in lost & self._lost:
            log.warning("engine: run %s is executed by nobody, resuming it", run_id)
            await asyncio.to_thread(dbos_patches.requeue, run_id, executor_id)
        self._lost = lost - self._lost
        if lost:
            dbos_patches.wake()
        return len(lost)
