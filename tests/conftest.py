"""The network is off for every test: only this machine's own addresses answer.

`--database postgresql` puts every home that a test opens on a private PostgreSQL (tests/databases.py).
"""

import gc
import ipaddress
import os
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from cortex.storage.db import Database
from tests import cheap_passwords, children, statements, watchdog
from tests.databases import (
    FILE_TEMPLATE,
    TEMPLATE,
    PostgresTemplate,
    SqliteTemplate,
    database_of,
    drop_homes,
    is_on_postgresql,
)
from tests.mariadb import MariaServer
from tests.postgres import private_postgres
from tests.scripted_server import ScriptedServer
from tests.shop import shop_server
from tests.still_clock import StillClock

gc.disable()  # to look through what is collected again and again takes a quarter of collecting it (2026-11-27)

MEMORY = Path("/dev/shm")  # noqa: S108 - pytest makes folders of its own in it, for this user alone
ROOM_BYTES = 4 << 30
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

# Properties have no clock: a slow machine is no fault of what they show. `make test` tries a tenth of the cases.
CLOCKLESS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
settings.register_profile("whole", CLOCKLESS)
settings.register_profile("tenth", CLOCKLESS, max_examples=CLOCKLESS.max_examples // 10)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--database", choices=("sqlite", "postgresql"), default="sqlite", help="where homes keep rows")


def pytest_configure(config: pytest.Config) -> None:
    """Homes in memory, one cache of statements, a tenth of each property's cases where the whole is not asked for."""
    _keep_homes_in_memory()
    if config.getoption("--database") == "postgresql":
        os.environ[TEMPLATE] = ""  # marks of tests ask for it as they are read, ahead of the server's start
    statements.share()
    cheap_passwords.make_cheap()
    settings.load_profile("tenth" if config.option.markexpr == "not full" else "whole")


def _keep_homes_in_memory() -> None:
    """Where there is room, tests' folders wait for no disk: what is killed in tests is Cortex, never the machine."""
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ROOM_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The files of tests that wait come between those that work, and the last ones early enough to end with the rest.

    On PostgreSQL, what names its database itself is not repeated; it says why.
    """
    files = list(dict.fromkeys(item.path for item in items))
    waiting = [path for path in files if path.parent.name == "e2e"]
    working = [path for path in files if path.parent.name != "e2e"]
    places = {path: at / len(waiting) * 0.85 for at, path in enumerate(waiting)}
    places |= {path: at / len(working) for at, path in enumerate(working)}
    items.sort(key=lambda item: places[item.path])
    if config.getoption("--database") == "postgresql":
        for item in items:
            if own := item.get_closest_marker("names_its_database"):
                item.add_marker(pytest.mark.skip(reason=f"names its database itself: {own.args[0]}"))


def pytest_collection_finish() -> None:
    """What ten thousand tests were collected into stays: it is not looked through for garbage."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _chosen_database(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.config.getoption("--database") == "postgresql":
        os.environ[TEMPLATE] = request.getfixturevalue("postgres_template").url
    else:
        os.environ[FILE_TEMPLATE] = str(request.getfixturevalue("sqlite_template").path)
    yield
    for name in (TEMPLATE, FILE_TEMPLATE):
        os.environ.pop(name, None)


@pytest.fixture(autouse=True)
def _room_again(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test's databases go with it: thousands of them would fill the disk."""
    yield
    if is_on_postgresql() and (folder := request.node.funcargs.get("tmp_path")):
        drop_homes(folder)


@pytest.fixture(autouse=True)
def _no_held_loop() -> Iterator[None]:
    """A daemon that ran meanwhile, and held its event loop in one callback, fails the test."""
    yield
    held = watchdog.reports(children.held())
    assert not held, "the event loop was held:\n" + "\n\n".join(held)


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


@pytest.fixture(scope="session")
def shop() -> Iterator[MariaServer]:
    """One MariaDB with a small shop for all the tests of a run: they leave it as they found it."""
    with shop_server() as server:
        yield server


@pytest.fixture
def clock() -> StillClock:
    """The time, standing still."""
    return StillClock()


@pytest.fixture
async def db(request: pytest.FixtureRequest, tmp_path: Path, clock: StillClock) -> AsyncIterator[Database]:
    """A fresh migrated database of this run's kind (tests/storage runs on both kinds)."""
    fresh = database_of(tmp_path) or request.getfixturevalue("sqlite_template").fresh(tmp_path)
    database = Database(fresh, clock=clock)
    yield database
    await database.close()
