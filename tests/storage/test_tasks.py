import json
from datetime import UTC, date, datetime

import pytest

from cortex.base import portable
from cortex.base.errors import Conflict, NotFound
from cortex.storage.db import Database
from cortex.storage.preferences import PreferencesRepository
from cortex.storage.secrets import SecretsRepository, ServerSecretsRepository
from cortex.storage.tasks import TaskListRow, TaskRow, TasksRepository


async def test_a_task_created_twice_is_one_task(db: Database, ann: str) -> None:
    tasks = db.repository(TasksRepository, ann)
    first = await tasks.create(
        "id-1", "Milk", "shopping", due=date(2026, 11, 21), priority=2, notes="two litres", is_tainted=True
    )
    assert await tasks.create("id-1", "Eggs", "shopping", is_tainted=False) == first
    assert (first.due, first.priority, first.notes, first.is_tainted) == (date(2026, 11, 21), 2, "two litres", True)
    assert await tasks.list() == [first]


async def test_a_change_on_an_old_version_overwrites_nothing(db: Database, ann: str) -> None:
    tasks = db.repository(TasksRepository, ann)
    task = await tasks.create(None, "Milk", is_tainted=False)
    changed = await tasks.update(task.id, task.version, title="Oat milk", due=date(2026, 12, 1))
    assert (changed.title, changed.version) == ("Oat milk", 2)
    with pytest.raises(Conflict):
        await tasks.update(task.id, task.version, title="Soy milk")
    with pytest.raises(Conflict):
        await tasks.remove(task.id, task.version)
    assert await tasks.get(task.id) == changed
    assert (await tasks.update(task.id, due=None)).due is None


async def test_ticking_twice_is_ticking_once(db: Database, ann: str) -> None:
    tasks = db.repository(TasksRepository, ann)
    task = await tasks.create(None, "Milk", is_tainted=False)
    done = await tasks.complete(task.id)
    assert done.is_done
    assert done.done_at is not None
    assert await tasks.complete(task.id) == done
    open_again = await tasks.reopen(task.id)
    assert (open_again.is_done, open_again.done_at) == (False, None)


async def test_a_removed_task_comes_back_as_it_was(db: Database, ann: str) -> None:
    tasks = db.repository(TasksRepository, ann)
    task = await tasks.create(None, "Milk", "shopping", priority=3, is_tainted=False)
    removed = await tasks.remove(task.id)
    with pytest.raises(NotFound):
        await tasks.get(task.id)
    back = await tasks.put(removed)
    assert (back.title, back.list_name, back.priority, back.version) == ("Milk", "shopping", 3, 2)
    assert await tasks.put(removed) == back


async def test_tasks_are_found_by_list_state_and_words(db: Database, ann: str) -> None:
    tasks = db.repository(TasksRepository, ann)
    milk = await tasks.create(None, "Oat milk", "Shopping", notes="100% oats", is_tainted=False)
    call = await tasks.create(None, "Call Carla", "inbox", is_tainted=False)
    await tasks.complete(call.id)
    assert await tasks.list("shopping") == [milk]
    assert await tasks.list(query="MILK oat") == [milk]
    assert await tasks.list(query="100%") == [milk]
    assert await tasks.list(query="0_%") == []
    assert [task.id for task in await tasks.list(is_done=True)] == [call.id]
    assert await tasks.lists() == [
        TaskListRow(name="inbox", open=0, done=1),
        TaskListRow(name="Shopping", open=1, done=0),
    ]


async def test_a_task_moves_to_its_new_place(db: Database, ann: str) -> None:
    tasks = db.repository(TasksRepository, ann)
    ids = [(await tasks.create(None, title, is_tainted=False)).id for title in "abcd"]
    await tasks.move(ids[3], 1)
    assert "".join(task.title for task in await tasks.list()) == "adbc"
    await tasks.move(ids[0], 99)
    assert "".join(task.title for task in await tasks.list()) == "dbca"


async def test_another_users_tasks_preferences_and_secrets_are_out_of_reach(db: Database, ann: str, ben: str) -> None:
    task = await db.repository(TasksRepository, ann).create("id-1", "Milk", is_tainted=False)
    await db.repository(PreferencesRepository, ann).set("theme", "dark")
    await db.repository(SecretsRepository, ann).put("openai", b"sealed")
    theirs = db.repository(TasksRepository, ben)
    assert await theirs.list() == []
    assert await theirs.lists() == []
    for attempt in (
        theirs.get(task.id),
        theirs.update(task.id, title="x"),
        theirs.remove(task.id),
        theirs.create("id-1", "mine", is_tainted=False),
        theirs.put(task),
        theirs.move(task.id, 0),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert await db.repository(PreferencesRepository, ben).all() == {}
    assert await db.repository(SecretsRepository, ben).get("openai") is None
    assert await db.repository(SecretsRepository, ben).remove("openai") is False
    assert await db.repository(TasksRepository, ann).get("id-1") == task


@pytest.mark.parametrize("value", [None, False, 0, "", [], {"a": [1, None]}, 1.5, "☃"])
async def test_a_preference_comes_back_as_it_was_set(db: Database, ann: str, value: object) -> None:
    preferences = db.repository(PreferencesRepository, ann)
    assert await preferences.get("x", "unset") == "unset"
    await preferences.set("x", "before")
    await preferences.set("x", value)
    assert await preferences.get("x", "unset") == value
    assert await preferences.all() == {"x": value}
    await preferences.unset("x")
    assert await preferences.get("x", "unset") == "unset"


async def test_a_secret_is_kept_by_name(db: Database, ann: str) -> None:
    secrets = db.repository(SecretsRepository, ann)
    await secrets.put("b", b"\x00\xff")
    await secrets.put("a", b"1")
    await secrets.put("a", b"2")
    assert (await secrets.get("a"), await secrets.get("b"), await secrets.names()) == (b"2", b"\x00\xff", ["a", "b"])
    assert await secrets.remove("a") is True
    assert await secrets.names() == ["b"]


async def test_of_several_who_make_a_secret_of_the_house_one_has_made_it(db: Database) -> None:
    secrets = db.repository(ServerSecretsRepository)
    assert await secrets.get("push") is None
    assert await secrets.add("push", b"first")
    assert not await secrets.add("push", b"second")
    assert await secrets.get("push") == b"first"
    assert not await secrets.replace("push", b"second", b"third")
    assert await secrets.replace("push", b"first", b"third")
    assert await secrets.get("push") == b"third"


def test_a_deleted_task_is_kept_as_it_always_was() -> None:
    at = datetime(2026, 11, 22, 7, 30, 0, 250_000, tzinfo=UTC)
    task = TaskRow(
        id="t1",
        list_name="home",
        title="Water",
        notes="",
        due=date(2026, 11, 24),
        priority=2,
        position=0,
        is_done=False,
        done_at=None,
        is_tainted=False,
        version=1,
        created_at=at,
        updated_at=at,
    )
    stored = (
        '{"id": "t1", "list_name": "home", "title": "Water", "notes": "", "due": "2026-11-24", "priority": 2, '
        '"position": 0, "is_done": false, "done_at": null, "is_tainted": false, "version": 1, '
        '"created_at": "2026-11-22T07:30:00.250000+00:00", "updated_at": "2026-11-22T07:30:00.250000+00:00"'
    )
    who = ', "owner_id": "", "owner": "", "added_by": null, "adder": "", "done_by": null, "doer": "", '
    since_lists_are_shared = f'{who}"worded_by": null, "is_from_outside": false'
    assert json.dumps(portable.plain(task)) == f"{stored}{since_lists_are_shared}}}"
    assert portable.read(TaskRow, json.loads(f"{stored}}}")) == task
