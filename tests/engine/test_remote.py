import asyncio
from pathlib import Path
from typing import Any

import pytest

from cortex.base.errors import NotFound
from cortex.engine.dbos import Body, Engine
from cortex.engine.remote import Remote
from cortex.ports.steps import step
from tests.databases import engine_of
from tests.engine.opening import Opener, is_state, until
from tests.patience import PATIENCE_S


async def test_a_process_that_runs_nothing_starts_signals_and_stops_runs(opened: Opener, tmp_path: Path) -> None:
    held, closed = asyncio.Event(), asyncio.Event()

    class Model:
        @step("Model.hold")
        async def hold(self) -> None:
            held.set()
            try:
                await asyncio.Event().wait()
            finally:
                closed.set()

    def prepare(engine: Engine) -> dict[str, Body]:
        port = Model()

        async def waiting(run_id: str, argument: dict[str, Any]) -> None:
            assert await engine.wait_for_signal("answer", PATIENCE_S) == "allowed"

        async def holding(run_id: str, argument: dict[str, Any]) -> None:
            await port.hold()

        return {"waiting": waiting, "holding": holding}

    async with opened(prepare, is_worker=True):
        remote = await Remote.connect(engine_of(tmp_path))
        try:
            await remote.start("turn:w", "waiting", {}, queue="chat", key="ann")
            await remote.start("turn:w", "waiting", {}, queue="chat", key="ann")
            await remote.start("turn:h", "holding", {}, queue="agents")
            await remote.signal("turn:w", "answer", "allowed")
            with pytest.raises(NotFound):
                await remote.signal("turn:none", "answer", "allowed")
            await until(lambda: is_state(remote, "turn:w", "done"))
            await asyncio.wait_for(held.wait(), PATIENCE_S)
            assert await remote.status("turn:h") == "running"
            assert await remote.unfinished() == ["turn:h"]
            await remote.cancel("turn:h")
            await asyncio.wait_for(closed.wait(), PATIENCE_S)
            assert await remote.status("turn:h") == "cancelled"
            assert await remote.status("turn:none") == "unknown"
        finally:
            await remote.close()
