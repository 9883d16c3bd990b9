"""A temporary chat is nowhere to be found, and nothing of its words is left when it ends; what it cost is."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from cortex.base.errors import NotFound, UserError
from cortex.services.chat.temporary import IDLE
from cortex.storage.rounds import RoundsRepository
from cortex.storage.schema import Table
from tests.living_house import LivingHouse, living_house
from tests.patience import PATIENCE_S
from tests.scripted_server import ScriptedServer, Use, rule
from tests.still_clock import StillClock

SECRET = "quinceparadise"


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
async def house(tmp_path: Path, scripted: ScriptedServer, clock: StillClock) -> AsyncIterator[LivingHouse]:
    scripted.rules = [
        rule("task", Use("task_create", {"title": f"Buy {SECRET}"}), f"{SECRET} is on the list."),
        rule("", f"I will not tell of {SECRET}."),
    ]
    async with living_house(tmp_path / "home", clock=clock) as opened:
        await opened.connect(scripted)
        yield opened


async def temporary(house: LivingHouse) -> str:
    return (await house.cortex.conversations.new(house.admin, is_temporary=True)).id


async def holding(house: LivingHouse, word: str) -> list[str]:
    """The tables in which this word stands anywhere."""
    found = []
    async with house.cortex.runtime.db.read.connect() as connection:
        for table in Table.metadata.sorted_tables:
            rows = (await connection.execute(text(f'SELECT * FROM "{table.name}"'))).all()  # noqa: S608 - our own names
            if any(word in str(cell) for row in rows for cell in row):
                found.append(table.name)
    return found


def bytes_of(file: str) -> bytes:
    """All that the database's file holds, in small letters, once its log is written back."""
    with closing(sqlite3.connect(file)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return Path(file).read_bytes().lower()


async def test_it_is_in_no_list_and_no_search(house: LivingHouse) -> None:
    cid = await temporary(house)
    await house.say(cid, f"where is {SECRET}?")
    assert await house.cortex.conversations.list(house.admin) == []
    assert await house.cortex.search.find(house.admin, SECRET) == []
    assert not (await house.cortex.conversations.get(house.admin, cid)).uses_memory


async def test_when_it_ends_no_word_is_left_and_the_price_is(house: LivingHouse) -> None:
    cid = await temporary(house)
    turn = await house.say(cid, f"where is {SECRET}?")
    assert "messages" in await holding(house, SECRET)
    await house.cortex.temporary_chats.end(house.admin, cid)
    assert await holding(house, SECRET) == []
    assert await house.cortex.runtime.runner.status(turn) == "unknown"
    (paid,) = await house.rows(RoundsRepository).of_turn(turn)
    assert paid.output_tokens > 0
    with pytest.raises(NotFound):
        await house.cortex.conversations.get(house.admin, cid)


async def test_its_words_are_not_in_the_files_either(house: LivingHouse) -> None:
    cid = await temporary(house)
    await house.say(cid, f"where is {SECRET}?")
    await house.cortex.temporary_chats.end(house.admin, cid)
    database = house.cortex.runtime.db
    if database.is_postgresql:
        pytest.skip("its files are the server's")
    assert SECRET.encode() not in await asyncio.to_thread(bytes_of, database.url.database or "")


async def test_a_branch_of_it_is_as_temporary(house: LivingHouse) -> None:
    cid = await temporary(house)
    turn = await house.say(cid, f"where is {SECRET}?")
    branch = await house.cortex.conversations.branch(house.admin, cid, turn)
    await house.cortex.temporary_chats.end(house.admin, cid)
    await house.cortex.temporary_chats.end(house.admin, branch)
    assert await holding(house, SECRET) == []


async def test_its_agents_are_erased_with_it(house: LivingHouse, scripted: ScriptedServer) -> None:
    cid = await temporary(house)
    handed_over = Use("spawn_agent", {"task": f"Look for {SECRET}."})
    scripted.rules = [rule("ask another", handed_over, "It looks."), rule("", f"Here is {SECRET}.")]
    await house.say(cid, "ask another")
    assert len(await house.cortex.agents.list(house.admin.id, 5)) == 1
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await house.cortex.temporary_chats.end(house.admin, cid)
                break
            except UserError:  # it is at work, or its result is being told
                await asyncio.sleep(0.02)
    assert await holding(house, SECRET) == []
    assert await house.cortex.agents.list(house.admin.id, 5) == []


async def test_what_a_tool_did_stays_done(house: LivingHouse) -> None:
    cid = await temporary(house)
    await house.say(cid, "make it a task")
    await house.cortex.temporary_chats.end(house.admin, cid)
    assert set(await holding(house, SECRET)) <= {"tasks", "undos", "preferences"}
    assert [task.title for task in await house.cortex.tasks.list(house.admin)] == [f"Buy {SECRET}"]


async def test_one_that_is_left_ends_by_itself_an_hour_later_and_others_stay(
    house: LivingHouse, clock: StillClock
) -> None:
    cid, kept = await temporary(house), await house.conversation()
    await house.say(cid, f"where is {SECRET}?")
    await house.say(kept, "hello")
    clock.forward(minutes=IDLE.total_seconds() // 60 - 1)
    await house.cortex.temporary_chats.go_round()
    assert (await house.cortex.conversations.get(house.admin, cid)).title
    clock.forward(minutes=2)
    await house.cortex.temporary_chats.go_round()
    with pytest.raises(NotFound):
        await house.cortex.conversations.get(house.admin, cid)
    assert (await house.cortex.conversations.get(house.admin, kept)).title == "Hello"


async def test_only_a_temporary_one_can_be_erased_and_nobody_elses(house: LivingHouse) -> None:
    cid, kept = await temporary(house), await house.conversation()
    with pytest.raises(NotFound):
        await house.cortex.temporary_chats.end(house.admin, kept)
    with pytest.raises(NotFound):
        await house.cortex.temporary_chats.end(house.member, cid)
    with pytest.raises(UserError):
        await house.cortex.chat_sharing.share(house.admin, cid, "", [house.member.id])
