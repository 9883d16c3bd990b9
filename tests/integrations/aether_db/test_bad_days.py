"""A server away, frozen, restarted, or that takes the password no more: a sentence in time, and back by itself."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from cortex.base.errors import ToolFailed
from cortex.integrations.aether_db.database import ReadOnlyDatabase
from tests.mariadb import MariaServer
from tests.patience import PATIENCE_S
from tests.shop import access_to, answered, shop_server


@pytest.fixture(scope="module")
def own() -> Iterator[MariaServer]:
    """A server that these tests may stop."""
    with shop_server() as server:
        yield server


@pytest.fixture
async def database(own: MariaServer) -> AsyncIterator[ReadOnlyDatabase]:
    made = ReadOnlyDatabase(access_to(own, statement_s=PATIENCE_S, connect_s=PATIENCE_S))
    assert (await made.query("select 1", 1)).rows == (("1",),)
    yield made
    await made.close()


async def refused(database: ReadOnlyDatabase) -> str:
    with pytest.raises(ToolFailed) as caught:
        async with asyncio.timeout(PATIENCE_S):
            await database.query("select 1", 1)
    return caught.value.message


async def test_away_and_back(own: MariaServer, database: ReadOnlyDatabase) -> None:
    own.stop()
    assert "does not answer" in await refused(database)
    own.start()
    assert (await database.query("select 2", 1)).rows == (("2",),)


async def test_restarted_in_between_is_not_even_noticed(own: MariaServer, database: ReadOnlyDatabase) -> None:
    own.stop()
    own.start()
    assert (await database.query("select 3", 1)).rows == (("3",),)


async def test_frozen_and_back(own: MariaServer) -> None:
    database = ReadOnlyDatabase(access_to(own, statement_s=1.0, connect_s=1.0))
    await answered(database, "select 1")
    own.freeze()
    said = await refused(database)
    own.thaw()
    assert "in time" in said
    assert await answered(database, "select 4") == (("4",),)
    await database.close()


async def test_a_password_that_was_changed_and_put_back(own: MariaServer) -> None:
    own.run("ALTER USER reader@'127.0.0.1' IDENTIFIED BY 'another'")
    database = ReadOnlyDatabase(access_to(own))
    assert "password" in await refused(database)
    own.run("ALTER USER reader@'127.0.0.1' IDENTIFIED BY 'only-reading-ü€'")
    assert (await database.query("select 5", 1)).rows == (("5",),)
    await database.close()


async def test_a_right_that_was_taken_and_given_back(own: MariaServer, database: ReadOnlyDatabase) -> None:
    own.run("REVOKE SELECT ON club.* FROM reader@'127.0.0.1'")
    with pytest.raises(ToolFailed, match="account may not read that"):
        await database.query("select * from club.events", 5)
    own.run("GRANT SELECT ON club.* TO reader@'127.0.0.1'")
    assert len((await database.query("select * from club.events", 5)).rows) == 2


async def test_no_room_for_one_more_connection(own: MariaServer) -> None:
    own.run("ALTER USER reader@'127.0.0.1' WITH MAX_USER_CONNECTIONS 1")
    first, second = ReadOnlyDatabase(access_to(own)), ReadOnlyDatabase(access_to(own))
    await first.query("select 1", 1)
    assert "no free connection" in await refused(second)
    await first.close()
    own.run("ALTER USER reader@'127.0.0.1' WITH MAX_USER_CONNECTIONS 0")
    assert (await second.query("select 1", 1)).rows == (("1",),)
    await second.close()
