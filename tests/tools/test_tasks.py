"""To-do lists from the chat: found by words, in the user's day, taken back with one button, one user at a time."""

from datetime import date, timedelta

import pytest
from pydantic import ValidationError

from cortex.base.errors import Conflict, NotFound, ToolFailed
from cortex.base.user import User
from cortex.storage.tasks import TasksRepository
from tests.tool_world import NOW, World

TODAY = date(2026, 11, 20)


async def _titles(world: World, user: User, list_name: str | None = None) -> list[str]:
    return [task.title for task in await world.db.repository(TasksRepository, user.id).list(list_name, False)]


async def test_an_item_is_added_and_listed(world: World, ann: User) -> None:
    text = await world.text(ann, "task_create", title=" milk and eggs ", list_name="shopping")
    assert "(id " in text
    assert "milk and eggs" in await world.text(ann, "task_list", list_name="shopping")


async def test_a_repeated_step_adds_nothing(world: World, ann: User) -> None:
    for _ in range(2):
        await world.run(world.ctx(ann, call_id="one"), "task_create", title="milk")
    assert await _titles(world, ann) == ["milk"]


@pytest.mark.parametrize("spoken", ["Shopping List", "shopping", "SHOPPING", "shopping list"])
async def test_a_list_is_known_however_it_is_spoken(world: World, ann: User, spoken: str) -> None:
    await world.text(ann, "task_create", title="milk", list_name="shopping")
    await world.text(ann, "task_create", title="eggs", list_name=spoken)
    assert await _titles(world, ann, "shopping") == ["milk", "eggs"]


async def test_days_are_the_users_own(world: World, ann: User, ben: User) -> None:
    late = NOW.replace(hour=23)  # in Berlin it is already the next day
    for user in (ann, ben):
        await world.text(user, "task_create", title="call", due="2026-11-21")
    assert (await world.text(ben, "task_list")).count("(tomorrow)") == 1
    assert late.date() == TODAY
    assert "(tomorrow)" in await world.text(ann, "task_list")


async def test_what_is_overdue_says_so(world: World, ann: User) -> None:
    await world.text(ann, "task_create", title="tax", due=str(TODAY - timedelta(days=2)))
    assert "overdue by 2 days" in await world.text(ann, "task_list")


async def test_an_empty_list_names_those_that_are_there(world: World, ann: User) -> None:
    assert "task_create" in await world.text(ann, "task_list")
    await world.text(ann, "task_create", title="milk", list_name="shopping")
    told = await world.text(ann, "task_list", list_name="garden")
    assert ("(id " in told, "Lists: shopping" in told) == (False, True)


async def test_tasks_are_narrowed_by_words_and_day(world: World, ann: User) -> None:
    await world.text(ann, "task_create", title="call the bank", due="2026-11-22")
    await world.text(ann, "task_create", title="call Ben", due="2026-12-22")
    assert "Ben" not in await world.text(ann, "task_list", query="call", due_by="2026-11-30")
    assert "bank" not in await world.text(ann, "task_list", query="ben")


async def test_many_tasks_stay_a_short_text(world: World, ann: User) -> None:
    for number in range(45):
        await world.text(ann, "task_create", title=f"thing {number}")
    assert "and 5 more" in await world.text(ann, "task_list")


@pytest.mark.parametrize("words", ["dentist", "the dentist", "CALL DENTIST", "Call the dentist"])
async def test_a_task_is_found_by_its_words(world: World, ann: User, words: str) -> None:
    await world.text(ann, "task_create", title="Call the dentist")
    await world.text(ann, "task_complete", task=words)
    assert await _titles(world, ann) == []


async def test_a_task_is_found_by_its_short_id(world: World, ann: User) -> None:
    text = await world.text(ann, "task_create", title="milk")
    short = text.partition("(id ")[2][:6]
    assert "Done: milk" in await world.text(ann, "task_complete", task=short)


async def test_two_that_fit_are_named_instead_of_guessed(world: World, ann: User) -> None:
    for title in ("buy white paint", "buy blue paint"):
        await world.text(ann, "task_create", title=title)
    with pytest.raises(ToolFailed, match=r"2 tasks fit 'paint': .*white.*blue"):
        await world.text(ann, "task_complete", task="paint")


@pytest.mark.parametrize("words", ["unicorn", "", "   "])
async def test_one_that_is_not_there_is_said(world: World, ann: User, words: str) -> None:
    with pytest.raises(ToolFailed):
        await world.text(ann, "task_complete", task=words)


async def test_a_task_is_changed(world: World, ann: User) -> None:
    await world.text(ann, "task_create", title="milk", list_name="shopping", due="2026-11-22")
    text = await world.text(ann, "task_update", task="milk", title="oat milk", clear_due=True, priority=2, notes="two")
    assert text.startswith("Changed: oat milk")
    assert "priority 2" in text
    assert "due" not in text
    assert "Nothing to change" in await world.text(ann, "task_update", task="oat milk", priority=2)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("task_create", {}),
        ("task_create", {"title": "a", "due": "tomorrow"}),
        ("task_create", {"title": "a", "priority": 4}),
        ("task_create", {"title": "a", "owner": "ben"}),
        ("task_update", {"title": "a"}),
        ("task_complete", {"task": None}),
    ],
)
async def test_wrong_arguments_run_nothing(world: World, ann: User, name: str, arguments: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        await world.text(ann, name, **arguments)
    assert await _titles(world, ann) == []


@pytest.mark.parametrize("title", ["", "  ", "x" * 301])
async def test_a_title_must_be_one(world: World, ann: User, title: str) -> None:
    with pytest.raises(ToolFailed):
        await world.text(ann, "task_create", title=title)


async def test_adding_can_be_taken_back(world: World, ann: User) -> None:
    _, note = await world.noted(ann, "task_create", title="milk")
    text, again = await world.undo_twice(ann, "tasks", note)
    assert (text, await _titles(world, ann)) == ("'milk' is back.", ["milk"])
    assert await world.undo(ann, "tasks", again) == "Removed 'milk' again."
    assert await _titles(world, ann) == []


async def test_a_change_can_be_taken_back(world: World, ann: User) -> None:
    await world.text(ann, "task_create", title="milk", due="2026-11-22")
    _, note = await world.noted(ann, "task_update", task="milk", title="oat milk", due="2026-11-23", list_name="shop")
    _, again = await world.undo_twice(ann, "tasks", note)
    (task,) = await world.db.repository(TasksRepository, ann.id).list()
    assert (task.title, task.due, task.list_name) == ("oat milk", date(2026, 11, 23), "shop")
    await world.undo(ann, "tasks", again)
    (task,) = await world.db.repository(TasksRepository, ann.id).list()
    assert (task.title, task.due, task.list_name) == ("milk", date(2026, 11, 22), "inbox")


async def test_ticking_off_can_be_taken_back(world: World, ann: User) -> None:
    await world.text(ann, "task_create", title="milk")
    _, note = await world.noted(ann, "task_complete", task="milk")
    text, again = await world.undo_twice(ann, "tasks", note)
    assert text == "'milk' is done again."
    await world.undo(ann, "tasks", again)
    assert await _titles(world, ann) == ["milk"]


@pytest.mark.parametrize("name", ["task_create", "task_update", "task_complete"])
async def test_what_changed_since_is_not_taken_back(world: World, ann: User, name: str) -> None:
    await world.text(ann, "task_create", title="milk")
    arguments: dict[str, dict[str, object]] = {
        "task_create": {"title": "eggs"},
        "task_update": {"task": "milk", "priority": 3},
        "task_complete": {"task": "milk"},
    }
    _, note = await world.noted(ann, name, **arguments[name])
    await world.db.repository(TasksRepository, ann.id).update(note.target, notes="by hand")
    with pytest.raises(Conflict):
        await world.undo(ann, "tasks", note)
    assert (await world.db.repository(TasksRepository, ann.id).get(note.target)).notes == "by hand"


async def test_words_from_outside_stay_marked(world: World, ann: User) -> None:
    await world.run(world.ctx(ann, is_tainted=True), "task_create", title="read on a page")
    assert (await world.run(world.ctx(ann), "task_list")).is_tainted
    await world.text(ann, "task_create", title="my own", list_name="mine")
    assert not (await world.run(world.ctx(ann), "task_list", list_name="mine")).is_tainted
    await world.run(world.ctx(ann, is_tainted=True), "task_update", task="my own", notes="from a page")
    assert (await world.run(world.ctx(ann), "task_list", list_name="mine")).is_tainted


async def test_another_users_tasks_are_out_of_reach(world: World, ann: User, ben: User) -> None:
    _, note = await world.noted(ann, "task_create", title="ann's secret", list_name="private")
    assert "secret" not in await world.text(ben, "task_list")
    assert "private" not in await world.text(ben, "task_list")
    for task in ("secret", note.target, note.target[-6:]):
        with pytest.raises(ToolFailed):
            await world.text(ben, "task_complete", task=task)
    with pytest.raises(NotFound):
        await world.undo(ben, "tasks", note)
    assert await _titles(world, ann) == ["ann's secret"]


async def test_a_database_that_is_down_is_no_silent_success(world: World, ann: User) -> None:
    await world.db.close()
    async with world.db.write.begin() as connection:
        await connection.exec_driver_sql("DROP TABLE tasks")
    with pytest.raises(Exception, match=r"no such table|does not exist"):
        await world.text(ann, "task_create", title="milk")
