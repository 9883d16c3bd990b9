"""Background work at one endpoint: no more at once than it bears, with patience, and never ahead of people."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from cortex.base.errors import ProviderError
from cortex.base.messages import Usage, assistant, user
from cortex.base.model import ModelEntry
from cortex.base.turn import Reply
from cortex.ports.loop import Delta, Request, StreamEnd
from cortex.services.models.asking import Link, ask
from cortex.services.models.crowd import Crowd
from tests.patience import PATIENCE_S

HELLO = Request(system="", messages=(user("hello"),))
FAR, NEAR = "https://api.example.com/v1", "http://192.168.1.7:8080/v1"


@dataclass
class Endpoint:
    """Bears so many requests at once, says 429 to the others, and answers when the loop has gone round."""

    bears: int
    now: int = 0
    most: int = 0
    refused: int = 0

    async def stream(self, request: Request) -> AsyncIterator[Delta | StreamEnd]:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            if self.now > self.bears:
                self.refused += 1
                raise ProviderError("m: too many.", kind="rate_limit", is_retryable=True)
            for _ in range(5):
                await asyncio.sleep(0)
            yield StreamEnd(message=assistant("yes"), usage=Usage(input_tokens=1), finish="stop")
        finally:
            self.now -= 1

    async def close(self) -> None:
        """Nothing is open."""


async def _asked(endpoint: Endpoint, address: str, crowd: Crowd, count: int, *, is_background: bool) -> list[Reply]:
    link = Link(entry=ModelEntry(name="m", provider="openai", base_url=address), provider=endpoint)

    async def heard(*_: object) -> None:
        """Nobody looks."""

    async def one() -> Reply:
        return await ask(
            [link],
            HELLO,
            on_delta=heard,
            on_notice=heard,
            crowd=crowd,
            is_background=is_background,
            sleep=lambda _: asyncio.sleep(0),
            jitter=lambda: 0.0,
        )

    async with asyncio.timeout(PATIENCE_S):
        return list(await asyncio.gather(*(one() for _ in range(count))))


async def test_many_jobs_at_once_get_their_answers_from_an_endpoint_that_bears_two() -> None:
    endpoint, crowd = Endpoint(bears=2), Crowd(local_most=2)
    replies = await _asked(endpoint, FAR, crowd, 16, is_background=True)
    assert [reply.failure for reply in replies] == [""] * 16
    assert endpoint.refused > 0
    endpoint.most = 0
    await _asked(endpoint, FAR, crowd, 16, is_background=True)
    assert endpoint.most < 8, "what it said of load is remembered"


async def test_a_server_in_the_house_is_sent_no_more_than_its_slots() -> None:
    endpoint = Endpoint(bears=2)
    replies = await _asked(endpoint, NEAR, Crowd(local_most=2), 12, is_background=True)
    assert [reply.failure for reply in replies] == [""] * 12
    assert (endpoint.most, endpoint.refused) == (2, 0)


async def test_people_do_not_stand_behind_jobs() -> None:
    endpoint = Endpoint(bears=3)
    crowd = Crowd(local_most=1)
    jobs, person = await asyncio.gather(
        _asked(endpoint, NEAR, crowd, 6, is_background=True), _asked(endpoint, NEAR, crowd, 2, is_background=False)
    )
    assert [reply.failure for reply in (*jobs, *person)] == [""] * 8
    assert endpoint.most == 3


@pytest.mark.parametrize(
    ("address", "near"),
    [
        (NEAR, True),
        ("http://127.0.0.1:11434/v1", True),
        ("http://ollama:11434", True),
        ("http://box.lan/v1", True),
        ("http://[::1]:8080", True),
        (FAR, False),
        ("", False),
        ("http://8.8.8.8/v1", False),
    ],
)
def test_whose_slots_count(address: str, near: bool) -> None:
    place = Crowd(3)._of(ModelEntry(name="m", provider="openai", model="m", base_url=address))
    assert (place.cap == 3) is near


async def test_background_work_gets_no_more_than_the_slots_that_a_server_says() -> None:
    crowd, endpoint = Crowd(4), Endpoint(bears=9)
    assert await _most(endpoint, crowd, slots=1) == 1
    assert await _most(endpoint, crowd, slots=3) == 3, "it was started anew with more"
    assert await _most(endpoint, crowd, slots=0) == 4, "as many as are set where it does not say it"
    assert await _most(endpoint, crowd, slots=50) == 4


async def _most(endpoint: Endpoint, crowd: Crowd, slots: int) -> int:
    endpoint.most = 0
    link = Link(entry=ModelEntry(name="m", provider="openai", base_url=NEAR, slots=slots), provider=endpoint)

    async def heard(*_: object) -> None:
        """Nobody looks."""

    async with asyncio.TaskGroup() as group:
        for _ in range(8):
            group.create_task(ask([link], HELLO, on_delta=heard, on_notice=heard, crowd=crowd, is_background=True))
    return endpoint.most


async def test_a_chat_that_waits_for_a_slot_says_so_and_is_not_held_back() -> None:
    crowd, endpoint = Crowd(4), Endpoint(bears=9)
    link = Link(entry=ModelEntry(name="m", provider="openai", base_url=NEAR, slots=1), provider=endpoint)
    told: list[str] = []

    async def heard(*said: object) -> None:
        told.extend(str(each) for each in said)

    first = await ask([link], HELLO, on_delta=heard, on_notice=heard, crowd=crowd)
    assert (first.failure, told) == ("", [])
    async with crowd.request(link.entry, is_background=True):
        reply = await ask([link], HELLO, on_delta=heard, on_notice=heard, crowd=crowd)
    assert reply.message is not None
    assert ["m is busy" in each for each in told] == [True]
