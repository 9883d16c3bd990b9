import asyncio
from typing import Any

from cortex.base.errors import ProviderError
from cortex.engine.dbos import Body, Engine
from cortex.ports.steps import step
from tests.engine.opening import Opener, is_state, true, until


class Port:
    """Counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    @step("Port.ask")
    async def ask(self, text: str, *, loud: bool = False) -> str:
        self.calls += 1
        return text.upper() if loud else text

    @step("Port.fail")
    async def fail(self) -> None:
        self.calls += 1
        raise ProviderError("busy", kind="rate_limit", is_retryable=True, retry_after_s=2.0)


async def test_outside_a_run_calls_go_straight_through(opened: Opener) -> None:
    async with opened(lambda engine: {}):
        port = Port()
        assert await port.ask("hey", loud=True) == "HEY"
        assert port.calls == 1


async def test_what_a_step_calls_is_part_of_it(opened: Opener) -> None:
    port, seen = Port(), list[str]()

    @step("outer")
    async def outer() -> str:
        return await port.ask("a") + await port.ask("b")

    def prepare(engine: Engine) -> dict[str, Body]:
        async def body(run_id: str, argument: dict[str, Any]) -> None:
            seen.append(await outer())
            await engine.wait_for_signal("go on", 60)

        return {"turn": body}

    async with opened(prepare) as engine:
        await engine.start("turn:1", "turn", {})
        await until(lambda: true(len(seen) == 1))
    async with opened(prepare):
        await until(lambda: true(len(seen) == 2))
    assert (seen, port.calls) == (["ab", "ab"], 2)


async def test_a_steps_error_is_the_same_after_a_replay(opened: Opener) -> None:
    inner = Port()
    seen: list[Any] = []

    def prepare(engine: Engine) -> dict[str, Body]:
        async def body(run_id: str, argument: dict[str, Any]) -> None:
            try:
                await inner.fail()
            except ProviderError as error:
                seen.append((error.message, error.kind, error.is_retryable, error.retry_after_s))
            await engine.wait_for_signal("go on", 60)

        return {"turn": body}

    async with opened(prepare) as engine:
        await engine.start("turn:1", "turn", {})
        await until(lambda: true(len(seen) == 1))
    async with opened(prepare):
        await until(lambda: true(len(seen) == 2))
    assert inner.calls == 1
    assert seen[0] == seen[1] == ("busy", "rate_limit", True, 2.0)


async def test_a_second_call_in_a_parallel_branch_is_refused(opened: Opener) -> None:
    seen: list[str] = []

    def prepare(engine: Engine) -> dict[str, Body]:
        port = Port()

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
        await until(lambda: is_state(engine, "turn:1", "done"))
    assert "Port.ask" in seen[0]
