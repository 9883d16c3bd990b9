"""Updating from a chat: the work goes on behind the answer, Cortex restarts by itself, and admins hear how it went."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base import versions
from cortex.base.clock import Clock
from cortex.base.errors import Conflict, CortexError
from cortex.base.user import User
from cortex.base.versions import Chosen
from cortex.integrations.upkeep.building import Say
from cortex.ports.system import Upgrade
from cortex.services.accounts.accounts import Accounts
from cortex.services.health.restarts import Restarts
from cortex.services.notifier import Notifier, notify
from cortex.services.upkeep.updates import Updates
from cortex.storage.audit import AuditRepository
from cortex.storage.db import Database
from cortex.storage.notices import NoticeValues

NOTICE_KEPT = timedelta(days=90)
LOOK_S = 1.0

Prepare = Callable[[Say], Awaitable[Chosen]]

log = logging.getLogger(__name__)


class _Order(Struct, frozen=True, kw_only=True):
    """The order of an admin."""

    by: User
    prepare: Prepare
    what: str


class UpdateOrders(Struct, frozen=True, kw_only=True):
    """The updates of this process: `work` runs beside the daemon and takes one order at a time."""

    db: Database
    accounts: Accounts
    notifier: Notifier
    restarts: Restarts
    updates: Updates
    clock: Clock
    _waiting: "asyncio.Queue[_Order]" = field(default_factory=lambda: asyncio.Queue(maxsize=1))
    _said: list[str] = field(default_factory=list)

    @property
    def progress(self) -> str:
        """Return what is being done now, "" when nothing is."""
        return self._said[-1] if self._said else ""

    def order(self, by: User, prepare: Prepare, what: str) -> None:
        """Have it prepared, and the daemon restarted. NotAllowed for who is no admin, Conflict while another one is."""
        by.must_be_admin("update Cortex")
        self.restarts.must_be_possible()
        if self.progress or self._waiting.full():
            raise Conflict(f"An update is already running: {self.progress or 'it begins'}.")
        self._waiting.put_nowait(_Order(by=by, prepare=prepare, what=what))

    async def work(self) -> None:
        """Tell how the last one went, then take orders, until cancelled."""
        await self._tell_outcome()
        while True:
            order = await self._waiting.get()
            self._said.append(order.what)
            try:
                chosen = await order.prepare(self._said.append)
                await self.restarts.ask(order.by, f"update: {chosen.label}")
            except (CortexError, OSError) as error:
                log.warning("upkeep: %s failed: %s", order.what, error)
                at = self.clock().isoformat()
                await self._tell(
                    f"upkeep:{at}", f"{order.what} failed", f"{error} The version that runs stays as it is."
                )
            finally:
                self._said.clear()

    async def _tell_outcome(self) -> None:
        """Once the chosen version serves, or the one before does again: admins hear it, the audit log has it."""
        mine = versions.own_name(self.updates.settings.home)
        chosen = await self._chosen()
        while chosen is not None and chosen.name == mine and not chosen.is_kept:
            await asyncio.sleep(LOOK_S)
            chosen = await self._chosen()
        if chosen is None or chosen.name != mine or chosen.is_told or not chosen.note:
            return
        await self.db.repository(AuditRepository).add("", "server.updated", chosen.label, {"note": chosen.note})
        await self._tell(f"upkeep:{chosen.at}:{chosen.note}", "Update of Cortex", chosen.note)
        if await self._chosen() == chosen:  # nothing else was chosen meanwhile
            await asyncio.to_thread(versions.choose, self.updates.settings.home, replace(chosen, is_told=True))

    async def _chosen(self) -> Chosen | None:
        return await asyncio.to_thread(versions.read, self.updates.settings.home)

    async def _tell(self, key: str, title: str, text: str) -> None:
        values = NoticeValues(
            kind="system",
            title=title,
            text=text,
            path="/admin/health",
            is_tainted=False,
            expires_at=self.clock() + NOTICE_KEPT,
        )
        for person in await self.accounts.users():
            if person.is_admin:
                await notify(self.db, self.notifier, person.id, key, values)


class UserUpkeep(Struct, frozen=True, kw_only=True):
    """Implements the port `Upkeep` for one user."""

    orders: UpdateOrders
    user_id: str

    async def must_be_possible(self) -> None:
        """UserError where it cannot be done from here."""
        self.orders.restarts.must_be_possible()

    async def earlier(self) -> str:
        """The version that one could go back to; "" for none."""
        return self.orders.updates.earlier()

    async def preview(self) -> Upgrade:
        """Return what an update would change now; changes nothing."""
        found = await self.orders.updates.preview()
        return replace(found, progress=self.orders.progress)

    async def update(self, version: str) -> str:
        """Begin it; a line that says what follows."""
        user = await self.orders.accounts.user(self.user_id)
        self.orders.order(user, self.orders.updates.install, f"The update to {version}")
        return (
            f"The update to {version} is being prepared; this takes a few minutes, and Cortex keeps running. It is "
            "tried on a copy of the database, a backup is made, then Cortex restarts by itself and admins are notified."
        )

    async def roll_back(self, version: str) -> str:
        """Begin it; a line that says what follows."""
        user = await self.orders.accounts.user(self.user_id)
        self.orders.order(user, self.orders.updates.go_back, f"Going back to {version}")
        return (
            f"Cortex goes back to {version}: it is tried on a copy of the database, a backup is made, then Cortex "
            "restarts by itself and admins are notified. What was written since the update stays."
        )
