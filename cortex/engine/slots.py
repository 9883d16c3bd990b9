"""How many runs of a queue go on at once in the all-in-one process, without a polled queue.

`chat` and `api` count per user, the others in all. A worker leaves this to the engine's database queues of these names.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cortex.engine.config import AT_ONCE, PER_USER


class QueueSlots:
    """First come, first served. A run without a queue never waits."""

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


def _name(queue: str, key: str) -> tuple[str, str]:
    return (queue, key if queue in PER_USER else "")
