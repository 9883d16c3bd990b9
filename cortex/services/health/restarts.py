"""Restarting the daemon when an admin asks: what runs ends first, for a while, and the process begins anew.

`web/serve.py` waits for it and does it. What has not ended by then is taken up again by the engine, as after a kill.
"""

import asyncio
import logging

from msgspec import Struct, field
from sqlalchemy.exc import SQLAlchemyError

from cortex.base.clock import ticks_s
from cortex.base.errors import DatabaseUnavailable, UserError
from cortex.base.user import User
from cortex.services.accounts.accounts import Accounts
from cortex.services.runtime import Runtime
from cortex.storage.audit import AuditRepository
from cortex.storage.turns import AllTurnsRepository

WAITED_S = 60.0  # for what runs; the engine lets steps end for some seconds more
LOOK_S = 0.25
NOT_HERE = "Several processes serve this Cortex, or none does: restart them where they were started."

log = logging.getLogger(__name__)


class Restarts(Struct, frozen=True, kw_only=True):
    """The restart of this process, if one was asked for."""

    runtime: Runtime
    _asked: asyncio.Event = field(default_factory=asyncio.Event)
    _served: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_asked(self) -> bool:
        """Tell whether the process shall begin anew once it has ended."""
        return self._asked.is_set()

    @property
    def is_possible(self) -> bool:
        """Tell whether somebody here would do it."""
        return self._served.is_set()

    async def until_due(self) -> None:
        """For whoever serves: until a restart was asked for, and what ran then has ended or had a minute for it."""
        self._served.set()
        await self._asked.wait()
        ends_s = ticks_s() + WAITED_S
        running = set(await self._running())
        log.info("restarting: waiting for %d turns", len(running))
        while running and ticks_s() < ends_s:
            await asyncio.sleep(LOOK_S)
            running &= set(await self._running())
        log.info("restarting: %d turns go on afterwards", len(running))

    def must_be_possible(self) -> None:
        """UserError where nobody here would do it."""
        if not self.is_possible:
            raise UserError(NOT_HERE)

    async def ask(self, by: User, reason: str) -> int:
        """Restart once what runs has ended; how many turns that are. NotAllowed for who is no admin."""
        by.must_be_admin("restart Cortex")
        self.must_be_possible()
        running = await self._running()
        await self.runtime.db.repository(AuditRepository).add(by.id, "server.restart", "", {"reason": reason})
        self._asked.set()
        return len(running)

    def order(self) -> None:
        """For whoever may end this process: `cortex update` signals it."""
        self._asked.set()

    def order_here(self) -> None:
        """The same by this process itself. UserError where nobody here would do it."""
        self.must_be_possible()
        self.order()

    async def _running(self) -> list[str]:
        """The turns that are at work; one that waits for a person or in a line goes on afterwards."""
        try:
            rows = await self.runtime.db.repository(AllTurnsRepository).unfinished()
        except (DatabaseUnavailable, SQLAlchemyError) as error:  # nothing can end, then
            log.warning("restarting: database error, going on: %s", error)
            return []
        return [row.id for row in rows if row.state == "running"]


class UserRestarts(Struct, frozen=True, kw_only=True):
    """Implements `Restarting` for one user."""

    restarts: Restarts
    accounts: Accounts
    user_id: str

    async def must_be_possible(self) -> None:
        """UserError where it cannot be done from here."""
        self.restarts.must_be_possible()

    async def restart(self, reason: str) -> int:
        """Ask for it; how many other turns it will wait for: the one that asks is one of those that run."""
        return max(0, await self.restarts.ask(await self.accounts.user(self.user_id), reason) - 1)
