"""An account deleted with all that is its person's, in every table, in the files, in the engine; and after a kill."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from msgspec.structs import replace

from cortex.app import Cortex
from cortex.base.errors import Conflict, NotAllowed, NotFound, UserError
from cortex.services.jobs.forms import JobForm
from cortex.storage.audit import AuditFilter
from cortex.storage.db import Database
from cortex.storage.home import Home
from cortex.storage.preferences import PreferencesRepository
from cortex.storage.schema import Table
from tests.databases import house_settings
from tests.living_house import PASSWORD, LivingHouse, living_house
from tests.patience import PATIENCE_S

# What is nobody's own, and why a deleted person's id may stand there.
EVERYBODYS = {
    "accounts": "the person themselves",
    "attempts": "counts of tries by name, gone within a day",
    "audit": "that things happened, without words",
    "budgets": "limits that an admin set; a person's own go with them",
    "coding_folders": "what an admin gave the coding agent, by whom",
    "counters": "numbers of the server",
    "messenger_guests": "strangers who wrote, for a day",
    "messenger_places": "how far what came was stored",
    "server_settings": "settings of the server",
    "halts": "stops in force; a person's own go with them",
    "house_secrets": "the server's own",
    "integrations": "the server's; a list of people keeps an id that nobody has, or it would open to everybody",
    "mcp_tools": "what an admin allowed of MCP servers, by whom",
    "learning_answers": "what admins said of tools, by whom",
    "refits": "models of choice, by whom",
    "setup_links": "links of an account go with it",
    "tool_cases": "what an admin added to tools, by whom",
    "tool_settings": "what an admin set of tools, by whom",
    "tool_words": "what an admin added to tools, by whom",
}


def test_every_table_is_a_persons_or_says_why_not() -> None:
    owned = {
        name
        for name, table in Table.metadata.tables.items()
        if any(key.target_fullname == "accounts.id" and key.ondelete == "CASCADE" for key in table.foreign_keys)
    }
    assert set(Table.metadata.tables) - owned == EVERYBODYS.keys() - {"setup_links"}


async def used(house: LivingHouse) -> str:
    """Bob does a bit of everything; the id of his conversation."""
    cortex, bob = house.cortex, house.member
    cid = await house.conversation(bob)
    await house.say(cid, "add truffles to my shopping list", user=bob)
    await house.say(cid, "remind me tomorrow at 9 to call the truffle man", user=bob)
    await cortex.memory.add(bob, "Bob likes truffles.")
    await cortex.jobs.add(bob, JobForm(name="Truffles", prompt="Look for truffles.", when="every day at 7"))
    await cortex.homes.home_of(bob.id).write("notes/truffles.md", "# Where they are")
    await cortex.runtime.db.repository(PreferencesRepository, bob.id).set("theme", "dark")
    return cid


async def rows_of(db: Database, user_id: str) -> dict[str, int]:
    """How many rows of each table hold this id in any column."""
    found: dict[str, int] = {}
    async with db.session_scope(reading=True) as session:
        for name, table in Table.metadata.tables.items():
            rows = (await session.execute(sa.select(table))).mappings().all()
            count = sum(user_id in json.dumps(dict(row), default=str) for row in rows)
            if count:
                found[name] = count
    return found


async def test_everything_of_a_person_goes_and_nothing_of_others(house: LivingHouse) -> None:
    cortex, bob, db = house.cortex, house.member, house.cortex.runtime.db
    theirs = await used(house)
    mine = await house.conversation()
    await house.say(mine, "add milk to my shopping list")
    before = await rows_of(db, bob.id)
    assert {"turns", "messages", "tasks", "reminders", "jobs", "facts", "preferences", "conversations"} <= before.keys()
    turns = [event.payload["turn"] for event in await house.events(theirs, "turn.end", user=bob)]
    assert {await cortex.runtime.runner.status(turn) for turn in turns} == {"done"}
    with pytest.raises(UserError, match="Type the name"):
        await cortex.deletions.delete(house.admin, bob.id, "Rob")
    assert await rows_of(db, bob.id) == before
    assert await cortex.deletions.delete(house.admin, bob.id, " BOB ") == bob.name
    assert (await rows_of(db, bob.id)).keys() <= {"audit"}
    assert not cortex.homes.home_of(bob.id).path.exists()
    assert {await cortex.runtime.runner.status(turn) for turn in turns} == {"unknown"}
    assert (await house.events(mine, "turn.end"))[-1].payload["state"] == "done"
    with pytest.raises(NotFound):
        await cortex.accounts.user(bob.id)
    actions = [row.action for row in (await cortex.audit_log.page(AuditFilter())).rows]
    assert actions[:2] == ["user.deleted", "user.deleting"]
    assert (await cortex.audit_log.verify()).at is None
    again = await cortex.accounts.add_user("Bob", "member", PASSWORD)
    assert again.user.id != bob.id


async def test_who_runs_something_is_stopped_first(house: LivingHouse) -> None:
    cortex, bob = house.cortex, house.member
    cid = await house.conversation(bob, role="orchestrator")
    turn = await cortex.chat.send_message(bob, cid, "hello there, tell me a lot about truffles")
    await cortex.deletions.delete(bob, bob.id, "bob")
    assert await cortex.runtime.runner.status(turn) == "unknown"
    assert (await rows_of(cortex.runtime.db, bob.id)).keys() <= {"audit"}


async def test_the_last_admin_stays_and_members_delete_themselves_alone(house: LivingHouse) -> None:
    deletions = house.cortex.deletions
    with pytest.raises(NotAllowed, match="last admin"):
        await deletions.delete(house.admin, house.admin.id, house.admin.name)
    with pytest.raises(NotAllowed, match="Only an admin"):
        await deletions.delete(house.member, house.admin.id, house.admin.name)
    assert (await house.cortex.accounts.user(house.admin.id)).is_admin


class Killed(Exception):
    """The process dies here."""


class Dying:
    """An engine, or the homes, that are not reached any more."""

    async def forget(self, _: object) -> None:
        raise Killed

    def home_of(self, _: str) -> Home:
        raise Killed


@pytest.mark.parametrize("part", ["runs", "homes"])
async def test_a_kill_on_the_way_is_made_good_at_the_next_start(tmp_path: Path, part: str) -> None:
    async with living_house(tmp_path / "home") as house:
        await used(house)
        bob = house.member
        dying: dict[str, Any] = {part: Dying()}
        with pytest.raises(Killed):
            await replace(house.cortex.deletions, **dying).delete(house.admin, bob.id, bob.name)
        assert not [one for one in await house.cortex.accounts.users() if one.id == bob.id]
        with pytest.raises(Conflict, match="being deleted"):
            await house.cortex.accounts.set_active(bob.name, True)
    async with Cortex.open(house_settings(tmp_path / "home", port=0)) as cortex:
        async with asyncio.timeout(PATIENCE_S):
            while [one for one in await cortex.accounts.all_accounts() if one.id == bob.id]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)  # nobody tells a test
        assert (await rows_of(cortex.runtime.db, bob.id)).keys() <= {"audit"}
        assert not cortex.homes.home_of(bob.id).path.exists()
