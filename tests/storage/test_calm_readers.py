"""Connections that nobody needs are closed, and come again when they are needed."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.pool.base import _ConnectionRecord
from sqlalchemy.util import greenlet_spawn

from cortex.storage.calm_readers import KEPT, CalmReaders, keep_few
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


async def test_a_place_is_free_before_the_connections_are_closed(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    await _read_at_once(db, READERS)
    pool, free = _pool(db), list[int]()
    close = _ConnectionRecord.close

    def counted(entry: _ConnectionRecord) -> None:
        free.append(READERS - pool.checkedin() - pool.checkedout())
        close(entry)

    monkeypatch.setattr(_ConnectionRecord, "close", counted)
    await greenlet_spawn(pool.end_spare)
    await greenlet_spawn(pool.end_spare)
    assert free == [READERS - KEPT] * (READERS - KEPT)
    assert pool.overflow() == KEPT - pool.size()


async def test_an_end_closes_all_of_them_first(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    await _read_at_once(db, READERS)
    pool, begun = _pool(db), asyncio.Event()
    await greenlet_spawn(pool.end_spare)
    monkeypatch.setattr("cortex.storage.calm_readers.LOOK_S", 0)
    close = _ConnectionRecord.close

    def told(entry: _ConnectionRecord) -> None:
        begun.set()
        close(entry)

    monkeypatch.setattr(_ConnectionRecord, "close", told)
    keeping = asyncio.create_task(keep_few(db.read))
    await begun.wait()
    keeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await keeping
    assert (pool.checkedin(), pool.checkedout()) == (KEPT, 0)


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
