"""Runs forgotten with their steps and streams: those that ended long ago, and those of whoever is gone."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from dbos import DBOS

from cortex.engine.config import ENDED_STATES, PRUNE_AT_ONCE

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
