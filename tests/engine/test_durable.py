import asyncio
from typing import Any

import pytest

from cortex.base.errors import ProviderError
from cortex.engine.dbos import Body, Engine
from cortex.engine.durable import durable
from tests.engine.opening import Opener, true, until


class Port:
    """Counts its calls."""

    label = "kept"

    def __init__(self) -> None:
        self.calls = 0

    async def ask(self, text: str, *, loud: bool = False) -> str:
        self.calls += 1
        return text.upper() if loud else text

    async def fail(self) -> None:
        self.calls += 1
        raise ProviderError("busy", kind="rate_limit", is_retryable=True, retry_after_s=2.0)

    def plain(self) -> int:
        return 7


async def test_outside_a_run_calls_go_straight_through(opened: Opener) -> None:
    async with opened(lambda engine: {}) as engine:
        port = durable(Port(), engine, ("ask",))
        assert await port.ask("hey", loud=True) == "HEY"
        assert port.plain() == 7
        assert port.label == "kept"


async def test_only_async_methods_become_durable(opened: Opener) -> None:
    async with opened(lambda engine: {}) as engine:
        with pytest.raises(TypeError, match=r"Port\.plain"):
            durable(Port(), engine, ("plain",))
        with pytest.raises(TypeError, match=r"Port\.missing"):
            durable(Port(), engine, ("missing",))


async def test_a_steps_error_is_the_same_after_a_replay(opened: Opener) -> None:
    inner = Port()
    seen: list[Any] = []

    def prepare(engine: Engine) -> dict[str, Body]:
        port = durable(inner, engine, ("fail",))

        async def body(run_id: str, argument: dict[str, Any]) -> None:
            try:
                await port.fail()
            except ProviderError as error:
                seen.append((error.message, error.kind, error.is_retryable, error.retry_after_s))
            await engine.wait("go on", 60)

        return {"turn": body}

    async with opened(prepare) as engine:
        await engine.start("turn:1", "turn", {})
        await until(lambda: true(len(seen) == 1))
        await asyncio.sleep(0.1)
    async with opened(prepare):
        await until(lambda: true(len(seen) == 2))
    assert inner.calls == 1
    assert seen[0] == seen[1] == ("busy", "rate_limit", True, 2.0)


async def test_a_second_call_in_a_parallel_branch_is_refused(opened: Opener) -> None:
    seen: list[str] = []

    def prepare(engine: Engine) -> dict[str, Body]:
        port = durable(Port(), engine, ("ask",))

        async def branch(text: str) -> None:
            await port.ask(text)
            await port.ask(text)

        async def body(run_id: str, argument: dict[str, Any]) -> None:
            try:
                await asyncio.gather(branch("a"), branch("b"))
            except RuntimeError as error:
                seen.append(str(error))

        return {"turn": body}

    async with opened(prepare) as engine:
        await engine.start("turn:1", "turn", {})
        await until(lambda: true(bool(seen)))
        await asyncio.sleep(0.2)
    assert "Port.ask" in seen[0]
