import asyncio
from collections.abc import Sequence

from cortex.base.clock import now
from cortex.base.events import Event, OpenPart
from cortex.engine.hub import KEPT_NUMBERS, LocalHub
from tests.patience import PATIENCE_S


def part(text: str, *, attempt: int = 1, name: str = "1.text", turn: str = "turn:1") -> OpenPart:
    return OpenPart(conversation_id="c", turn_id=turn, part=name, kind="text", attempt=attempt, text=text)


def row(seq: int) -> Event:
    return Event(conversation_id="c", seq=seq, kind="notice", payload={"text": str(seq)}, turn_id=None, at=now())


async def test_every_browser_of_a_conversation_wakes() -> None:
    hub = LocalHub()
    watchers = [asyncio.create_task(hub.changed("c", 0, PATIENCE_S)) for _ in range(50)]
    await asyncio.sleep(0)
    hub.announce("c")
    assert await asyncio.gather(*watchers) == [1] * 50
    assert hub.watchers("c") == 0


async def test_a_ring_before_the_wait_is_not_missed() -> None:
    hub = LocalHub()
    hub.announce("c")
    assert await hub.changed("c", 0, PATIENCE_S) == 1


async def test_another_conversations_bell_wakes_nobody() -> None:
    hub = LocalHub()
    hub.announce("other")
    assert await hub.changed("c", 0, 0.01) == 0
    assert hub.watchers("c") == 0


async def test_a_cancelled_watcher_leaves_nothing_behind() -> None:
    hub = LocalHub()
    watcher = asyncio.create_task(hub.changed("c", 0, PATIENCE_S))
    await asyncio.sleep(0)
    assert hub.watchers("c") == 1
    watcher.cancel()
    await asyncio.gather(watcher, return_exceptions=True)
    assert watcher.cancelled()
    assert hub.watchers("c") == 0


async def test_an_open_part_is_seen_whole_and_gone_when_closed() -> None:
    hub = LocalHub()
    hub.publish(part("he"))
    hub.publish(part("hello"))
    assert hub.open_parts("c") == (part("hello"),)
    hub.end_part("c", "1.text")
    hub.end_part("c", "1.text")
    assert hub.open_parts("c") == ()
    assert await hub.changed("c", -1, 0) == 3


async def test_a_late_lower_attempt_replaces_nothing() -> None:
    hub = LocalHub()
    hub.publish(part("second", attempt=2))
    hub.publish(part("first try, late", attempt=1))
    assert hub.open_parts("c") == (part("second", attempt=2),)


async def test_a_stopped_turn_takes_its_parts_along() -> None:
    hub = LocalHub()
    hub.publish(part("a", name="1.text"))
    hub.publish(part("b", name="1.thinking"))
    hub.publish(part("c", name="2.text", turn="turn:2"))
    hub.forget("c", "turn:1")
    assert [item.part for item in hub.open_parts("c")] == ["2.text"]


async def test_told_rows_are_known_from_where_none_is_missing() -> None:
    hub = LocalHub()

    def known(after: int) -> Sequence[int] | None:
        rows = hub.since("c", after)
        return None if rows is None else [row.seq for row in rows]

    hub.announce("c", [row(1)])
    assert known(0) is None, "nobody watched"
    with hub.watching("c"):
        hub.announce("c", [row(2), row(3)])
        assert (known(0), known(1), known(2), known(3)) == (None, [2, 3], [3], [])
        hub.announce("c", [row(5)])
        assert (known(3), known(4)) == (None, [5])
        hub.announce("c")  # of rows that another process wrote
        assert known(5) is None
        hub.announce("c", [row(7)])
        assert (known(5), known(6)) == (None, [7])
    assert known(6) is None


async def test_of_many_conversations_the_newest_are_told_apart_and_no_change_is_missed() -> None:
    hub = LocalHub()
    hub.announce("a")
    seen = await hub.changed("a", -1, 0)
    hub.announce("a")
    for number in range(2 * KEPT_NUMBERS):
        hub.announce(f"b{number}")
    assert await hub.changed("a", seen, 0) > seen, "it changed, though that is forgotten"
    assert len(hub._newest) == KEPT_NUMBERS
