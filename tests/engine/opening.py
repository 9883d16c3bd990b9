"""What the engine's tests share: opening one, and waiting for a fact."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from cortex.engine.config import VERSION
from cortex.engine.dbos import Body, Engine
from cortex.ports.engine import Runner
from tests.patience import PATIENCE_S

Prepare = Callable[[Engine], dict[str, Body]]


class Opener(Protocol):
    def __call__(
        self, prepare: Prepare, *, grace_s: float = 2.0, is_worker: bool = False, version: str = VERSION
    ) -> AbstractAsyncContextManager[Engine]: ...


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await holds():  # noqa: ASYNC110 - what is waited for is told by no event
            await asyncio.sleep(0.02)


async def is_state(engine: Runner, run_id: str, state: str) -> bool:
    return await engine.status(run_id) == state


async def true(fact: bool) -> bool:
    return fact
