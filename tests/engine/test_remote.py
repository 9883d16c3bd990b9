import asyncio
from typing import Any

import pytest

from cortex.base.errors import NotFound
from cortex.engine.durable import durable
from cortex.engine.remote import Remote


async def test_a_process_that_runs_nothing_starts_signals_and_stops_runs(opened, until, tmp_path) -> None:
    closed = asyncio.Event()

    class Model:
        async def hold(self) -> None:
            try:
                await asyncio.sleep(60)
            finally:
                closed.set()

    def prepare(engine):
        port = durable(Model(), engine, ("hold",))

        async def waiting(run_id: str, argument: dict[str, Any]) -> None:
            assert await engine.wait("answer", 60) == "allowed"

        async def holding(run_id: str, argument: dict[str, Any]) -> None:
            await port.hold()

        return {"waiting": waiting, "holding": holding}

    async with opened(prepare, is_worker=True):
        remote = await Remote.open(f"sqlite:///{tmp_path}/engine.db")
        try:
            await remote.start("turn:w", "waiting", {}, queue="chat", key="ann")
            await remote.start("turn:w", "waiting", {}, queue="chat", key="ann")
            await remote.start("turn:h", "holding", {}, queue="agents")
            await remote.signal("turn:w", "answer", "allowed")
            with pytest.raises(NotFound):
                await remote.signal("turn:none", "answer", "allowed")
            await until(lambda: is_state(remote, "turn:w", "done"))
            await until(lambda: is_state(remote, "turn:h", "running"))
            assert await remote.unfinished() == ["turn:h"]
            await remote.cancel("turn:h")
            await asyncio.wait_for(closed.wait(), 5)
            assert await remote.status("turn:h") == "cancelled"
            assert await remote.status("turn:none") == "unknown"
        finally:
            await remote.close()


async def is_state(remote: Remote, run_id: str, state: str) -> bool:
    return await remote.status(run_id) == state
