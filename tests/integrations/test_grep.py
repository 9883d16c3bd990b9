"""A pattern finds lines, and never hangs."""

import asyncio
from contextlib import suppress

import pytest

from cortex.base.errors import ToolFailed
from cortex.integrations.grep import compiled, found
from tests.patience import PATIENCE_S


async def test_lines_are_found_with_their_numbers() -> None:
    lines = await found(compiled("b.t", ignore_case=False), "bat\nno\nBut\nbit", 10)
    assert [(line.number, line.text) for line in lines] == [(1, "bat"), (4, "bit")]


async def test_case_may_be_ignored() -> None:
    assert len(await found(compiled("b.t", ignore_case=True), "bat\nno\nBut", 10)) == 2


@pytest.mark.parametrize("pattern", ["", "(", "a" * 501, "[z-a]", "(?P<x>a)(?P<x"], ids=range(5))
def test_a_pattern_that_is_none_is_explained(pattern: str) -> None:
    with pytest.raises(ToolFailed):
        compiled(pattern, ignore_case=False)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(a|a)*$", "^(([a-z])+.)+[A-Z]([a-z])+$", r"(.*?,){30}P"])
async def test_a_catastrophic_pattern_is_cut_off(pattern: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        with suppress(ToolFailed):
            await found(compiled(pattern, ignore_case=False), "a" * 5_000 + "!" + "a,1," * 500, 10)


async def test_others_work_while_a_pattern_searches() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    with pytest.raises(ToolFailed, match="too long"):
        await found(compiled("(a+)+$", ignore_case=False), "a" * 5_000 + "!", 10)
    ticking.cancel()
    assert ticks > 2
