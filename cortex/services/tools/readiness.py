"""Keeps tools ready to be chosen from: indexed soon after the start, and again when many new ones came.

So nobody's first message pays for it, nor for loading what asks a model. Off the event loop; without accounts nothing
is loaded.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from msgspec import Struct
from sqlalchemy.exc import SQLAlchemyError

from cortex.base.errors import CortexError
from cortex.services.accounts.accounts import Accounts
from cortex.services.runtime import Runtime
from cortex.services.tools.tools import ToolsService

FIRST_AFTER_S = 5.0  # the start belongs to the people
LOOK_EVERY_S = 2.0
NOBODY_S = 30.0
FAILED_S = 60.0

log = logging.getLogger(__name__)


class ToolReadiness(Struct, frozen=True, kw_only=True):
    """The work in the background; `app.py` lets it run. `load_ahead`: loads what an answer needs, in a thread."""

    runtime: Runtime
    accounts: Accounts
    tools: ToolsService
    load_ahead: Callable[[], None] = lambda: None
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def keep(self) -> None:
        """Until cancelled: have the tools indexed that are there; then each plan may count on it, and after it none."""
        self.tools.prepare_ahead()
        await self.sleep(FIRST_AFTER_S)
        told = ""
        try:
            while True:
                try:
                    await self._make_ready()
                    told = ""
                except (
                    CortexError,
                    SQLAlchemyError,
                    OSError,
                ) as error:  # a plan makes the same, and says why it cannot
                    if str(error) != told:
                        log.error("tools are not ready, retrying: %s", error)
                    told = str(error)
                    await self.sleep(FAILED_S)
        finally:
            self.tools.forget_ready()

    async def _make_ready(self) -> None:
        """Have ready what is there; returns when it is so no more. Without accounts it looks again later."""
        wait_out = self.runtime.outages.wait_out
        if not await wait_out(self.accounts.has_users):
            await self.sleep(NOBODY_S)
            return
        await wait_out(self.tools.make_ready)
        await asyncio.to_thread(self.load_ahead)
        await self._until_changed()

    async def _until_changed(self) -> None:
        while self.tools.is_ready:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self.tools.grown.wait()
