from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from cortex.engine.config import VERSION
from cortex.engine.dbos import Engine
from tests.databases import engine_of
from tests.engine.opening import Opener, Prepare


@pytest.fixture
def opened(tmp_path: Path) -> Opener:
    """`async with opened(prepare) as engine`: an engine on this test's own file; again and again on the same."""

    @asynccontextmanager
    async def opener(
        prepare: Prepare, *, grace_s: float = 2.0, is_worker: bool = False, version: str = VERSION
    ) -> AsyncIterator[Engine]:
        engine = Engine(engine_of(tmp_path), is_worker=is_worker, version=version)
        for name, body in prepare(engine).items():
            engine.register(name, body)
        await engine.launch()
        try:
            yield engine
        finally:
            await engine.close(grace_s)

    return opener
