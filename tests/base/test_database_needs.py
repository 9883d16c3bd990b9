"""On which databases Cortex starts: an old SQLite, and a pooler that hands out sessions by the transaction."""

import asyncio
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url

from cortex.app import Cortex
from cortex.base import database_needs
from cortex.base.errors import ConfigError
from cortex.base.settings import Settings
from cortex.commands.doctor import turn_finding
from cortex.engine.database import KNOWS_SUBSEC, open_database
from tests.databases import house_settings
from tests.front_servers import FrontServer
from tests.postgres import private_postgres


def test_a_sqlite_that_is_too_old_is_named_with_what_is_needed() -> None:
    with pytest.raises(ConfigError, match=r"SQLite 3\.36\.0; Cortex needs 3\.37 or newer"):
        database_needs.refuse_sqlite((3, 36, 0))
    database_needs.refuse_sqlite((3, 37, 0))


def test_the_engine_has_milliseconds_on_every_sqlite_as_dbos_asks_for_them(tmp_path: Path) -> None:
    engine = open_database(f"sqlite:///{tmp_path / 'engine.db'}")
    try:
        with engine.connect() as connection:
            asked = sa.text("SELECT unixepoch('subsec') * 1000 - strftime('%s', 'now') * 1000, unixepoch('subsec')")
            behind_ms, seconds = connection.execute(asked).one()
    finally:
        engine.dispose()
    assert 0 <= behind_ms < 1000
    assert isinstance(seconds, float)


@pytest.mark.skipif(sqlite3.sqlite_version_info >= KNOWS_SUBSEC, reason="needs a SQLite before 3.42")
def test_a_table_that_dbos_makes_on_python_3_12_takes_a_row_on_an_old_sqlite(tmp_path: Path) -> None:
    engine = open_database(f"sqlite:///{tmp_path / 'engine.db'}")
    try:
        with engine.begin() as connection:
            connection.execute(sa.text("CREATE TABLE runs (at INTEGER NOT NULL DEFAULT (unixepoch('subsec') * 1000))"))
            connection.execute(sa.text("INSERT INTO runs DEFAULT VALUES"))
            assert connection.execute(sa.text("SELECT at FROM runs")).scalar_one() > 1_700_000_000_000
    finally:
        engine.dispose()


def test_a_message_is_answered_in_a_home_of_the_doctors_own(tmp_path: Path) -> None:
    found = asyncio.run(turn_finding(house_settings(tmp_path, port=0)))
    assert (found.state, "answered" in found.text) == ("good", True)
    assert not (tmp_path / "engine.db").exists()


@pytest.fixture(scope="module")
def server() -> Iterator[URL]:
    with private_postgres() as url:
        yield make_url(url)


@pytest.mark.parametrize("mode", ["transaction", "statement", "session"])
def test_cortex_starts_behind_pgbouncer_only_where_sessions_last(tmp_path: Path, server: URL, mode: str) -> None:
    pooler = FrontServer()
    settings = pooler.folder / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\npostgres = host={server.query['host']} user={server.username} dbname={server.database}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {pooler.port}\nunix_socket_dir =\nauth_type = any\n"
        f"pool_mode = {mode}\nignore_startup_parameters = options\n"
    )
    # Not as root, which it refuses to be, but as whom the server's own folder lets in.
    as_whom = ["-u", Path(str(server.query["host"])).owner()] if os.getuid() == 0 else []
    with pooler.running("pgbouncer", "-q", *as_whom, str(settings)):
        through = f"postgresql://{server.username}@127.0.0.1:{pooler.port}/postgres"
        refused = asyncio.run(_refusal(house_settings(tmp_path, port=0, database_url=through)))
    assert ("pgbouncer" in refused or "pooling mode" in refused) == (mode != "session")
    assert (refused == "") == (mode == "session")


async def _refusal(settings: Settings) -> str:
    try:
        async with Cortex.open(settings):
            return ""
    except ConfigError as error:
        return error.message
