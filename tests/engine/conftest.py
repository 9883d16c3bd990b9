import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from cortex.engine.dbos import Body, Engine

Opener = Callable[..., AbstractAsyncContextManager[Engine]]


@pytest.fixture
def opened(tmp_path: Path) -> Opener:
    """`async with opened(name=body, ...) as engine`: an engine on this test's own file; again and again on the same."""

    @asynccontextmanager
    async def opener(
        prepare: Callable[[Engine], dict[str, Body]], *, grace_s: float = 2.0, is_worker: bool = False
    ) -> AsyncIterator[Engine]:
        engine = Engine.open(f"sqlite:///{tmp_path}/engine.db", is_worker=is_worker)
        for name, body in prepare(engine).items():
            engine.register(name, body)
        await engine.launch()
        try:
            yield engine
        finally:
            await engine.close(grace_s)

    return opener


@pytest.fixture
def until() -> Callable[[Callable[[], Awaitable[bool]]], Awaitable[None]]:
    return _until


async def _until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(20):
        while not await holds():  # noqa: ASYNC110 - what is waited for is told by no event
            await asyncio.sleep(0.02)
