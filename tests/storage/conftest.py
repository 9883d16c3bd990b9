"""Every storage test runs on SQLite and on PostgreSQL; in a run on PostgreSQL, on that alone."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cortex.base.messages import Message, user
from cortex.storage.accounts import AccountsRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Database
from cortex.storage.messages import MessagesRepository
from cortex.storage.turns import NewTurn, TurnsRepository
from tests.databases import PostgresTemplate, SqliteTemplate
from tests.plain_world import PLAIN_TURN
from tests.still_clock import StillClock

SQLITE = pytest.param("sqlite", marks=pytest.mark.names_its_database("this is its run on SQLite"))
KINDS = (SQLITE, "postgresql")


@pytest.fixture(params=KINDS)
async def db(request: pytest.FixtureRequest, tmp_path: Path, clock: StillClock) -> AsyncIterator[Database]:
    if request.param == "sqlite":
        sqlite: SqliteTemplate = request.getfixturevalue("sqlite_template")
        database = Database(sqlite.fresh(tmp_path), clock=clock)
        yield database
        await database.close()
    else:
        postgres: PostgresTemplate = request.getfixturevalue("postgres_template")
        with postgres.lent() as url:
            database = Database(url, clock=clock)
            yield database
            await database.close()


@pytest.fixture
async def ann(db: Database) -> str:
    return (await db.repository(AccountsRepository).add("ann", "Ann", "admin", None, "UTC")).id


@pytest.fixture
async def ben(db: Database) -> str:
    return (await db.repository(AccountsRepository).add("ben", "Ben", "member", None, "UTC")).id


class Written:
    """A conversation with turns and messages, written for a test."""

    def __init__(self, db: Database, owner_id: str, conversation_id: str) -> None:
        self.db = db
        self.owner_id = owner_id
        self.id = conversation_id

    async def turn(self, id: str, *messages: Message) -> str:
        await self.db.repository(TurnsRepository, self.owner_id).create(NewTurn(id, self.id, "hello", **PLAIN_TURN))
        for number, message in enumerate(messages or (user("hello"),)):
            await self.db.repository(MessagesRepository, self.owner_id).add(id, number, message, False)
        return id


@pytest.fixture
async def talk(db: Database, ann: str) -> Written:
    conversation = await db.repository(ConversationsRepository, ann).create(
        "orchestrator", "auto", "Garden", is_title_tainted=False
    )
    return Written(db, ann, conversation.id)
