import asyncio
from itertools import cycle, islice

import pytest

from cortex.engine.queues import QueueSlots
from tests.patience import PATIENCE_S


@pytest.mark.parametrize(
    ("queue", "users", "at_once"),
    [
        ("chat", ["ann"], 3),
        ("chat", ["ann", "bob"], 6),
        ("agents", ["ann", "bob"], 4),
        ("", [""], 9),
    ],
)
async def test_no_more_than_the_queues_number_run_at_once(queue: str, users: list[str], at_once: int) -> None:
    slots, running, most = QueueSlots(), 0, 0

    async def run(user: str) -> None:
        nonlocal running, most
        async with slots.slot(queue, user):
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)  # all who may begin do, before the first goes on
            running -= 1

    await asyncio.gather(*(run(user) for user in islice(cycle(users), 9)))
    assert most == at_once


async def test_one_user_does_not_hold_up_another() -> None:
    slots = QueueSlots()
    ann = [slots.slot("chat", "ann") for _ in range(3)]
    async with asyncio.timeout(PATIENCE_S), ann[0], ann[1], ann[2], slots.slot("chat", "bob"):
        pass
