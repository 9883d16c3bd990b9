"""What the server throws away when its time is up: ended logins and links, and the engine's records of old runs.

Messages, events and people's files stay. Makes no model call. `app.py` lets it run beside the rest.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.exc import SQLAlchemyError

from cortex.base.clock import Clock
from cortex.base.errors import CortexError
from cortex.services.accounts.accounts import Accounts

FIRST_AFTER_S = 60.0  # the start belongs to the people
EVERY_S = 24 * 3600.0
RUNS_KEPT = timedelta(days=14)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Housekeeping:
    """The daily round. `prune` forgets the runs that ended before a moment, and says how many; `also`: more to do."""

    accounts: Accounts
    prune: Callable[[datetime], Awaitable[int]]
    clock: Clock
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    also: Sequence[Callable[[], Awaitable[None]]] = ()

    async def clean_daily(self) -> None:
        """For ever: a minute after the start, then once a day. One that fails is told in the log."""
        await self.sleep(FIRST_AFTER_S)
        while True:
            try:
                await self.go_round()
            except (CortexError, SQLAlchemyError, OSError) as error:
                log.warning("housekeeping has to wait a day: %s", error)
            await self.sleep(EVERY_S)

    async def go_round(self) -> None:
        """Throw away what is over now."""
        await self.accounts.sweep()
        for sweep in self.also:
            await sweep()
        forgotten = await self.prune(self.clock() - RUNS_KEPT)
        if forgotten:
            log.info("forgot the engine's records of %d runs that ended %d days ago", forgotten, RUNS_KEPT.days)
