import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from cortex.app import lay_line
from cortex.engine.hub import LocalHub
from cortex.engine.relay import relayed
from cortex.storage.commits import Commits
from cortex.storage.db import Database
from cortex.storage.halts import OUTWARD, HaltsRepository
from cortex.storage.tasks import TasksRepository
from tests.patience import PATIENCE_S
from tests.postgres import private_postgres

POLL_S = 0.05


async def test_a_commit_of_any_process_is_new_once(db: Database, ann: str) -> None:
    elsewhere = Database(db.url.render_as_string(hide_password=False))
    assert await db.commits.are_new()
    assert await db.commits.are_new() == db.is_postgresql
    await db.repository(TasksRepository, ann).list()
    assert await db.commits.are_new() == db.is_postgresql
    await elsewhere.repository(TasksRepository, ann).create(None, "Water the ferns", is_tainted=False)
    assert await db.commits.are_new()
    assert await db.commits.are_new() == db.is_postgresql
    await elsewhere.close()


async def test_where_it_cannot_be_told_everything_counts_as_new(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    commits = Commits(tmp_path / "gone" / "cortex.db")
    assert await commits.are_new()
    assert await commits.are_new()
    commits.close()
    assert "change counter" in caplog.text


async def test_a_look_that_nobody_waits_for_any_more_ends_before_its_file_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks, may_answer, is_closed = threading.Event(), threading.Event(), threading.Event()

    class Watched(sqlite3.Connection):
        def execute(self, statement: str, parameters: object = ()) -> sqlite3.Cursor:
            asks.set()
            assert may_answer.wait(PATIENCE_S)
            assert not is_closed.is_set()
            return super().execute(statement)

        def close(self) -> None:
            is_closed.set()
            super().close()

    path, connect = tmp_path / "cortex.db", sqlite3.connect
    connect(path).close()
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **how: connect(*given, factory=Watched, **how))
    commits = Commits(path)
    look = asyncio.create_task(commits.are_new())
    assert await asyncio.to_thread(asks.wait, PATIENCE_S)
    look.cancel()
    commits.close()
    assert not is_closed.is_set()
    may_answer.set()
    assert await asyncio.to_thread(is_closed.wait, PATIENCE_S)


@pytest.mark.names_its_database("two processes on a PostgreSQL of their own")
async def test_on_postgresql_what_others_write_is_heard_and_what_is_read_is_not() -> None:
    """A worker reads nothing to learn that nothing was written; what reads alone, or changes no row, says nothing."""
    with private_postgres() as url:
        async with relayed(url) as line:
            here, command = Database(url), Database(url)
            try:
                await here.migrate()
                lay_line(here, line)
                lay_line(command, LocalHub())
                await _hears_another(here, command)
            finally:
                await here.close()
                await command.close()


async def _hears_another(here: Database, command: Database) -> None:
    commits, written = here.commits.another(), here.commits.written
    assert written is not None
    async with asyncio.timeout(PATIENCE_S):
        while await commits.are_new():  # noqa: ASYNC110 - the line says once that it stands
            await asyncio.sleep(POLL_S)
        before = written.count
        halts = command.repository(HaltsRepository)
        await halts.list()
        await halts.lift("nobody")
        await halts.add(OUTWARD, "", "somebody")
        while not await commits.are_new():  # noqa: ASYNC110 - told by a counter
            await asyncio.sleep(POLL_S)
    assert written.count == before + 1
    assert not await commits.are_new()
    await here.repository(HaltsRepository).lift(OUTWARD)
    assert await commits.are_new(), "its own commits count too, at once"
