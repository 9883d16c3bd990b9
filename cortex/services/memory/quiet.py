"""Looks for conversations that went quiet, while the daemon runs, and has them read for facts.

A server on which nothing was said for a while asks its database nothing. `app.py` lets it run beside the rest.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy.exc import SQLAlchemyError

from cortex.base.errors import CortexError
from cortex.services.memory.distill import Distiller
from cortex.services.runtime import Runtime
from cortex.storage.distill_marks import AllDistillMarksRepository

EVERY_S = 60.0
IDLE = timedelta(minutes=10)
REACHES_BACK = timedelta(days=2)
AT_ONCE = 50

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuietConversations:
    """Has them read, one after the other."""

    runtime: Runtime
    distiller: Distiller
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def read_quiet(self) -> None:
        """Until cancelled: a look a minute while anything was written of late. One that fails is told in the log."""
        last = self.runtime.clock()
        with closing(self.runtime.db.commits.another()) as commits:
            while True:
                await self.sleep(EVERY_S)
                try:
                    now = self.runtime.clock()
                    last = now if await commits.are_new() else last
                    if now - last <= IDLE + timedelta(seconds=2 * EVERY_S):
                        await self.go_round()
                except (CortexError, SQLAlchemyError, OSError) as error:
                    log.warning("memory: a look at what is new failed, retrying: %s", error)

    async def go_round(self) -> None:
        """Read what went quiet by now."""
        now, db = self.runtime.clock(), self.runtime.db
        if not self.runtime.settings.memory_learns:
            return
        for row in await db.repository(AllDistillMarksRepository).quiet(now - REACHES_BACK, now - IDLE, AT_ONCE):
            try:
                await self.distiller.look(row)
            except CortexError as error:  # one person's broken file keeps nobody else's from being read
                log.warning("memory: a conversation was not read: %s", error)
