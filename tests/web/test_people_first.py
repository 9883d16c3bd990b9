"""What people send at the same moment as turns write: taken in first, never refused, never twice, never lost."""

import asyncio
import re
import sqlite3
from pathlib import Path

import httpx
import pytest

from cortex.app import Cortex
from cortex.storage.tasks import TasksRepository
from tests.patience import PATIENCE_S
from tests.web.conftest import Browser
from web import routes

SENDERS = 20
TURNS = 6


FORMS: list[tuple[str, dict[str, object]]] = [
    ("/c/new/messages", {"text": "hello there"}),
    ("/tasks", {"title": "milk"}),
]


async def turn(house: Cortex, person: Browser, title: str, ended: list[str]) -> None:
    """As a turn writes: again and again, and nobody waits for it."""
    for part in range(3):
        async with house.runtime.db.transaction(person.user.id) as repository:
            await repository(TasksRepository).create(f"{title}-{part}", title, is_tainted=False)
        ended.append("turn")


@pytest.mark.names_its_database("SQLite has one writer")
async def test_twenty_people_who_send_at_once_are_taken_in_ahead_of_the_turns(house: Cortex, ada: Browser) -> None:
    line, ended = house.runtime.db.write_line, list[str]()

    async def send(number: int) -> int:
        path, fields = FORMS[number % len(FORMS)]
        answer = await ada.post(path, **fields)
        ended.append("person")
        return answer.status_code

    # One of the turns is in the midst of it.
    async with asyncio.TaskGroup() as group, house.runtime.db.transaction(ada.user.id):
        for number in range(TURNS):
            group.create_task(turn(house, ada, f"turn{number}", ended))
        sent = [group.create_task(send(number)) for number in range(SENDERS)]
        async with asyncio.timeout(PATIENCE_S):
            while line.waiting[0] < SENDERS // 2 or line.waiting[1] < TURNS:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0)
    assert {task.result() for task in sent} == {303}
    assert ended.count("person") == SENDERS
    assert len(await house.tasks.list(ada.user)) == SENDERS // 2 + TURNS * 3
    after_last = ended[len(ended) - ended[::-1].index("person") :]
    assert len(after_last) > TURNS, "people waited behind the turns"


def turns_in(page: httpx.Response) -> int:
    return len(re.findall(r'class="turn user', page.text))


async def test_a_message_sent_twice_with_one_key_is_one(ada: Browser) -> None:
    first = await ada.post("/c/new/messages", text="hello there", once="k1")
    again = await ada.post("/c/new/messages", text="hello there", once="k1")
    assert first.headers["location"] == again.headers["location"]
    place = first.headers["location"]
    assert turns_in(await ada.get(place)) == 1
    await ada.post(f"{place}/messages", text="hello there", once="k1")
    assert turns_in(await ada.get(place)) == 1, "also once the conversation is known"
    await ada.post("/c/new/messages", text="hello there, and more", once="k1")
    assert turns_in(await ada.get(place)) == 2, "other words are another message, in the same new chat"
    await ada.post(f"{place}/messages", text="hello there", once="k2")
    assert turns_in(await ada.get(place)) == 3
    both = await asyncio.gather(*(ada.post(f"{place}/messages", text="at once", once="k3") for _ in range(2)))
    assert {answer.status_code for answer in both} == {303}
    assert turns_in(await ada.get(place)) == 4


async def test_a_key_is_of_one_person_and_forms_bring_new_ones(ada: Browser, bob: Browser) -> None:
    mine = await ada.post("/c/new/messages", text="hello", once="k1")
    theirs = await bob.post("/c/new/messages", text="hello", once="k1")
    assert mine.headers["location"] != theirs.headers["location"]
    keys = {re.findall(r'name="once" value="(\w+)"', (await ada.get("/c/new")).text)[0] for _ in range(3)}
    assert len(keys) == 3


@pytest.mark.names_its_database("only SQLite locks the whole database for a writer")
@pytest.mark.parametrize(
    ("path", "fields", "kept"),
    [
        ("/tasks", {"title": "Buy two bottles", "password": "a few secret words"}, "Buy two bottles"),
        ("/tasks", {"title": "First <this>,\nthen that"}, "First &lt;this&gt;,\nthen that"),
        ("/c/new/messages", {"text": "and what about bottle 8?"}, "and what about bottle 8?"),
    ],
    ids=["task", "markup", "message"],
)
async def test_a_form_that_cannot_be_stored_gives_the_words_back(
    house: Cortex, ada: Browser, monkeypatch: pytest.MonkeyPatch, path: str, fields: dict[str, object], kept: str
) -> None:
    monkeypatch.setattr(routes, "WRITES_WITHIN_S", 0.05)
    holder = sqlite3.connect(Path(house.settings.home) / "cortex.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    answer = await ada.post(path, **fields)
    holder.execute("ROLLBACK")
    holder.close()
    assert answer.status_code == 503
    assert kept in answer.text
    assert "secret words" not in answer.text
