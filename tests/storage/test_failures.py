"""Errors that pass by themselves, raised by the databases themselves."""

import asyncio
import sqlite3
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import SQLAlchemyError

from cortex.base import postgresql
from cortex.base.errors import DatabaseUnavailable
from cortex.storage import db as db_module
from cortex.storage.accounts import AccountsRepository
from cortex.storage.db import Database
from tests.databases import PostgresTemplate, SqliteTemplate
from tests.postgres import PrivateServer, private_server


async def test_a_full_disk_passes_by_itself_and_nothing_is_kept(
    sqlite_template: SqliteTemplate, tmp_path: Path
) -> None:
    db = Database(sqlite_template.fresh(tmp_path))

    @event.listens_for(db.write.sync_engine, "checkout")
    def no_growth(connection: object, *_: object) -> None:
        cursor = connection.cursor()  # type: ignore[attr-defined]  # the driver's own
        cursor.execute("PRAGMA max_page_count=1")  # as many as there are
        cursor.close()

    accounts = db.repository(AccountsRepository)
    with pytest.raises(DatabaseUnavailable, match="the disk is full"):
        await accounts.add("ann", "A" * 2_000_000, "admin", None, "UTC")
    assert await accounts.list() == []
    await db.close()


async def test_a_lock_of_another_program_passes_by_itself(sqlite_template: SqliteTemplate, tmp_path: Path) -> None:
    url = sqlite_template.fresh(tmp_path)
    db = Database(url, write_wait_s=0.5)

    @event.listens_for(db.write.sync_engine, "checkout")
    def at_once(connection: object, *_: object) -> None:
        cursor = connection.cursor()  # type: ignore[attr-defined]  # the driver's own
        cursor.execute("PRAGMA busy_timeout=1")
        cursor.close()

    other = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseUnavailable, match="locked by another program"):
        await db.repository(AccountsRepository).add("ann", "Ann", "admin", None, "UTC")
    other.execute("ROLLBACK")
    other.close()
    await db.repository(AccountsRepository).add("ann", "Ann", "admin", None, "UTC")
    await db.close()


async def cut(db: Database, server: PrivateServer) -> None:
    """Stop the server in the middle of a transaction."""
    async with db.session_scope() as session:
        await session.execute(text("SELECT 1"))
        server.stop()
        await session.execute(text("SELECT 1"))


async def test_a_postgresql_that_is_stopped_is_away_and_comes_back() -> None:
    with private_server() as server:
        db = Database(PostgresTemplate(server.url).fresh())
        accounts = db.repository(AccountsRepository)
        await accounts.add("ann", "Ann", "admin", None, "UTC")
        with pytest.raises(DatabaseUnavailable, match="it stops or starts"):
            await cut(db, server)
        with pytest.raises(DatabaseUnavailable, match="connection is lost"):
            await accounts.list()
        server.start()
        assert [one.name for one in await accounts.list()] == ["Ann"]
        await db.close()


async def test_a_query_that_takes_too_long_passes_and_is_called_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(db_module, "STATEMENT_TIMEOUT_S", 1)
    with private_server() as server:
        db = Database(PostgresTemplate(server.url).fresh())
        with pytest.raises(DatabaseUnavailable, match="it took too long"):
            async with db.session_scope() as session:
                await session.execute(text("SELECT pg_sleep(60)"))
        await db.close()


async def test_a_postgresql_that_is_frozen_is_away_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql, "ANSWER_S", 0.5)
    with private_server() as server:
        db = Database(PostgresTemplate(server.url).fresh())
        accounts = db.repository(AccountsRepository)
        await accounts.add("ann", "Ann", "admin", None, "UTC")
        server.freeze()
        with pytest.raises(DatabaseUnavailable, match="connection is lost"):
            await accounts.list()
        server.thaw()
        assert [one.name for one in await accounts.list()] == ["Ann"]
        await db.close()


async def test_a_wrong_statement_stays_an_error(db: Database) -> None:
    async with db.session_scope() as session:
        with pytest.raises(SQLAlchemyError):
            await session.execute(text("SELECT nothing FROM nowhere"))


async def test_a_cancel_stays_one_whatever_is_said_of_the_connection_that_it_broke(db: Database, ann: str) -> None:
    is_open = asyncio.Event()

    async def body() -> None:
        async with db.session_scope() as session:
            await session.execute(text("SELECT 1"))
            is_open.set()
            try:
                await asyncio.Event().wait()
            finally:  # as when a statement is cut
                await (await session.connection()).invalidate()
                await session.execute(text("SELECT 1"))

    cut = asyncio.create_task(body())
    await is_open.wait()
    cut.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cut


async def test_what_is_read_in_a_view_after_a_read_that_was_given_up_is_read_anew(db: Database, ann: str) -> None:
    reader = asyncio.current_task()
    assert reader is not None
    async with db.one_view():
        with suppress(asyncio.CancelledError):
            async with db.session_scope(reading=True) as session:
                await (await session.connection()).invalidate()  # as when a statement is cut
                reader.cancel()
                await asyncio.Event().wait()
        reader.uncancel()
        assert [one.id for one in await db.repository(AccountsRepository).list()] == [ann]
