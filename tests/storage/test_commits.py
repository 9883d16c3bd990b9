from pathlib import Path

import pytest

from cortex.storage.commits import Commits
from cortex.storage.db import Database
from cortex.storage.tasks import TasksRepository


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
    assert "cannot read the database's change counter" in caplog.text
