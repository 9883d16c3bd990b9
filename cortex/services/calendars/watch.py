"""Asks each calendar server from time to time what changed. Loads nothing that speaks with one until one is due.

One process asks at a time: whoever moves `next_at` on.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from msgspec import Struct, field
from sqlalchemy.exc import SQLAlchemyError

from cortex.base.background import apart
from cortex.base.clock import Clock
from cortex.base.errors import DatabaseUnavailable
from cortex.storage.calendars import DueCalendarsRepository
from cortex.storage.db import Database

if TYPE_CHECKING:
    from cortex.services.calendars.sync import CalendarSync

LEASE = timedelta(minutes=10)
LOOKED_EVERY_S = 60.0
AT_ONCE = 100

log = logging.getLogger(__name__)


class CalendarWatch(Struct, frozen=True, kw_only=True):
    """The calendars of everybody. `opened`: gives what speaks with servers."""

    db: Database
    clock: Clock
    opened: Callable[[], "CalendarSync"]
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        """Look now: an account came, or somebody wants one asked."""
        self._changed.set()

    async def run(self) -> None:
        """Until cancelled: ask whoever is due."""
        while True:
            self._changed.clear()
            try:
                await self.due()
                wait_s = await self._until_next_s()
            except (DatabaseUnavailable, SQLAlchemyError) as error:
                log.warning("calendars: database error, looking again: %s", error)
                wait_s = LOOKED_EVERY_S
            try:
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def due(self) -> None:
        """Ask every server that is due, one after the other."""
        for owner_id, account_id in await self.db.repository(DueCalendarsRepository).due(AT_ONCE):
            if await self.db.repository(DueCalendarsRepository).take(account_id, self.clock() + LEASE):
                failure = await apart(self.opened().sync(owner_id, account_id))
                if isinstance(failure, DatabaseUnavailable | SQLAlchemyError):
                    raise failure
                if failure is not None:  # of one server: the others are asked all the same
                    log.error("calendars: an account could not be asked", exc_info=failure)

    async def _until_next_s(self) -> float:
        at = await self.db.repository(DueCalendarsRepository).next_at()
        return LOOKED_EVERY_S if at is None else min(max((at - self.clock()).total_seconds(), 1.0), LOOKED_EVERY_S)
