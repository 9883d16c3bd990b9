"""A connection that takes one trip a statement: what SQLAlchemy asks of it, and where a reader's transaction begins."""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cortex.storage.sqlite_connection import OneTripConnection, connection


@pytest.fixture
async def writer(tmp_path: Path) -> AsyncIterator[OneTripConnection]:
    made = connection(str(tmp_path / "one.db"), is_reading=False, isolation_level=None)
    async with made:
        for statement in ("PRAGMA journal_mode=WAL", "CREATE TABLE word (id INTEGER PRIMARY KEY, text TEXT UNIQUE)"):
            await made.cursor().execute(statement)
        yield made


@pytest.fixture
async def reader(writer: OneTripConnection, tmp_path: Path) -> AsyncIterator[OneTripConnection]:
    made = connection(str(tmp_path / "one.db"), is_reading=True, isolation_level=None)
    async with made:
        yield made


async def words(of: OneTripConnection) -> list[str]:
    cursor = await of.cursor().execute("SELECT text FROM word ORDER BY id")
    return [text for (text,) in await cursor.fetchall()]


async def test_a_statement_brings_its_rows_and_how_many_it_changed(writer: OneTripConnection) -> None:
    cursor = writer.cursor()
    await cursor.executemany("INSERT INTO word (text) VALUES (?)", [("one",), ("two",)])
    assert (cursor.rowcount, cursor.description) == (2, None)
    await cursor.execute("UPDATE word SET text = upper(text) WHERE text = ? RETURNING id", ("two",))
    assert (cursor.rowcount, await cursor.fetchall()) == (1, [(2,)])
    assert cursor.description is not None
    assert cursor.description[0][0] == "id"
    await cursor.execute("INSERT INTO word (text) VALUES (?)", ("three",))
    assert (cursor.lastrowid, await cursor.fetchall()) == (3, ())


async def test_a_readers_transaction_sees_one_moment_until_it_ends(
    writer: OneTripConnection, reader: OneTripConnection
) -> None:
    reader.begin_with_next()
    await writer.cursor().execute("INSERT INTO word (text) VALUES ('first')")  # it has read nothing yet
    assert await words(reader) == ["first"]
    await writer.cursor().execute("INSERT INTO word (text) VALUES ('second')")
    assert await words(reader) == ["first"]
    await reader.commit()
    assert await words(reader) == ["first", "second"]


async def test_a_transaction_that_read_nothing_leaves_nothing_behind(
    writer: OneTripConnection, reader: OneTripConnection
) -> None:
    reader.begin_with_next()
    await reader.rollback()
    assert await words(reader) == []
    await writer.cursor().execute("INSERT INTO word (text) VALUES ('later')")
    assert await words(reader) == ["later"]


async def test_a_statement_that_fails_holds_nothing(writer: OneTripConnection, tmp_path: Path) -> None:
    insert = "INSERT INTO word (text) VALUES ('twice')"
    await writer.cursor().execute(insert)
    with pytest.raises(sqlite3.IntegrityError):
        await writer.cursor().execute(insert)
    with sqlite3.connect(tmp_path / "one.db") as other:
        other.execute("PRAGMA busy_timeout=0")  # nobody has to wait for it
        other.execute("DELETE FROM word")
    other.close()
    assert await words(writer) == []


async def test_what_was_written_since_a_commit_is_rolled_back(writer: OneTripConnection) -> None:
    for text, end in (("kept", writer.commit), ("gone", writer.rollback), ("kept too", writer.commit)):
        await writer.cursor().execute("BEGIN IMMEDIATE")
        await writer.cursor().execute("INSERT INTO word (text) VALUES (?)", (text,))
        await end()
        await writer.rollback()  # as the pool does behind each end
    assert await words(writer) == ["kept", "kept too"]
