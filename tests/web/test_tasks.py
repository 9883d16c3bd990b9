"""The tasks page: what a person sees and what their forms change."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from cortex.app import Cortex
from tests.web.conftest import Browser


async def test_the_empty_page_names_the_first_action(ada: Browser) -> None:
    page = await ada.get("/tasks")
    assert "<!doctype html>" in page.text
    assert "first task above" in page.text


async def test_an_added_task_stands_in_its_list_and_in_the_table(house: Cortex, ada: Browser) -> None:
    answer = await ada.post(
        "/tasks", title="Milk <b>", list_name="shopping", due="2026-12-24", back="/tasks?list=shopping"
    )
    assert answer.headers["location"] == "/tasks?list=shopping#new-title"
    (task,) = await house.tasks.list(ada.user)
    assert (task.title, task.list_name, str(task.due)) == ("Milk <b>", "shopping", "2026-12-24")
    page = await ada.fragment("/tasks?list=shopping")
    assert "Milk &lt;b&gt;" in page.text
    assert "<html" not in page.text


@pytest.mark.parametrize(
    ("back", "into", "leads_to"),
    [
        ("/tasks", "Shopping", "/tasks?list=Shopping#new-title"),
        ("/tasks?list=garden", "Shopping", "/tasks?list=Shopping#new-title"),
        ("/tasks?list=Shopping&tabs=3", "Shopping", "/tasks?list=Shopping&tabs=3#new-title"),
        ("/tasks", "inbox", "/tasks#new-title"),
        ("/today", "Shopping", "/today#add-line"),
    ],
)
async def test_the_page_goes_on_with_the_list_that_was_written_to(
    ada: Browser, back: str, into: str, leads_to: str
) -> None:
    answer = await ada.post("/tasks", title="Milk", list_name=into, back=back)
    assert answer.headers["location"] == leads_to


async def test_a_task_without_words_is_refused_beside_its_field(house: Cortex, ada: Browser) -> None:
    answer = await ada.post("/tasks", title="  ")
    assert answer.status_code == 422
    assert 'aria-describedby="new-error"' in answer.text
    assert await house.tasks.list(ada.user) == []


@pytest.mark.parametrize(
    ("words", "days"),
    [("today", 0), ("Yesterday", -1), ("tomorrow", 1), ("in 3 days", 3), ("", None)],
)
async def test_a_day_is_read_as_people_say_it(house: Cortex, ada: Browser, words: str, days: int | None) -> None:
    await ada.post("/tasks", title="Water the plants", due=words)
    (task,) = await house.tasks.list(ada.user)
    assert task.due == (None if days is None else datetime.now(UTC).date() + timedelta(days=days))


@pytest.mark.parametrize("words", ["today 15:58", "tomorrow at 9", "Friday 7 pm", "noon"])
async def test_a_time_of_day_is_refused_and_not_lost(house: Cortex, ada: Browser, words: str) -> None:
    answer = await ada.post("/tasks", title="Collect the parcel", due=words)
    assert (answer.status_code, "without a time" in answer.text) == (422, True)
    assert await house.tasks.list(ada.user) == []


@pytest.mark.parametrize("words", ["24 Dec 2019", "24 December 2019", "24.12.2019", "2019-12-24"])
async def test_a_written_day_is_read_and_stays_as_it_is_when_the_task_is_saved(
    house: Cortex, ada: Browser, words: str
) -> None:
    await ada.post("/tasks", title="Water the plants", due=words)
    (task,) = await house.tasks.list(ada.user)
    page = (await ada.get(f"/tasks/{task.id}")).text
    shown = re.search(r'name="due"[^>]*value="([^"]+)"', page)
    assert shown
    assert shown[1] == "24 Dec 2019"
    await ada.post(f"/tasks/{task.id}", version=task.version, title="Water", list_name="inbox", due=shown[1])
    (saved,) = await house.tasks.list(ada.user)
    assert (saved.title, saved.due) == ("Water", task.due)


async def test_ticking_and_opening_again(house: Cortex, ada: Browser) -> None:
    task = await house.tasks.create(ada.user, "Water the plants")
    await ada.post(f"/tasks/{task.id}/complete")
    assert "Nothing to do." in (await ada.get("/tasks")).text
    assert "Water the plants" in (await ada.get("/tasks?done=1")).text
    await ada.post(f"/tasks/{task.id}/reopen")
    assert "Water the plants" in (await ada.get("/tasks")).text


async def test_a_deleted_task_comes_back_as_it_was(house: Cortex, ada: Browser) -> None:
    task = await house.tasks.create(ada.user, "Water", list_name="home", priority=2, notes="the ferns")
    await ada.post(f"/tasks/{task.id}/delete", version=task.version)
    page = await ada.get("/tasks")
    assert "Deleted: Water" not in (await ada.get("/tasks")).text, "news is told once"
    undo = re.search(r'action="(/tasks/\w+/restore)"', page.text)
    assert undo
    await ada.post(undo.group(1))
    (back,) = await house.tasks.list(ada.user)
    assert (back.id, back.title, back.list_name, back.priority, back.notes) == (
        task.id,
        "Water",
        "home",
        2,
        "the ferns",
    )


async def test_a_task_changed_elsewhere_is_not_overwritten(house: Cortex, ada: Browser) -> None:
    task = await house.tasks.create(ada.user, "Water")
    await house.tasks.update(ada.user, task.id, 1, {"title": "Water twice"})
    answer = await ada.post(f"/tasks/{task.id}", version=1, title="Water once", list_name="inbox")
    assert answer.status_code == 409
    assert "the meantime" in answer.text
    assert (await house.tasks.get(ada.user, task.id)).title == "Water twice"
    assert 'value="Water once"' in answer.text, "what was typed is kept"
    assert "<b>Water twice</b>" in answer.text, "and what stands there is shown"


async def test_a_slip_in_a_task_stands_beside_its_field_and_what_was_typed_is_kept(house: Cortex, ada: Browser) -> None:
    task = await house.tasks.create(ada.user, "Water")
    answer = await ada.post(f"/tasks/{task.id}", version=1, title="", list_name="home", due="soon", notes="the ferns")
    assert answer.status_code == 422
    assert 'aria-describedby="f-due-e"' in answer.text
    assert "the ferns" in answer.text
    added = await ada.post("/tasks", title="Milk", due="soon")
    assert 'aria-describedby="new-due-e"' in added.text


async def test_news_of_a_fragment_come_with_it(house: Cortex, ada: Browser) -> None:
    task = await house.tasks.create(ada.user, "Water")
    await ada.post(f"/tasks/{task.id}/complete")
    part = (await ada.fragment("/tasks")).text
    assert '<hx-partial hx-target="#toasts"' in part
    assert f'action="/tasks/{task.id}/reopen"' in part


async def test_buttons_move_a_task_within_its_list(house: Cortex, ada: Browser) -> None:
    ids = [(await house.tasks.create(ada.user, name)).id for name in ("one", "two", "three")]
    await ada.post(f"/tasks/{ids[2]}/move", by=-1)
    await ada.post(f"/tasks/{ids[0]}/move", by=-1)
    assert [task.title for task in await house.tasks.list(ada.user)] == ["one", "three", "two"]


async def test_a_long_list_has_pages_and_a_filter(house: Cortex, ada: Browser) -> None:
    for number in range(103):
        await house.tasks.create(ada.user, f"task {number:03}")
    first = await ada.get("/tasks")
    assert first.text.count('class="line task"') == 100
    assert 'href="/tasks?start=100"' in first.text
    assert (await ada.get("/tasks?start=100")).text.count('class="line task"') == 3
    assert (await ada.get("/tasks?q=042")).text.count('class="line task"') == 1
    assert "Nothing matches." in (await ada.get("/tasks?q=zebra")).text


async def test_the_list_shown_has_its_tab_and_all_are_suggested_however_many_there_are(
    house: Cortex, ada: Browser
) -> None:
    names = [f"list{number:02}" for number in range(60)]
    for name in names:
        await house.tasks.create(ada.user, "Water", list_name=name)
    tab = r'<a class="tab" href="(/tasks\?[^"]*)"'
    shown = (await ada.get("/tasks?list=list57")).text
    assert re.findall(r'<option value="(list\d+)"', shown) == names
    assert re.findall(tab + ' aria-current="page"', shown) == ["/tasks?list=list57"]
    behind = (await ada.get("/tasks?list=list57&tabs=50")).text
    assert len(re.findall(tab, behind)) == 11, "all of them, and the last ten"
    assert {href.endswith("&amp;tabs=50") for href in re.findall(tab, behind)} == {True}
    assert 'href="/tasks?done=1&amp;list=list57&amp;tabs=50"' in behind
    other = (await ada.get("/tasks?list=list03&tabs=50")).text
    assert re.findall(tab + ' aria-current="page"', other) == ["/tasks?list=list03&amp;tabs=50"]
