"""What a turn leaves in the database, and for how long: receipts are packed, stored once, thrown away if asked to."""

import json
from datetime import timedelta
from pathlib import Path

from sqlalchemy import text

from cortex.engine.dbos import Engine
from cortex.services.health.housekeeping import Housekeeping
from cortex.storage.db import Database
from tests.living_house import LivingHouse, living_house
from tests.still_clock import StillClock

TURN_BYTES_MOST = 20_000
TURNS = 5
MILK = "add milk to my shopping list"
TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'message_index%'"


async def stored_bytes(db: Database) -> int:
    """The values of every table, as text or bytes."""
    async with db.connection() as connection:
        found = 0
        for (table,) in (await connection.execute(text(TABLES))).all():
            names = (await connection.execute(text("SELECT name FROM pragma_table_info(:it)"), {"it": table})).scalars()
            sizes = " + ".join(f'coalesce(sum(length(CAST("{one}" AS BLOB))), 0)' for one in names)
            found += (await connection.execute(text(f'SELECT {sizes} FROM "{table}"'))).scalar_one()  # noqa: S608
        return found


async def test_a_turn_with_a_tool_leaves_little_behind(house: LivingHouse) -> None:
    db = house.cortex.runtime.db
    if db.is_postgresql:
        return  # the same rows; how long a value is, is asked of SQLite
    await house.say(await house.conversation(), MILK)
    before = await stored_bytes(db)
    for number in range(TURNS):
        await house.say(await house.conversation(), f"add milk number {number} to my shopping list")
    assert (await stored_bytes(db) - before) / TURNS <= TURN_BYTES_MOST


async def test_a_receipt_of_before_is_read_as_it_is(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.say(cid, MILK)
    whole = await house.receipts(cid)
    async with house.cortex.runtime.db.connection() as connection:
        plain = text("UPDATE plans SET receipt = :it WHERE round = 1")
        await connection.execute(plain, {"it": json.dumps(whole[0])})
        await connection.commit()
    assert await house.receipts(cid) == whole
    assert whole[0]["sent"]


async def test_receipts_go_when_the_setting_says_so(tmp_path: Path) -> None:
    clock = StillClock()
    async with living_house(tmp_path / "home", clock=clock, plans_kept_days=30) as house:
        old = await talked(house)
        clock.at += timedelta(days=29)
        new = await talked(house)
        keeping = housekeeping(house)
        await keeping.go_round()
        assert await house.receipts(old)
        clock.at += timedelta(days=2)
        await keeping.go_round()
        assert await house.receipts(old) == []
        assert await house.receipts(new)
        assert (await house.events(old, "turn.end"))[0].payload["tools_sent"], "what was said stays"


def housekeeping(house: LivingHouse) -> Housekeeping:
    engine = house.cortex.runtime.runner
    assert isinstance(engine, Engine)
    return Housekeeping(
        runtime=house.cortex.runtime,
        accounts=house.cortex.accounts,
        audit_log=house.cortex.audit_log,
        prune=engine.prune,
    )


async def talked(house: LivingHouse) -> str:
    cid = await house.conversation()
    await house.say(cid, MILK)
    return cid
