"""Connections that nobody needs are closed, and come again when they are needed."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.util import greenlet_spawn

from cortex.storage.calm_readers import KEPT, CalmReaders
from cortex.storage.db import READERS, Database


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    """A file: only files have readers of their own."""
    found = Database(f"sqlite:///{tmp_path / 'a.db'}")
    yield found
    await found.close()


def _pool(db: Database) -> CalmReaders:
    pool = db.read.pool
    assert isinstance(pool, CalmReaders)
    return pool


async def _read_at_once(db: Database, times: int) -> None:
    together = asyncio.Barrier(times)

    async def read() -> None:
        async with db.session_scope(reading=True) as session:
            await session.execute(text("SELECT 1"))
            await together.wait()

    async with asyncio.TaskGroup() as group:
        for _ in range(times):
            group.create_task(read())


async def test_what_a_whole_time_did_not_need_is_closed_and_comes_again(db: Database) -> None:
    await _read_at_once(db, READERS)
    pool = _pool(db)
    await greenlet_spawn(pool.end_spare)
    assert pool.checkedin() == READERS, "all were needed since the last look"
    await _read_at_once(db, 2)
    await greenlet_spawn(pool.end_spare)
    assert pool.checkedin() == 2
    await greenlet_spawn(pool.end_spare)
    assert pool.checkedin() == KEPT
    await _read_at_once(db, READERS)
    assert (pool.checkedin(), pool.checkedout()) == (READERS, 0)


async def test_a_connection_that_reads_meanwhile_is_left_alone(db: Database) -> None:
    await _read_at_once(db, READERS)
    pool = _pool(db)
    async with db.session_scope(reading=True) as session:
        await session.execute(text("SELECT 1"))
        await greenlet_spawn(pool.end_spare)
        await greenlet_spawn(pool.end_spare)
        assert (pool.checkedin(), pool.checkedout()) == (KEPT, 1)
        assert (await session.execute(text("SELECT 2"))).scalar() == 2
    await _read_at_once(db, READERS)
    assert pool.checkedin() == READERS
