import asyncio

import pytest
from msgspec.structs import replace

from cortex.base.errors import Conflict, NotFound
from cortex.storage.db import Database
from cortex.storage.deliveries import AllDeliveriesRepository, ChannelLine, DeliveriesRepository, DeliveryRow
from cortex.storage.notices import AllNoticesRepository, NoticeFilter, NoticesRepository, Way
from tests.still_clock import StillClock
from tests.storage.made_time import HOUR, TOLD, second_process

PUSH = Way(channel="web_push", device_id="phone")
NTFY = Way(channel="ntfy")
MAIL = Way(channel="email")


async def sent(db: Database, notice_id: str, owner_id: str) -> dict[str, DeliveryRow]:
    found = await db.repository(DeliveriesRepository, owner_id).of_notices([notice_id])
    return {row.channel: row for row in found[notice_id]}


async def test_a_notice_is_told_once_with_its_deliveries(db: Database, ann: str) -> None:
    notices = db.repository(NoticesRepository, ann)
    values = replace(TOLD, actions=("ack", "snooze"), urgency="high", expires_at=db.clock() + HOUR, is_tainted=True)
    assert await notices.add("one", values, [PUSH, NTFY, NTFY, replace(MAIL, not_before=db.clock() + HOUR)]) is True
    assert await notices.add("one", TOLD, [PUSH]) is False
    notice = await notices.get("one")
    assert {name: getattr(notice, name) for name in type(values).__struct_fields__} == {
        name: getattr(values, name) for name in type(values).__struct_fields__
    }
    assert {name: (row.state, row.next_at) for name, row in (await sent(db, "one", ann)).items()} == {
        "web_push": ("pending", db.clock()),
        "ntfy": ("pending", db.clock()),
        "email": ("pending", db.clock() + HOUR),
    }


async def test_what_is_told_in_a_transaction_that_fails_is_not_told(db: Database, ann: str) -> None:
    async def tell_and_fail() -> None:
        async with db.transaction(ann) as repository:
            await repository(NoticesRepository).add("one", TOLD, [NTFY])
            await repository(NoticesRepository).get("nowhere")

    with pytest.raises(NotFound):
        await tell_and_fail()
    assert await db.repository(NoticesRepository, ann).list() == []
    assert await db.repository(AllDeliveriesRepository).take("ntfy", 9, 60) == []


async def test_a_later_notice_of_the_tag_takes_the_place_of_the_earlier(db: Database, ann: str, ben: str) -> None:
    notices, tagged = db.repository(NoticesRepository, ann), replace(TOLD, tag="job:news")
    await db.repository(NoticesRepository, ben).add("theirs", tagged, [NTFY])
    await notices.add("one", tagged, [NTFY])
    await notices.add("other", TOLD)
    await notices.add("two", tagged, [NTFY])
    assert {row.id for row in await notices.list()} == {"two", "other"}
    assert await notices.unread() == 2
    assert (await sent(db, "one", ann))["ntfy"].state == "dropped"
    assert (await sent(db, "two", ann))["ntfy"].state == "pending"
    assert (await sent(db, "theirs", ben))["ntfy"].state == "pending"


async def test_notices_are_filtered_and_paged_without_a_gap(db: Database, ann: str, clock: StillClock) -> None:
    notices = db.repository(NoticesRepository, ann)
    for number in range(6):
        await notices.add(f"n{number}", replace(TOLD, kind="system" if number == 2 else "job"))
        clock.forward(minutes=number % 2)  # two at a time have the same moment
    first = await notices.list(limit=3)
    await notices.add("newer", TOLD)
    rest = await notices.list(before_id=first[-1].id, limit=9)
    assert [row.id for row in (*first, *rest)] == ["n5", "n4", "n3", "n2", "n1", "n0"]
    assert [row.id for row in await notices.list(NoticeFilter(kinds=["system"]))] == ["n2"]
    assert [row.id for row in await notices.list(NoticeFilter(since=first[0].created_at))] == ["newer", "n5", "n4"]
    await notices.read(["n4"])
    unread = await notices.list(NoticeFilter(is_unread=True, since=first[0].created_at))
    assert [row.id for row in unread] == ["newer", "n5"]


async def test_unread_notices_are_counted(db: Database, ann: str, clock: StillClock) -> None:
    notices = db.repository(NoticesRepository, ann)
    await notices.add("ask", replace(TOLD, kind="approval", expires_at=clock() + HOUR))
    for id in ("a", "b", "c"):
        await notices.add(id, TOLD)
    assert await notices.unread() == 4
    assert await notices.read(["a", "nobody"]) == 1
    assert await notices.read(["a"]) == 0
    upto = clock()
    clock.forward(minutes=61)
    await notices.add("d", TOLD)
    assert await notices.unread() == 3
    assert await notices.read_all(upto) == 3
    assert [row.id for row in await notices.list(NoticeFilter(is_unread=True))] == ["d"]


async def test_an_answer_settles_all_that_was_told_of_its_subject(db: Database, ann: str) -> None:
    notices = db.repository(NoticesRepository, ann)
    await notices.add("one", replace(TOLD, subject_id="approval:1"), [NTFY])
    await notices.add("two", replace(TOLD, subject_id="approval:1"), [MAIL])
    await notices.add("other", TOLD, [NTFY])
    await db.repository(AllDeliveriesRepository).take("email", 1, 60)
    answered = await notices.acknowledge("one")
    assert answered.acknowledged_at == answered.read_at == db.clock()
    assert await notices.acknowledge("one") == answered
    assert await notices.settle("approval:1") == ["two"]
    assert await notices.settle("approval:1") == []
    states = {id: [row.state for row in (await sent(db, id, ann)).values()] for id in ("one", "two", "other")}
    assert states == {"one": ["dropped"], "two": ["attempting"], "other": ["pending"]}


async def test_two_takers_never_take_the_same_delivery(db: Database, ann: str) -> None:
    for number in range(40):
        await db.repository(NoticesRepository, ann).add(f"n{number}", TOLD, [NTFY])
    async with second_process(db) as other:
        takers = [one.repository(AllDeliveriesRepository).take("ntfy", 7, 60) for one in (db, other) * 4]
        taken = [row.id for rows in await asyncio.gather(*takers) for row in rows]
        rest = [row.id for row in await other.repository(AllDeliveriesRepository).take("ntfy", 40, 60)]
    assert len(taken) == len(set(taken))
    assert len({*taken, *rest}) == len(taken) + len(rest) == 40


async def test_a_channel_takes_its_own_deliveries_when_they_are_due(db: Database, ann: str, clock: StillClock) -> None:
    outbox = db.repository(AllDeliveriesRepository)
    assert await outbox.lines() == []
    await db.repository(NoticesRepository, ann).add("one", TOLD, [NTFY, replace(MAIL, not_before=clock() + HOUR)])
    assert await outbox.take("email", 9, 60) == []
    (taken,) = await outbox.take("ntfy", 9, 60)
    assert (taken.state, taken.attempt, taken.owner_id, taken.notice_id) == ("attempting", 1, ann, "one")
    assert await db.repository(DeliveriesRepository, ann).get(taken.id) == taken
    assert await db.repository(DeliveriesRepository, ann).end(taken.id, 1, "delivered") is True
    assert await outbox.lines() == [ChannelLine(channel="email", next_at=clock() + HOUR, due=0)]
    clock.forward(minutes=60)
    assert [row.channel for row in await outbox.take("email", 9, 60)] == ["email"]


async def test_a_dead_takers_delivery_comes_back_and_he_has_no_say_in_it(
    db: Database, ann: str, clock: StillClock
) -> None:
    outbox, deliveries = db.repository(AllDeliveriesRepository), db.repository(DeliveriesRepository, ann)
    await db.repository(NoticesRepository, ann).add("one", TOLD, [NTFY])
    (first,) = await outbox.take("ntfy", 9, 60)
    assert await outbox.take("ntfy", 9, 60) == []
    clock.forward(seconds=60)
    (second,) = await outbox.take("ntfy", 9, 60)
    assert (second.id, second.attempt) == (first.id, 2)
    assert await deliveries.end(first.id, first.attempt, "failed", "too slow") is False
    assert await deliveries.again(second.id, second.attempt, clock() + HOUR, "busy") is True
    waiting = await deliveries.get(second.id)
    assert (waiting.state, waiting.next_at, waiting.error) == ("pending", clock() + HOUR, "busy")


async def test_a_failed_delivery_is_sent_again_when_asked(db: Database, ann: str) -> None:
    outbox, deliveries = db.repository(AllDeliveriesRepository), db.repository(DeliveriesRepository, ann)
    await db.repository(NoticesRepository, ann).add("one", TOLD, [NTFY])
    (taken,) = await outbox.take("ntfy", 9, 60)
    with pytest.raises(Conflict, match="attempting"):
        await deliveries.retry(taken.id)
    await deliveries.end(taken.id, 1, "failed", "refused")
    assert [row.error for row in await deliveries.list(states=["failed"])] == ["refused"]
    assert (await deliveries.retry(taken.id)).state == "pending"
    assert [row.attempt for row in await outbox.take("ntfy", 9, 60)] == [1]


async def test_a_channel_leaves_out_whose_turn_it_is_not(db: Database, ann: str, ben: str) -> None:
    outbox = db.repository(AllDeliveriesRepository)
    for owner in (ann, ben):
        await db.repository(NoticesRepository, owner).add(f"of {owner}", TOLD, [NTFY])
    assert [row.owner_id for row in await outbox.take("ntfy", 9, 60, besides=[ann])] == [ben]
    assert [row.owner_id for row in await outbox.take("ntfy", 9, 60)] == [ann]


async def test_what_is_due_longest_is_taken_first(db: Database, ann: str, clock: StillClock) -> None:
    outbox = db.repository(AllDeliveriesRepository)
    for number in range(3):
        await db.repository(NoticesRepository, ann).add(f"n{number}", TOLD, [NTFY])
        clock.forward(minutes=1)
    assert [row.notice_id for row in await outbox.take("ntfy", 2, 60)] == ["n0", "n1"]
    assert [row.notice_id for row in await outbox.take("ntfy", 2, 60)] == ["n2"]


async def test_of_two_ways_that_fail_at_once_one_sends_by_another(db: Database, ann: str) -> None:
    notices, outbox = db.repository(NoticesRepository, ann), db.repository(AllDeliveriesRepository)
    for number in range(5):
        name = f"n{number}"
        await notices.add(name, TOLD, [NTFY, PUSH])
        assert await notices.send_instead(name, [MAIL]) is False  # it may still arrive
        taken = [*await outbox.take("ntfy", 1, 60), *await outbox.take("web_push", 1, 60)]
        assert await notices.send_instead(name, [MAIL]) is False  # it is being sent

        async def fails(db: Database, row: DeliveryRow) -> bool:
            async with db.transaction(ann) as repository:
                await repository(DeliveriesRepository).end(row.id, row.attempt, "failed", "refused")
                return await repository(NoticesRepository).send_instead(row.notice_id, [MAIL])

        async with second_process(db) as other:
            sent_by = await asyncio.gather(*(fails(one, row) for one, row in zip((db, other), taken, strict=True)))
        assert sorted(sent_by) == [False, True]
        states = {channel: row.state for channel, row in (await sent(db, name, ann)).items()}
        assert states == {"ntfy": "failed", "web_push": "failed", "email": "pending"}


async def test_an_answer_that_is_taken_back_leaves_unread_what_it_had_read(
    db: Database, ann: str, clock: StillClock
) -> None:
    notices, told = db.repository(NoticesRepository, ann), replace(TOLD, kind="reminder", subject_id="r1")
    await notices.add("new", told)
    await notices.add("muted", told, is_read=True)
    clock.forward(seconds=1)
    await notices.settle("r1")
    assert await notices.unread() == 0
    await notices.unsettle("r1")
    assert [row.id for row in await notices.list(NoticeFilter(is_unread=True))] == ["new"]
    assert [(await notices.get(id)).acknowledged_at for id in ("new", "muted")] == [None, None]


async def test_what_a_page_shows_and_what_is_muted_is_read(db: Database, ann: str, ben: str) -> None:
    notices = db.repository(NoticesRepository, ann)
    await notices.add("job", replace(TOLD, kind="job", path="/jobs/1"))
    await notices.add("other", replace(TOLD, kind="job", path="/jobs/2"))
    await notices.add("agent", replace(TOLD, kind="agent", path="/c/1"))
    await notices.add("quiet", TOLD, is_read=True)
    await db.repository(NoticesRepository, ben).add("theirs", replace(TOLD, kind="job", path="/jobs/1"))
    assert await notices.unread() == 3
    await notices.add("due", replace(TOLD, kind="reminder", path="/jobs/1"))
    assert await notices.seen("/jobs/1", "due") == 1
    assert await notices.read(["due"]) == 1
    assert await notices.read_kinds(["agent"]) == 1
    assert await notices.read_kinds([]) == 0
    assert [row.id for row in await notices.list(NoticeFilter(is_unread=True))] == ["other"]
    assert await db.repository(NoticesRepository, ben).unread() == 1


async def test_old_notices_are_forgotten_but_those_on_their_way(db: Database, ann: str, clock: StillClock) -> None:
    notices = db.repository(NoticesRepository, ann)
    for number in range(5):
        await notices.add(f"n{number}", TOLD, [NTFY] if number in (0, 3) else [])
        clock.forward(days=1)
    (old, *_) = await db.repository(AllDeliveriesRepository).take("ntfy", 1, 60)
    await db.repository(DeliveriesRepository, ann).end(old.id, 1, "delivered")
    assert await db.repository(AllNoticesRepository).prune() == 0
    assert await db.repository(AllNoticesRepository).prune(keep=3) == 2
    clock.forward(days=100)
    assert await db.repository(AllNoticesRepository).prune() == 2
    assert [row.id for row in await notices.list()] == ["n3"]
    assert (await sent(db, "n0", ann)) == {}


async def test_another_users_notices_and_deliveries_are_out_of_reach(db: Database, ann: str, ben: str) -> None:
    await db.repository(NoticesRepository, ann).add("one", TOLD, [NTFY])
    before = await db.repository(NoticesRepository, ann).get("one")
    delivery = (await sent(db, "one", ann))["ntfy"]
    theirs, out = db.repository(NoticesRepository, ben), db.repository(DeliveriesRepository, ben)
    assert await theirs.add("one", TOLD, [MAIL]) is False
    assert (await theirs.list(), await theirs.unread()) == ([], 0)
    assert (await theirs.read(["one"]), await theirs.read_all(db.clock())) == (0, 0)
    assert await theirs.settle(TOLD.subject_id) == []
    assert await out.list() == []
    assert await out.of_notices(["one"]) == {"one": ()}
    assert await out.end(delivery.id, 0, "failed") is False
    assert await out.again(delivery.id, 0, db.clock(), "") is False
    for attempt in (theirs.get("one"), theirs.acknowledge("one"), out.get(delivery.id), out.retry(delivery.id)):
        with pytest.raises(NotFound):
            await attempt
    assert await db.repository(NoticesRepository, ann).get("one") == before
    assert await sent(db, "one", ann) == {"ntfy": delivery}
