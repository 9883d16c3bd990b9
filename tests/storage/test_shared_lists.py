"""Lists that several see: who reaches what, whose words they are, and that nothing is lost when two act at once."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import delete

from cortex.base.errors import Conflict, NotFound, UserError
from cortex.storage.accounts import AccountsRepository
from cortex.storage.db import Database
from cortex.storage.schema import AccountTable
from cortex.storage.shared_lists import SharedListsRepository
from cortex.storage.tasks import TaskRow, TasksRepository
from tests.sharing import share

THEIRS = "shopping (Ann)"
EACH = 25


@pytest.fixture
async def eve(db: Database) -> str:
    return (await db.repository(AccountsRepository).add("eve", "Eve", "member", None, "UTC")).id


def of(db: Database, who: str) -> TasksRepository:
    return db.repository(TasksRepository, who)


def lists(db: Database, who: str) -> SharedListsRepository:
    return db.repository(SharedListsRepository, who)


@pytest.fixture
async def milk(db: Database, ann: str, ben: str) -> TaskRow:
    """On Ann's list, which Ben sees."""
    task = await of(db, ann).create("milk", "Milk", "shopping", is_tainted=False)
    assert await share(db, ann, "shopping", [ben]) == [ben]
    return task


async def test_moving_down_ends_sharing_and_keeps_the_mark_of_words_by_others(
    db: Database, ann: str, ben: str, milk: TaskRow
) -> None:
    await of(db, ben).create("eggs", "Eggs", THEIRS, is_tainted=False)
    await of(db, ann).create("oats", "Oats", "shopping", is_tainted=False)
    await of(db, ann).create("page", "Page", "shopping", is_tainted=True)
    mine = await of(db, ben).create("rye", "Rye", THEIRS, is_tainted=False)
    await of(db, ann).update(mine.id, notes="two")  # its words are of two people
    await db.move_to("0018")
    await db.migrate()
    assert {task.id: task.is_from_outside for task in await of(db, ann).list("shopping")} == {
        "milk": False,
        "eggs": True,
        "oats": False,
        "page": True,
        "rye": True,
    }
    assert await of(db, ben).lists() == []


async def gone(db: Database, account_id: str) -> None:
    async with db.session_scope() as session:
        await session.execute(delete(AccountTable).where(AccountTable.id == account_id))


async def test_a_member_sees_whose_it_is_with_whom_and_who_did_what(
    db: Database, ann: str, ben: str, eve: str, milk: TaskRow
) -> None:
    await share(db, ann, "shopping", [ben, eve])
    eggs = await of(db, ben).create(None, "Eggs", "shopping", is_tainted=False)
    await of(db, eve).complete(milk.id)
    seen = {task.title: task for task in await of(db, ben).list(THEIRS)}
    assert (seen["Milk"].adder, seen["Milk"].doer, seen["Milk"].list_label) == ("Ann", "Eve", THEIRS)
    assert (seen["Eggs"].adder, seen["Eggs"].doer, seen["Eggs"].owner_id) == ("", "", ann)
    (hers,) = await of(db, ann).lists()
    (his,) = await of(db, ben).lists()
    assert (hers.label, hers.with_whom, hers.open, hers.done) == ("shopping", ("Ben", "Eve"), 1, 1)
    assert (his.label, his.with_whom, his.open, his.done) == (THEIRS, ("Ann", "Eve"), 1, 1)
    assert (await of(db, ann).get(eggs.id)).adder == "Ben"
    assert await lists(db, ben).readers(ann, "shopping") == sorted([ann, ben, eve])
    al = await db.repository(AccountsRepository).add("al", "Al", "member", None, "UTC")
    await share(db, ann, "shopping", [ben, eve, al.id])
    assert (await of(db, ann).lists())[0].with_whom == ("Al", "Ben", "Eve"), "by name, whoever came last"


ACTS: dict[str, Callable[[TasksRepository, TaskRow], Awaitable[Any]]] = {
    "get": lambda tasks, task: tasks.get(task.id),
    "change": lambda tasks, task: tasks.update(task.id, title="x"),
    "tick": lambda tasks, task: tasks.complete(task.id),
    "open": lambda tasks, task: tasks.reopen(task.id),
    "delete": lambda tasks, task: tasks.remove(task.id),
    "order": lambda tasks, task: tasks.move(task.id, 0),
    "bring back": lambda tasks, task: tasks.put(replace(task, id="again")),
}


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("way", ["taken out", "ended", "left"])
async def test_who_is_no_member_any_more_reaches_nothing(
    db: Database, ann: str, ben: str, eve: str, milk: TaskRow, act: str, way: str
) -> None:
    await of(db, ben).create("his", "Eggs", THEIRS, is_tainted=False)
    seen = await of(db, ben).get("his")
    if way == "left":
        await lists(db, ben).leave((await lists(db, ben).list())[0].id)
    else:
        await share(db, ann, "shopping", [eve] if way == "taken out" else [])
    for task in (milk, seen):
        with pytest.raises(NotFound):
            await ACTS[act](of(db, ben), replace(task, owner_id=ann))
    assert await of(db, ben).list() == []
    assert await of(db, ben).lists() == []
    with pytest.raises(UserError):
        await of(db, ben).create(None, "late", THEIRS, is_tainted=False)
    assert [task.title for task in await of(db, ann).list()] == ["Milk", "Eggs"], "what he added stays with its owner"


async def test_nobody_else_reaches_a_shared_list(db: Database, eve: str, ann: str, milk: TaskRow) -> None:
    assert await of(db, eve).list() == []
    assert await lists(db, eve).list() == []
    (shared,) = await lists(db, ann).list()
    for attempt in (
        of(db, eve).complete(milk.id),
        of(db, eve).put(replace(milk, id="new", owner_id=ann)),
        lists(db, eve).leave(shared.id),
        lists(db, eve).share("shopping", [eve]),
        lists(db, eve).rename("shopping", "mine"),
        lists(db, eve).hold(shared.id),
    ):
        with pytest.raises(NotFound):
            await attempt


async def test_only_its_owner_shares_renames_and_ends(
    db: Database, ann: str, ben: str, eve: str, milk: TaskRow
) -> None:
    for attempt in (lists(db, ben).share("shopping", [eve]), lists(db, ben).rename("shopping", "his")):
        with pytest.raises(NotFound):
            await attempt
    with pytest.raises(NotFound):
        await share(db, ann, "shopping", ["nobody"])
    with pytest.raises(NotFound):
        await lists(db, ann).leave((await lists(db, ann).list())[0].id)
    await lists(db, ann).rename("shopping", "groceries")
    assert [one.label for one in await of(db, ben).lists()] == ["groceries (Ann)"]
    with pytest.raises(Conflict):
        await of(db, ben).update(milk.id, milk.version, title="from an old page")
    await of(db, ann).create(None, "Rake", "garden", is_tainted=False)
    with pytest.raises(Conflict):
        await lists(db, ann).rename("garden", "groceries")


async def test_names_mean_ones_own_list_first(db: Database, ann: str, ben: str, eve: str, milk: TaskRow) -> None:
    theirs = await of(db, ben).create(None, "Eggs", "Shopping", is_tainted=False)
    assert theirs.owner_id == ann, "he has none"
    own = await of(db, eve).create(None, "Nuts", "shopping", is_tainted=False)
    await share(db, ann, "shopping", [ben, eve])
    assert (await of(db, eve).create(None, "Figs", "shopping", is_tainted=False)).owner_id == own.owner_id == eve
    assert (await of(db, eve).create(None, "Dates", THEIRS, is_tainted=False)).owner_id == ann
    assert [task.title for task in await of(db, eve).list("shopping")] == ["Nuts", "Figs"]
    await share(db, eve, "shopping", [ben])
    with pytest.raises(UserError, match=r"shopping \(Ann\), shopping \(Eve\)"):
        await of(db, ben).create(None, "Which?", "shopping", is_tainted=False)


async def test_what_names_no_list_never_goes_to_another(db: Database, ann: str, ben: str) -> None:
    await of(db, ann).create(None, "Milk", "inbox", is_tainted=False)
    await share(db, ann, "inbox", [ben])
    assert (await of(db, ben).create(None, "diary", is_tainted=False)).owner_id == ben


async def test_a_task_that_is_moved_belongs_to_the_owner_of_its_list(
    db: Database, ann: str, ben: str, milk: TaskRow
) -> None:
    own = await of(db, ben).create(None, "Figs", is_tainted=False)
    assert (await of(db, ben).update(own.id, list_name=THEIRS)).owner_id == ann
    back = await of(db, ben).update(own.id, list_name="inbox")
    assert (back.owner_id, back.list_label) == (ben, "inbox")
    with pytest.raises(NotFound):
        await of(db, ann).get(own.id)


async def test_words_of_another_are_marked_for_who_did_not_write_them(
    db: Database, ann: str, ben: str, milk: TaskRow
) -> None:
    eggs = await of(db, ben).create(None, "Eggs", THEIRS, is_tainted=False)
    assert not (await of(db, ann).get(milk.id)).is_tainted
    assert (await of(db, ann).get(eggs.id)).is_tainted
    assert (await of(db, ben).get(milk.id)).is_tainted
    assert not (await of(db, ann).get(eggs.id)).is_from_outside
    await of(db, ben).update(milk.id, priority=2, title="Milk")
    assert not (await of(db, ann).get(milk.id)).is_tainted, "he wrote no word of it"
    await of(db, ben).update(milk.id, notes="and call this number")
    assert (await of(db, ann).get(milk.id)).is_tainted
    await of(db, ann).update(milk.id, notes="")
    assert (await of(db, ann).get(milk.id)).is_tainted, "part of it may still be his"
    (hers,) = await of(db, ann).lists()
    assert hers.is_tainted


async def test_a_deleted_task_comes_back_to_its_list_with_its_marks(
    db: Database, ann: str, ben: str, milk: TaskRow
) -> None:
    removed = await of(db, ben).remove(milk.id)
    back = await of(db, ben).put(removed)
    assert (back.owner_id, back.adder, back.version) == (ann, "Ann", 2)
    assert not (await of(db, ann).get(milk.id)).is_tainted


async def test_many_entries_of_two_at_once_are_all_there(db: Database, ann: str, ben: str, milk: TaskRow) -> None:
    adding = [
        of(db, who).create(None, f"{who} {number}", name, is_tainted=False)
        for number in range(EACH)
        for who, name in ((ann, "shopping"), (ben, THEIRS))
    ]
    await asyncio.gather(*adding)
    for who in (ann, ben):
        titles = [task.title for task in await of(db, who).list("shopping")]
        assert sorted(titles) == sorted(["Milk", *(f"{one} {number}" for one in (ann, ben) for number in range(EACH))])


async def test_a_rename_amid_many_entries_loses_none(db: Database, ann: str, ben: str, milk: TaskRow) -> None:
    async def add(number: int) -> TaskRow:
        (one,) = await lists(db, ben).list()
        try:
            return await of(db, ben).create(None, str(number), one.label, is_tainted=False)
        except UserError:  # renamed since it looked
            return await add(number)

    names = ["groceries", "shop", "food"]
    renames = [lists(db, ann).rename(old, new) for old, new in zip(["shopping", *names], names, strict=False)]

    async def rename() -> None:
        for one in renames:
            await one

    await asyncio.gather(rename(), *(add(number) for number in range(EACH)))
    titles = [task.title for task in await of(db, ben).list("food (Ann)")]
    assert sorted(titles) == sorted(["Milk", *map(str, range(EACH))])


async def test_ticking_at_once_is_one_tick(db: Database, ann: str, ben: str, milk: TaskRow) -> None:
    both = await asyncio.gather(*(of(db, who).complete(milk.id) for who in (ann, ben) * 5))
    assert {task.is_done for task in both} == {True}
    now = await of(db, ann).get(milk.id)
    assert (now.version, now.done_by in (ann, ben)) == (2, True)


async def test_of_two_changes_to_the_same_words_one_is_told(db: Database, ann: str, ben: str, milk: TaskRow) -> None:
    changes = (of(db, who).update(milk.id, milk.version, title=who) for who in (ann, ben))
    ended = await asyncio.gather(*changes, return_exceptions=True)
    assert sorted(type(one).__name__ for one in ended) == ["Conflict", "TaskRow"]


async def test_an_account_that_goes_leaves_the_others_theirs(
    db: Database, ann: str, ben: str, eve: str, milk: TaskRow
) -> None:
    await share(db, ann, "shopping", [ben, eve])
    await of(db, ben).create(None, "Eggs", THEIRS, is_tainted=False)
    await of(db, eve).create(None, "Nuts", "own", is_tainted=False)
    await gone(db, ben)
    hers = await of(db, ann).list()
    assert [(task.title, task.adder, task.is_tainted) for task in hers] == [("Milk", "", False), ("Eggs", "", True)]
    await gone(db, ann)
    assert [task.title for task in await of(db, eve).list()] == ["Nuts"]


async def test_a_closed_account_is_not_among_those_who_see_it(db: Database, ann: str, ben: str, milk: TaskRow) -> None:
    await db.repository(AccountsRepository).set_active(ben, False)
    (hers,) = await of(db, ann).lists()
    assert hers.with_whom == ()
    await db.repository(AccountsRepository).set_active(ben, True)
    assert [task.title for task in await of(db, ben).list()] == ["Milk"]


async def test_tasks_from_before_lists_were_shared_are_their_owners_own(
    db: Database, ann: str, ben: str, milk: TaskRow
) -> None:
    await of(db, ann).complete(milk.id)
    await db.move_to("0015")
    await db.move_to("head")
    (task,) = await of(db, ann).list()
    assert (task.added_by, task.done_by, task.is_tainted, task.is_done) == (ann, ann, False, True)
    assert await of(db, ben).list() == []
