"""What the engine lets go of: steps of runs that ended a while ago, and room in its file."""

import os
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from cortex.engine.database import FREE_MOST_PAGES, open_database
from cortex.engine.dbos import Body, Engine
from cortex.engine.pruning import STEPS_KEPT, StepSweep
from cortex.ports.steps import step
from tests.databases import engine_of
from tests.engine.opening import Opener, is_state, until

AT_ONCE = timedelta(seconds=-1)


class Work:
    @step("Work.note")
    async def note(self, text: str) -> str:
        return text


def prepare(engine: Engine) -> dict[str, Body]:
    work = Work()

    async def short(run_id: str, argument: dict[str, Any]) -> None:
        await work.note("one")
        await work.note("two")

    async def waiting(run_id: str, argument: dict[str, Any]) -> None:
        await work.note("three")
        await engine.wait_for_signal("answer", 60)

    return {"short": short, "waiting": waiting}


async def test_the_steps_of_a_run_go_once_nobody_may_replay_it(opened: Opener, tmp_path: Path) -> None:
    def kept() -> list[tuple[str, int]]:
        name = "dbos.operation_outputs" if database.dialect.name == "postgresql" else "operation_outputs"
        with database.connect() as rows:
            each = sa.text(f"SELECT workflow_uuid, count(*) FROM {name} GROUP BY 1 ORDER BY 1")  # noqa: S608 - ours
            return [(run_id, number) for run_id, number in rows.execute(each)]

    async with opened(prepare) as engine:
        database = open_database(engine_of(tmp_path))
        await engine.start("old", "short", {})
        await until(lambda: is_state(engine, "old", "done"))
        await engine.start("open", "waiting", {})

        async def waits() -> bool:
            return "open" in dict(kept())

        await until(waits)
        await StepSweep(database).look()
        assert ("old", 2) in kept(), f"it ended less than {STEPS_KEPT} ago"
        sweep = StepSweep(database, kept=AT_ONCE)
        await sweep.look()
        assert [run_id for run_id, _ in kept()] == ["open"]
        await engine.start("young", "short", {})
        await until(lambda: is_state(engine, "young", "done"))
        await sweep.look()
        assert "young" not in dict(kept()), "the next look finds those that ended since"
        assert await engine.status("old") == "done"
        await engine.start("old", "short", {})
        assert "old" not in dict(kept()), "a run that has ended is not begun again"
        assert await engine.unfinished() == ["open"]
        database.dispose()


@pytest.mark.names_its_database("the file of SQLite")
async def test_a_file_that_is_mostly_free_is_smaller_after_a_start(opened: Opener, tmp_path: Path) -> None:
    async with opened(prepare):
        pass
    file = sa.make_url(engine_of(tmp_path)).database or ""
    with closing(sqlite3.connect(file, isolation_level=None)) as rows:
        rows.execute("CREATE TABLE much (what BLOB)")
        rows.execute("INSERT INTO much VALUES (zeroblob(?))", ((FREE_MOST_PAGES + 100) * 4096,))
        rows.execute("DROP TABLE much")
        rows.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = os.stat(file).st_size
    async with opened(prepare) as engine:
        await engine.start("new", "short", {})
        await until(lambda: is_state(engine, "new", "done"))
    assert os.stat(file).st_size < before / 4
