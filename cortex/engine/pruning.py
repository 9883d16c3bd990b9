"""Runs forgotten with their steps and streams: those that ended long ago, and those of whoever is gone.

Of a run that has ended the tables hold what it did: its steps, most of what the engine keeps, go minutes later.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa
from dbos import DBOS

from cortex.base.clock import now
from cortex.engine.config import ENDED_STATES, PRUNE_AT_ONCE
from cortex.engine.database import DBOS_SCHEMA, is_postgres

# A worker that was taken for dead may still replay a run that another has ended meanwhile, until it looks around: it
# must find the steps. It does so every two seconds (`recover.py`), or dies of its lost connection.
STEPS_KEPT = timedelta(minutes=10)

Delete = Callable[[list[str]], Awaitable[None]]


async def prune(before: datetime) -> int:
    """Forget the runs that ended before this moment; how many."""
    forgotten = 0
    while True:
        ended = await DBOS.list_workflows_async(
            status=ENDED_STATES,
            completed_before=before.isoformat(),
            limit=PRUNE_AT_ONCE,
            load_input=False,
            load_output=False,
        )
        if not ended:
            return forgotten
        await DBOS.delete_workflows_async([state.workflow_id for state in ended])
        forgotten += len(ended)


async def forget(delete: Delete, run_ids: Sequence[str]) -> None:
    """Forget these by what deletes them in this process; one that is not there is none."""
    for at in range(0, len(run_ids), PRUNE_AT_ONCE):
        await delete(list(run_ids[at : at + PRUNE_AT_ONCE]))


class StepSweep:
    """Lets go of the steps of runs that ended a while ago; the run itself stays known until it is pruned."""

    def __init__(self, database: sa.Engine, kept: timedelta = STEPS_KEPT) -> None:
        """`kept`: for so long after its end a run may still be replayed somewhere."""
        self._database, self._kept = database, kept
        schema = DBOS_SCHEMA if is_postgres(database.url.drivername) else None
        names = ("workflow_uuid", "status", "completed_at")
        self._runs = sa.table("workflow_status", *map(sa.column, names), schema=schema)
        self._steps = sa.table("operation_outputs", sa.column("workflow_uuid"), schema=schema)
        self._past: tuple[int, str] = (0, "")  # completion and id of the last run whose steps are gone

    async def look(self) -> None:
        """Go through the runs that ended since the last look, some in each transaction."""
        while await asyncio.to_thread(self._let_go, int((now() - self._kept).timestamp() * 1000)):
            """Others write in between."""

    def _let_go(self, before_ms: int) -> bool:
        """The next of them; whether there may be more."""
        key = self._runs.c.completed_at, self._runs.c.workflow_uuid
        ended = (
            sa.select(*key)
            .where(self._runs.c.status.in_(ENDED_STATES), self._runs.c.completed_at <= before_ms)
            .where(
                self._runs.c.completed_at >= self._past[0], sa.tuple_(*key) > sa.tuple_(*map(sa.literal, self._past))
            )
            .order_by(*key)
            .limit(PRUNE_AT_ONCE)
        )
        with self._database.begin() as connection:
            found = connection.execute(ended).all()
            if found:
                gone = [run_id for _, run_id in found]
                connection.execute(sa.delete(self._steps).where(self._steps.c.workflow_uuid.in_(gone)))
        if found:
            self._past = (found[-1][0], found[-1][1])
        return len(found) == PRUNE_AT_ONCE
