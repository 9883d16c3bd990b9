"""What a house's tables hold, asked through its own doors, beside the processes that have it open or behind them."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from cortex.app import Cortex
from cortex.base.user import User
from tests.databases import database_of, house_settings
from tests.e2e.caller import PASSWORD
from tests.e2e.daemon import Daemon
from tests.patience import PATIENCE_S

T = TypeVar("T")


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Hold the write lock of a SQLite file inside the block, as another program would."""
    holder = sqlite3.connect(database, timeout=PATIENCE_S, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        holder.execute("ROLLBACK")
        holder.close()


def ask(daemon: Daemon, question: Callable[[Cortex, User], Awaitable[T]]) -> T:
    """Open the daemon's house at rest and ask it as its admin, who is made if nobody is there."""

    async def asked() -> T:
        url = str(daemon.settings["database_url"]) or database_of(daemon.home)
        async with Cortex.at_rest(house_settings(daemon.home, database_url=url)) as cortex:
            if not await cortex.accounts.has_users():
                await cortex.accounts.redeem_setup(await cortex.accounts.setup_link(), "Ada", PASSWORD)
            return await question(cortex, (await cortex.accounts.users())[0])

    return asyncio.run(asked())
