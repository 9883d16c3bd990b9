"""A database of a daemon that runs may be looked at by any other program: nothing is lost by it."""

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.databases import is_on_postgresql
from tests.living_house import living_house
from tests.patience import PATIENCE_S

LOOK = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('select * from sqlite_master'); db.close()"


@pytest.mark.skipif(is_on_postgresql(), reason="SQLite's locks and journal")
async def test_a_program_that_looks_at_a_database_takes_no_journal_away(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with living_house(home) as house:
        chat = await house.conversation()
        await house.say(chat, "hello")  # until here each pool has opened a second connection
        journals = [Path(f"{home / name}-wal") for name in ("cortex.db", "engine.db")]
        before = [one.stat().st_ino for one in journals]
        for name in ("cortex.db", "engine.db"):
            await asyncio.to_thread(_look, home / name)
        assert [one.stat().st_ino for one in journals] == before
        await house.say(chat, "hello again")
        with sqlite3.connect(home / "engine.db") as seen:  # a program that comes later sees what was done meanwhile
            assert seen.execute("SELECT count(*) FROM workflow_status").fetchone()[0] >= 2
        seen.close()


def _look(database: Path) -> None:
    subprocess.run([sys.executable, "-c", LOOK, database], check=True, timeout=PATIENCE_S)
