"""The network is off for every test: only this machine's own addresses answer."""

import ipaddress
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from cortex.storage.db import Database
from tests.databases import PostgresTemplate, SqliteTemplate
from tests.postgres import private_postgres
from tests.scripted_server import ScriptedServer
from tests.still_clock import StillClock

LOCAL_NAMES = {None, "", "localhost", b"localhost", "localhost.localdomain"}


def _is_local(host: object) -> bool:
    if host in LOCAL_NAMES:
        return True
    text = host.decode() if isinstance(host, bytes) else str(host)
    try:
        address = ipaddress.ip_address(text.split("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _refuse_the_network(event: str, details: tuple[object, ...]) -> None:
    if event == "socket.connect":
        address = details[1]
        if isinstance(address, tuple) and not _is_local(address[0]):
            raise ConnectionRefusedError(f"tests have no network: {address[0]}")
    if event == "socket.getaddrinfo" and not _is_local(details[0]):
        raise ConnectionRefusedError(f"tests have no network: {details[0]!r}")


sys.addaudithook(_refuse_the_network)


@pytest.fixture
def scripted(request: pytest.FixtureRequest) -> Iterator[ScriptedServer]:
    """The scripted model server. Afterwards: nothing was wrong on the wire, no cached prefix was left by accident."""
    with ScriptedServer() as server:
        yield server
        assert server.problems == []
        if request.node.get_closest_marker("moves_cache_prefix") is None:
            assert server.cache_breaks() == []


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> SqliteTemplate:
    """A migrated SQLite file to copy."""
    return SqliteTemplate(tmp_path_factory.mktemp("sqlite"))


@pytest.fixture(scope="session")
def postgres_template() -> Iterator[PostgresTemplate]:
    """A migrated database on a private PostgreSQL to copy; skips, loudly, where there is none."""
    with private_postgres() as url:
        yield PostgresTemplate(url)


@pytest.fixture
def clock() -> StillClock:
    """The time, standing still."""
    return StillClock()


@pytest.fixture
async def db(tmp_path: Path, sqlite_template: SqliteTemplate, clock: StillClock) -> AsyncIterator[Database]:
    """A fresh migrated database (SQLite; tests/storage runs on PostgreSQL too)."""
    database = Database(sqlite_template.fresh(tmp_path), clock=clock)
    yield database
    await database.close()
