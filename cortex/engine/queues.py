"""The queues: how many runs of each go on at once, in the all-in-one process here, among workers in the database.

`chat` and `api` count per user, the others in all.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dbos import DBOS

from cortex.engine.config import AT_ONCE, AT_ONCE_HERE, PER_USER


class QueueSlots:
    """The all-in-one process's, first come, first served. A run without a queue never waits."""

    def __init__(self) -> None:
        self._gates: dict[tuple[str, str], asyncio.Semaphore] = {}
        self._users: dict[tuple[str, str], int] = {}

    def is_free(self, queue: str, key: str) -> bool:
        """Tell whether a run that asks for a slot now would not wait."""
        gate = self._gates.get(_name(queue, key))
        return gate is None or not gate.locked()

    @asynccontextmanager
    async def slot(self, queue: str, key: str) -> AsyncIterator[None]:
        """Hold one of the queue's slots; waits for it."""
        if queue not in AT_ONCE:
            yield
            return
        name = _name(queue, key)
        gate = self._gates.setdefault(name, asyncio.Semaphore(AT_ONCE[queue]))
        self._users[name] = self._users.get(name, 0) + 1
        try:
            async with gate:
                yield
        finally:
            # With its last user, for there is one of these a person.
            self._users[name] -= 1
            if not self._users[name]:
                del self._users[name], self._gates[name]


async def register(poll_s: float) -> None:
    """Make the queues known; each worker then takes from them, and looks every `poll_s` unless it is woken.

    Those `PER_USER` count for each user over all workers, and have a limit for each worker beside that.
    """
    for name in PER_USER:
        await DBOS.register_queue_async(
            name,
            partition_concurrency=AT_ONCE[name],
            worker_concurrency=AT_ONCE_HERE[name],
            polling_interval_sec=poll_s,
        )
    for name in AT_ONCE.keys() - PER_USER:
        await DBOS.register_queue_async(name, worker_concurrency=AT_ONCE[name], polling_interval_sec=poll_s)


async def adopt(version: str) -> None:
    """Take what stands in the queues: where the all-in-one process runs, there are no workers."""
    waiting = await DBOS.list_workflows_async(
        status="ENQUEUED", queue_name=list(AT_ONCE), app_version=version, load_input=False, load_output=False
    )
    if waiting:
        await DBOS.resume_workflows_async([state.workflow_id for state in waiting])


def _name(queue: str, key: str) -> tuple[str, str]:
    return (queue, key if queue in PER_USER else "")
