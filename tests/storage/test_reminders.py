import asyncio

import pytest
from msgspec.structs import replace

from cortex.base.errors import Conflict, NotFound
from cortex.storage.accounts import AccountsRepository
from cortex.storage.db import Database
from cortex.storage.notices import NoticesRepository
from cortex.storage.reminders import AllRemindersRepository, RemindersRepository
from tests.still_clock import StillClock
from tests.storage.made_time import DAY, HOUR, NINE, TEA, TOLD, second_process

NAGGING = replace(TEA, repeat_s=600)


async def test_a_reminder_comes_back_as_it_was_said(db: Database, ann: str) -> None:
    reminders = db.repository(RemindersRepository, ann)
    made = await reminders.add("tea", replace(NAGGING, is_tainted=True), NINE)
    assert (made.text, made.timing, made.repeat_s, made.is_tainted) == (TEA.text, TEA.timing, 600, True)
    assert (made.state, made.next_at, made.wakes_at, made.told_count) == ("planned", NINE, NINE, 0)
    assert await reminders.add("tea", replace(TEA, text="Other"), NINE) == made
    assert await reminders.list() == [made]


async def test_of_two_processes_one_tells_a_reminder(db: Database, ann: str) -> None:
    await db.repository(RemindersRepository, ann).add("tea", TEA, NINE)

    async def tell(one: Database) -> bool:
        async with one.transaction(ann) as repository:
            told = await repository(RemindersRepository).come_due("tea", NINE, None)
            return told is not None and await repository(NoticesRepository).add(None, TOLD)

    async with second_process(db) as other:
        told = await asyncio.gather(*(tell(one) for one in (db, other) * 4))
    assert sorted(told) == [False] * 7 + [True]
    assert await db.repository(NoticesRepository, ann).unread() == 1
    after = await db.repository(RemindersRepository, ann).get("tea")
    assert (after.state, after.due_at, after.next_at, after.told_count) == ("due", NINE, None, 1)
    assert after.version == 2


async def test_what_is_told_is_repeated_until_it_is_acknowledged(db: Database, ann: str, clock: StillClock) -> None:
    reminders = db.repository(RemindersRepository, ann)
    await reminders.add("tea", NAGGING, NINE)
    told = await reminders.come_due("tea", NINE, None)
    assert told is not None
    again = clock.forward(minutes=10)
    assert told.again_at == told.wakes_at == again
    assert [one.again_at for one in await db.repository(AllRemindersRepository).armed(again)] == [again]
    repeated = await reminders.come_again("tea", again)
    assert repeated is not None
    assert (repeated.told_count, repeated.again_at, repeated.due_at) == (2, clock.forward(minutes=10), NINE)
    assert await reminders.come_again("tea", again) is None
    heard = await reminders.acknowledge("tea")
    assert (heard.state, heard.due_at, heard.wakes_at) == ("done", None, None)
    assert await reminders.acknowledge("tea") == heard
    assert await db.repository(AllRemindersRepository).armed() == []


async def test_a_snoozed_one_comes_back_while_its_rhythm_goes_on(db: Database, ann: str, clock: StillClock) -> None:
    reminders = db.repository(RemindersRepository, ann)
    await reminders.add("tea", TEA, NINE)
    with pytest.raises(Conflict):
        await reminders.snooze("tea", NINE)
    await reminders.come_due("tea", NINE, NINE + DAY)
    snoozed = await reminders.snooze("tea", NINE + HOUR)
    assert (snoozed.state, snoozed.next_at, snoozed.wakes_at) == ("snoozed", NINE + DAY, NINE + HOUR)
    told = await reminders.come_again("tea", NINE + HOUR)
    assert told is not None
    assert (told.state, told.again_at, told.due_at, told.told_count) == ("due", None, NINE, 1)
    heard = await reminders.acknowledge("tea")
    assert (heard.state, heard.next_at) == ("planned", NINE + DAY)
    next_one = await reminders.come_due("tea", NINE + DAY, NINE + 2 * DAY)
    assert next_one is not None
    assert (next_one.due_at, next_one.told_count) == (NINE + DAY, 1)


async def test_a_change_on_an_old_version_overwrites_nothing(db: Database, ann: str) -> None:
    reminders = db.repository(RemindersRepository, ann)
    made = await reminders.add("tea", TEA, NINE)
    await reminders.come_due("tea", NINE, None)
    with pytest.raises(Conflict):
        await reminders.change("tea", made.version, TEA, NINE + DAY)
    changed = await reminders.change("tea", made.version + 1, replace(made, text="Coffee"), NINE + DAY)
    assert (changed.text, changed.state, changed.due_at, changed.next_at) == ("Coffee", "planned", None, NINE + DAY)


async def test_reminders_are_listed_as_they_wake_filtered_and_paged(db: Database, ann: str, ben: str) -> None:
    reminders = db.repository(RemindersRepository, ann)
    for number, text in enumerate(["plants 100%", "Plants", "rent"]):
        await reminders.add(text, replace(TEA, text=text), NINE - number * HOUR)
    await reminders.come_due("Plants", NINE - HOUR, None)
    assert [one.id for one in await reminders.list()] == ["rent", "plants 100%", "Plants"]
    assert [one.id for one in await reminders.list(skip=1, limit=1)] == ["plants 100%"]
    assert [one.id for one in await reminders.list(["due"])] == ["Plants"]
    assert [one.id for one in await reminders.list(words="PLANTS 100%")] == ["plants 100%"]
    assert await reminders.count() == {"planned": 2, "due": 1, "snoozed": 0, "done": 0}
    await db.repository(RemindersRepository, ben).add("theirs", TEA, NINE)
    armed = await db.repository(AllRemindersRepository).armed()
    assert [(one.id, one.owner_id) for one in armed] == [("rent", ann), ("plants 100%", ann), ("theirs", ben)]
    await db.repository(AccountsRepository).set_active(ann, False)
    assert [one.id for one in await db.repository(AllRemindersRepository).armed()] == ["theirs"]


async def test_removed_reminders_can_be_restored_for_a_day(db: Database, ann: str, clock: StillClock) -> None:
    reminders = db.repository(RemindersRepository, ann)
    for id in ("a", "b", "c"):
        await reminders.add(id, TEA, NINE)
    assert await reminders.remove(["a", "b", "nobody"]) == 2
    assert [one.id for one in await reminders.list()] == ["c"]
    assert await reminders.come_due("a", NINE, None) is None
    assert [one.id for one in await db.repository(AllRemindersRepository).armed()] == ["c"]
    assert await reminders.restore(["a", "b", "c"]) == 2
    assert await reminders.restore(["a"]) == 0
    await reminders.remove(["a"])
    clock.forward(days=0.5)
    assert await reminders.remove(["a"]) == 0
    clock.forward(days=0.5, seconds=1)
    assert await reminders.restore(["a"]) == 0
    assert await db.repository(AllRemindersRepository).prune() == 1


async def test_reminders_that_are_over_are_forgotten_in_time(db: Database, ann: str, clock: StillClock) -> None:
    reminders = db.repository(RemindersRepository, ann)
    for id in ("over", "waits"):
        await reminders.add(id, TEA, NINE)
        await reminders.come_due(id, NINE, None)
    await reminders.acknowledge("over")
    clock.forward(days=89)
    assert await db.repository(AllRemindersRepository).prune() == 0
    clock.forward(days=2)
    assert await db.repository(AllRemindersRepository).prune() == 1
    assert [one.id for one in await reminders.list()] == ["waits"]


async def test_another_users_reminders_are_out_of_reach(db: Database, ann: str, ben: str) -> None:
    made = await db.repository(RemindersRepository, ann).add("tea", TEA, NINE)
    theirs = db.repository(RemindersRepository, ben)
    assert await theirs.list() == []
    assert sum((await theirs.count()).values()) == 0
    assert await theirs.remove(["tea"]) == 0
    assert await theirs.restore(["tea"]) == 0
    assert await theirs.come_due("tea", NINE, None) is None
    assert await theirs.come_again("tea", NINE) is None
    for attempt in (
        theirs.get("tea"),
        theirs.add("tea", TEA, NINE),
        theirs.change("tea", 1, TEA, NINE),
        theirs.acknowledge("tea"),
        theirs.snooze("tea", NINE),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert await db.repository(RemindersRepository, ann).get("tea") == made
