"""Two users in one house."""

from pathlib import Path

import pytest

from cortex.base.user import User
from cortex.storage.accounts import AccountsRepository
from cortex.storage.db import Database
from cortex.storage.home import Homes
from tests.tool_world import World


@pytest.fixture
async def ann(db: Database) -> User:
    account = await db.repository(AccountsRepository).add("ann", "Ann", "admin", None, "Europe/Berlin")
    return User(id=account.id, name="ann", rank="admin", time_zone="Europe/Berlin")


@pytest.fixture
async def ben(db: Database) -> User:
    account = await db.repository(AccountsRepository).add("ben", "Ben", "member", None, "UTC")
    return User(id=account.id, name="ben", rank="member")


@pytest.fixture
def world(db: Database, tmp_path: Path) -> World:
    return World(db=db, homes=Homes(tmp_path / "home"))
