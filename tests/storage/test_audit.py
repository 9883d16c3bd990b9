import asyncio

import pytest
from msgspec.structs import replace
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from cortex.storage.audit import AuditRepository, ChainVerdict
from cortex.storage.db import Database


async def lift_the_guard(db: Database) -> None:
    """What somebody with the file or the database's own rights can do."""
    async with db.session_scope() as session:
        if db.is_postgresql:
            await session.execute(text("ALTER TABLE audit DISABLE TRIGGER ALL"))
        else:
            await session.execute(text("DROP TRIGGER audit_no_update"))
            await session.execute(text("DROP TRIGGER audit_no_delete"))


async def run(db: Database, statement: str) -> None:
    async with db.session_scope() as session:
        await session.execute(text(statement))


async def test_rows_written_at_once_make_one_chain(db: Database) -> None:
    audit = db.repository(AuditRepository)
    await asyncio.gather(*(audit.add("ann", "login", f"browser {n}", {"n": n, "ü": None}) for n in range(20)))
    assert await audit.verify() == ChainVerdict(entries=20, broken_at=None)
    newest = await audit.list(limit=3)
    assert [entry.number for entry in newest] == [20, 19, 18]
    assert [entry.number for entry in await audit.list(limit=2, before=18)] == [17, 16]
    assert len(await audit.list(subject="browser 7")) == 1


async def test_odd_text_does_not_break_the_chain(db: Database) -> None:
    await db.repository(AuditRepository).add("a\x00\ud800", "ü", "日本", {"\x00": "\ud800"})
    assert await db.repository(AuditRepository).verify() == ChainVerdict(entries=1, broken_at=None)


@pytest.mark.parametrize("statement", ["UPDATE audit SET actor = 'x'", "DELETE FROM audit"])
async def test_the_database_refuses_to_change_history(db: Database, statement: str) -> None:
    await db.repository(AuditRepository).add("ann", "login", "a")
    with pytest.raises(DBAPIError, match="never changed or deleted"):
        await run(db, statement)
    assert await db.repository(AuditRepository).verify() == ChainVerdict(entries=1, broken_at=None)


@pytest.mark.parametrize(
    ("statement", "verdict"),
    [
        ("UPDATE audit SET actor = 'x' WHERE number = 3", ChainVerdict(entries=2, broken_at=3)),
        ("UPDATE audit SET detail = '{}' WHERE number = 5", ChainVerdict(entries=4, broken_at=5)),
        ("UPDATE audit SET hash = previous_hash WHERE number = 1", ChainVerdict(entries=0, broken_at=1)),
        ("DELETE FROM audit WHERE number = 2", ChainVerdict(entries=1, broken_at=3)),
        ("DELETE FROM audit WHERE number = 1", ChainVerdict(entries=0, broken_at=2)),
        ("UPDATE audit SET number = 9 WHERE number = 4", ChainVerdict(entries=3, broken_at=5)),
    ],
    ids=["actor", "detail", "hash", "deleted", "first deleted", "moved"],
)
async def test_a_change_behind_the_guard_is_found(db: Database, statement: str, verdict: ChainVerdict) -> None:
    for number in range(5):
        await db.repository(AuditRepository).add("ann", "login", f"browser {number}", {"n": number})
    await lift_the_guard(db)
    await run(db, statement)
    found = await db.repository(AuditRepository).verify()
    assert replace(found, why="") == verdict
    assert found.why
