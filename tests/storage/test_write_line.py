"""The line in front of the writer: who gives up in the moment in which a place becomes free takes it from nobody."""

import asyncio

import pytest

from cortex.storage.write_line import WriteLine, people_first
from tests.patience import PATIENCE_S


async def holding(line: WriteLine, may_go: asyncio.Event, done: list[str], name: str) -> None:
    async with line.place():
        await may_go.wait()
        done.append(name)


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize("is_given_first", [False, True], ids=["cancelled, then given on", "given on, then cancelled"])
async def test_who_gives_up_as_a_place_becomes_free_leaves_it_to_the_next(is_given_first: bool) -> None:
    line, first, rest, done = WriteLine(1), asyncio.Event(), asyncio.Event(), list[str]()
    async with asyncio.TaskGroup() as group:
        group.create_task(holding(line, first, done, "first"))
        await settled()
        given_up = group.create_task(holding(line, rest, done, "given up"))
        group.create_task(holding(line, rest, done, "next"))
        await settled()
        first.set()
        if is_given_first:
            await asyncio.sleep(0)  # the first one goes; the place is the second's, whose task did not run yet
        given_up.cancel()
        rest.set()
    assert done == ["first", "next"]
    assert line.waiting == (0, 0)
    async with asyncio.timeout(PATIENCE_S), line.place():  # the place is free again, and there is one
        assert line._free == 0


async def test_people_go_first_and_one_of_the_others_after_eight_of_them() -> None:
    line, first, done = WriteLine(1), asyncio.Event(), list[str]()
    rest = asyncio.Event()
    rest.set()
    async with asyncio.TaskGroup() as group:
        group.create_task(holding(line, first, done, "first"))
        await settled()
        for number in range(2):
            group.create_task(holding(line, rest, done, f"turn {number}"))
        await settled()
        with people_first():
            for _ in range(10):
                group.create_task(holding(line, rest, done, "person"))
        await settled()
        first.set()
    assert done == ["first", *["person"] * 8, "turn 0", "person", "person", "turn 1"]
