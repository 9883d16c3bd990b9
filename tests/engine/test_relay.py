"""Two and three processes of one house, joined by a line in memory: what one writes, the browsers of the others see."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack

import pytest
from msgspec.structs import replace

from cortex.base.background import background_tasks
from cortex.base.events import OpenPart
from cortex.engine import relay as relays
from cortex.engine.relay import RelayHub
from tests.patience import PATIENCE_S

LONG = 'Grüße 🌷 "quoted" \\ \x07 and\nmore. ' * 400


class Line:
    """Everybody hears everything, a moment later; `lose` drops some of it."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.ears: list[Callable[[str], None]] = []
        self.lose: Callable[[str], bool] = lambda _: False

    def broadcast(self, text: str) -> None:
        self.told.append(text)
        if not self.lose(text):
            for ear in self.ears:
                asyncio.get_running_loop().call_soon(ear, text)


class Ticks:
    """Seconds that a test moves on."""

    def __init__(self) -> None:
        self.at_s = 1000.0

    def __call__(self) -> float:
        return self.at_s


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


@pytest.fixture
def line() -> Line:
    return Line()


@pytest.fixture
async def house(
    line: Line, ticks: Ticks, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[RelayHub, RelayHub, RelayHub]]:
    """A worker and two web processes."""
    for name in ("FLUSH_S", "RENEW_S", "LOOK_S"):
        monkeypatch.setattr(relays, name, 0.01)
    made = RelayHub(ticks=ticks), RelayHub(ticks=ticks), RelayHub(ticks=ticks)
    async with AsyncExitStack() as running:
        for one in made:
            one.line = line
            line.ears.append(one.heard)
            await running.enter_async_context(background_tasks(one.flush, one.renew, one.republish_lost))
        yield made


def part(text: str, *, attempt: int = 1, name: str = "1-0") -> OpenPart:
    return OpenPart(conversation_id="c", turn_id="turn:1", part=name, kind="text", attempt=attempt, text=text)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - the relay tells nobody that it heard
            await asyncio.sleep(0.002)


async def a_flush(worker: RelayHub, web: RelayHub, line: Line) -> None:
    """Until what the worker wrote so far, and somebody watches, is told and asked about: this is told after it."""
    await web.changed("other", -1, 0)
    await until(lambda: worker.is_watched_elsewhere("other"))
    worker.publish(replace(part("and another"), conversation_id="other"))
    await until(lambda: any("and another" in text for text in line.told))


async def test_a_bell_is_heard_in_every_process(house: tuple[RelayHub, RelayHub, RelayHub]) -> None:
    worker, *webs = house
    await asyncio.gather(*(web.changed("c", -1, 0) for web in webs))
    counts = [await web.changed("c", -1, 0) for web in webs]
    watchers = [
        asyncio.create_task(web.changed("c", count, PATIENCE_S)) for web, count in zip(webs, counts, strict=True)
    ]
    await asyncio.sleep(0)
    worker.announce("c")
    assert await asyncio.gather(*watchers) == [count + 1 for count in counts]


async def test_a_worker_knows_whether_somebody_watches_elsewhere(
    house: tuple[RelayHub, RelayHub, RelayHub], ticks: Ticks
) -> None:
    worker, web, _ = house
    assert not worker.is_watched_elsewhere("c")
    await web.changed("c", -1, 0)
    await until(lambda: worker.is_watched_elsewhere("c"))
    assert not worker.is_watched_elsewhere("d")
    ticks.at_s += relays.UNWATCHED_S + relays.LEASE_S + 1
    await until(lambda: not worker.is_watched_elsewhere("c"))


async def test_a_part_is_told_only_while_somebody_elsewhere_watches(
    house: tuple[RelayHub, RelayHub, RelayHub], line: Line
) -> None:
    worker, web, _ = house
    worker.publish(part("Hello"))
    await a_flush(worker, web, line)
    assert not any("Hello" in text for text in line.told)
    await web.changed("c", -1, PATIENCE_S)
    assert web.open_parts("c") == (part("Hello"),)
    worker.publish(part("Hello there"))
    await until(lambda: web.open_parts("c") == (part("Hello there"),))


async def test_a_long_part_arrives_whole_in_pieces_that_fit(
    house: tuple[RelayHub, RelayHub, RelayHub], line: Line
) -> None:
    worker, web, other = house
    worker.publish(part(LONG))
    seen: list[int] = []

    async def follow() -> None:
        bell = -1
        while True:
            bell = await web.changed("c", bell, PATIENCE_S)
            seen.extend(len(one.text) for one in web.open_parts("c"))

    async with background_tasks(follow):
        await until(lambda: web.open_parts("c") == (part(LONG),))
        worker.publish(part(LONG * 2))
        await until(lambda: web.open_parts("c") == (part(LONG * 2),))
        await other.changed("c", -1, PATIENCE_S)
    assert other.open_parts("c") == (part(LONG * 2),)
    assert set(seen) == {len(LONG), 2 * len(LONG)}, "a piece was shown as if it were whole"
    assert max(len(text.encode()) for text in line.told) < 8000


async def test_a_lost_piece_is_asked_for_again(house: tuple[RelayHub, RelayHub, RelayHub], line: Line) -> None:
    worker, web, _ = house
    worker.publish(part("one "))
    await web.changed("c", -1, PATIENCE_S)
    line.lose = lambda text: '"two ' in text
    worker.publish(part("one two "))
    await until(lambda: any('"two ' in text for text in line.told))
    line.lose = lambda _: False
    worker.publish(part("one two three"))
    await until(lambda: web.open_parts("c") == (part("one two three"),))


async def test_the_next_attempt_takes_the_place_of_the_one_before(
    house: tuple[RelayHub, RelayHub, RelayHub], line: Line
) -> None:
    worker, web, other_worker = house
    worker.publish(part("a long beginning"))
    await web.changed("c", -1, PATIENCE_S)
    other_worker.publish(part("again", attempt=2))
    await until(lambda: web.open_parts("c") == (part("again", attempt=2),))
    worker.publish(part("a long beginning, late"))
    await a_flush(worker, web, line)
    assert web.open_parts("c") == (part("again", attempt=2),)


async def test_a_part_that_ended_is_closed_everywhere(house: tuple[RelayHub, RelayHub, RelayHub]) -> None:
    worker, web, _ = house
    worker.publish(part("Hello"))
    await web.changed("c", -1, PATIENCE_S)
    worker.end_part("c", "1-0")
    await until(lambda: web.open_parts("c") == ())
    assert worker.open_parts("c") == ()


async def test_what_a_dead_worker_had_begun_is_forgotten(
    house: tuple[RelayHub, RelayHub, RelayHub], line: Line, ticks: Ticks
) -> None:
    worker, web, _ = house
    worker.publish(part("Hello"))
    await web.changed("c", -1, PATIENCE_S)
    await until(lambda: web.open_parts("c") != ())
    line.ears.remove(worker.heard)
    line.lose = lambda text: '"part"' in text
    await asyncio.sleep(0)  # what is on its way arrives before the time goes by
    ticks.at_s += relays.LEASE_S + 1
    await web.changed("c", 0, 0)
    await until(lambda: web.open_parts("c") == ())


async def test_nothing_is_told_any_more_when_the_last_browser_has_gone(
    house: tuple[RelayHub, RelayHub, RelayHub], line: Line, ticks: Ticks
) -> None:
    worker, web, _ = house
    await web.changed("c", -1, 0)
    await until(lambda: worker.is_watched_elsewhere("c"))
    ticks.at_s += relays.UNWATCHED_S + 1
    await until(lambda: not web._watched)  # its last word of it has been heard by now
    ticks.at_s += relays.LEASE_S + 1
    await until(lambda: not worker.is_watched_elsewhere("c"))
    line.told.clear()
    worker.publish(part("Hello"))
    await a_flush(worker, web, line)
    assert not any("Hello" in text for text in line.told)


async def test_a_lost_bell_is_made_up_for(house: tuple[RelayHub, RelayHub, RelayHub], line: Line) -> None:
    worker, web, _ = house
    seqs, looks = {"c": 1}, 0

    async def newest(ids: Sequence[str]) -> dict[str, int]:
        nonlocal looks
        looks += "c" in ids
        return {one: seqs[one] for one in ids}

    web.newest = newest
    line.lose = lambda text: '"ring"' in text
    await web.changed("c", -1, 0)
    await until(lambda: looks > 1)  # the first look has been taken in
    bell = await web.changed("c", -1, 0)
    seqs["c"] = 2
    worker.announce("c")
    assert await web.changed("c", bell, PATIENCE_S) == bell + 1


async def test_other_news_reach_the_others_and_not_oneself(house: tuple[RelayHub, RelayHub, RelayHub]) -> None:
    heard: list[tuple[str, str]] = []
    for name, one in zip(("worker", "web", "other"), house, strict=True):
        one.on("access.ended", lambda value, name=name: heard.append((name, value)))  # type: ignore[misc]
    house[1].broadcast("access.ended", "ann")
    await until(lambda: len(heard) == 2)
    assert heard == [("worker", "ann"), ("other", "ann")]


async def test_a_stranger_on_the_line_does_no_harm(house: tuple[RelayHub, RelayHub, RelayHub], line: Line) -> None:
    for stranger in ("hello", "[]", "7", '{"f": "x"}'):
        line.broadcast(stranger)
    await house[1].changed("c", -1, 0)
    house[0].publish(part("Hello"))
    await until(lambda: house[1].open_parts("c") == (part("Hello"),))
