"""Makes the nightly backup: at 3 in the server's zone, or soon after the start where a night was missed.

`app.py` lets it run beside the rest. Of several processes of one HOME one makes it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, timedelta
from zoneinfo import ZoneInfo

from msgspec import Struct
from sqlalchemy.exc import SQLAlchemyError

from cortex.base.clock import Clock
from cortex.base.errors import Conflict, CortexError
from cortex.base.settings import Settings
from cortex.services.backup.backups import Backups, age_of

HOUR = 3
FIRST_AFTER_S = 300.0  # the start belongs to the people
FRESH_H = 20.0
LATE_H = 30.0
RETRY_S = 3_600.0

log = logging.getLogger(__name__)


class NightlyBackup(Struct, frozen=True, kw_only=True):
    """The loop. Before set-up it makes none: where an earlier home's are kept, an empty one would replace the day's."""

    settings: Settings
    backups: Backups
    has_users: Callable[[], Awaitable[bool]]
    clock: Clock
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def keep(self) -> None:
        """Run until cancelled. A backup that fails is told in the log and on the pages, and tried again in an hour."""
        if not self.settings.backup_nightly:
            return
        await self.sleep(FIRST_AFTER_S)
        if self._age_h() > LATE_H and await self._is_set_up():
            await self._try()
        while True:
            await self.sleep(self._wait_s())
            if self._age_h() > FRESH_H and await self._is_set_up():
                await self._try()

    def _age_h(self) -> float:
        age_h = age_of(self.backups.state(), self.clock())
        return float("inf") if age_h is None else age_h

    async def _is_set_up(self) -> bool:
        try:
            return await self.has_users()
        except (CortexError, SQLAlchemyError):
            return True  # the backup will say what is wrong, and is tried again

    async def _try(self) -> None:
        try:
            made = await self.backups.make()
            log.info("backup: made %s, %d bytes", made.name, made.size_bytes)
        except Conflict:
            log.info("backup: another process makes it")
        except CortexError as error:
            log.warning("backup: failed, next attempt in an hour: %s", error)

    def _wait_s(self) -> float:
        """Until the next look: the coming night, or an hour where the last try failed."""
        now = self.clock().astimezone(ZoneInfo(self.settings.time_zone))
        if self.backups.state().error:
            return RETRY_S
        night = now.replace(hour=HOUR, minute=0, second=0, microsecond=0)
        if night <= now:
            night += timedelta(days=1)
        return (night.astimezone(UTC) - now.astimezone(UTC)).total_seconds()
