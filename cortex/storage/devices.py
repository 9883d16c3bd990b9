"""Browsers that take push messages, and the single-use links of a notification's buttons."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypedDict, Unpack

from msgspec import Struct
from sqlalchemy import delete

from cortex.base.errors import Conflict
from cortex.base.ids import derived_id
from cortex.base.record import Veiled
from cortex.ports.channels import ActionKind
from cortex.storage.accounts import token_hash
from cortex.storage.repository import Repository, SharedRepository, reading
from cortex.storage.schema import ActionLinkTable, DeliveryTable, NoticeTable, PushDeviceTable


class DeviceRow(Veiled, Struct, frozen=True, kw_only=True):
    """A browser's subscription. Never shown whole: who has endpoint and keys can send to it.

    `signed_for`: the public key of ours under which it subscribed; `error`: why the last push failed, "" if it did
    not; `pushed_at`: the last that its service took, `shown_at`: the last that it reported as shown.
    """

    id: str
    owner_id: str
    login_id: str | None
    name: str
    agent: str
    endpoint: str
    p256dh: str
    auth: str
    signed_for: str
    error: str
    created_at: datetime
    pushed_at: datetime | None
    shown_at: datetime | None


class NewDevice(TypedDict):
    """A subscription as its browser said it, and the login in which it did."""

    endpoint: str
    p256dh: str
    auth: str
    signed_for: str
    login_id: str | None
    name: str
    agent: str


class DevicesRepository(Repository):
    """The browsers of one user."""

    async def add(self, **said: Unpack[NewDevice]) -> DeviceRow:
        """Keep a subscription; the one that stands for this endpoint takes the new keys and keeps its name.

        A browser in which another person signed in is this user's from now on: it shows the same keys. Conflict for
        an endpoint that stands under other keys with another person.
        """
        id = derived_id("push", said["endpoint"])
        said["agent"] = said["agent"][:300]
        same = (
            PushDeviceTable.id == id,
            PushDeviceTable.p256dh == said["p256dh"],
            PushDeviceTable.auth == said["auth"],
        )
        await self.session.execute(delete(PushDeviceTable).where(*same, PushDeviceTable.owner_id != self.owner_id))
        if not await self._is_new(PushDeviceTable, {"id": id, "created_at": self.clock(), **said}):
            renewed = {key: value for key, value in said.items() if key not in ("endpoint", "name")}
            change = self._change(PushDeviceTable).where(PushDeviceTable.id == id).values(**renewed, error="")
            if not await self._touched(change, PushDeviceTable.id):
                raise Conflict(
                    "This browser is registered for another person. Switch its notifications off and on again."
                )
        return await self.get(id)

    @reading
    async def list(self) -> Sequence[DeviceRow]:
        """All of them, the oldest first."""
        statement = self._mine(DeviceRow, PushDeviceTable)
        return await self._all(DeviceRow, statement.order_by(PushDeviceTable.created_at, PushDeviceTable.id))

    @reading
    async def get(self, id: str) -> DeviceRow:
        """The browser; NotFound when it is absent or another user's."""
        return await self._get(DeviceRow, PushDeviceTable, id, "This device does not exist.")

    async def rename(self, id: str, name: str) -> DeviceRow:
        """Give it another name."""
        await self._set(id, name=name)
        return await self.get(id)

    async def pushed(self, id: str, error: str = "") -> None:
        """Note that its service took a push, or why it did not."""
        await (self._set(id, error=error) if error else self._set(id, error="", pushed_at=self.clock()))

    async def shown(self, id: str) -> None:
        """Note that it showed a notification."""
        await self._set(id, shown_at=self.clock())

    async def remove(self, id: str, why: str = "the device was removed") -> bool:
        """Send nothing more to it, forget it; whether it was there."""
        return bool(await self._forget(why, PushDeviceTable.id == id))

    async def _forget(self, why: str, which: Any) -> Sequence[str]:  # Any: a column's comparison
        ids = await self._touched(self._remove(PushDeviceTable).where(which), PushDeviceTable.id)
        change = self._change(DeliveryTable).where(DeliveryTable.device_id.in_(ids), DeliveryTable.state == "pending")
        values = {"state": "dropped", "error": why, "next_at": None, "ended_at": self.clock()}
        await self.session.execute(change.values(**values))
        return ids

    async def _set(self, id: str, **values: Any) -> None:  # Any: one of the columns' own types each
        change = self._change(PushDeviceTable).where(PushDeviceTable.id == id).values(**values)
        await self._must_touch(change, PushDeviceTable.id, "This device does not exist.")


class ActionLinkRow(Struct, frozen=True, kw_only=True):
    """A button of a notification, behind a link. `used_at`: when it was pressed."""

    notice_id: str
    action: ActionKind
    expires_at: datetime
    used_at: datetime | None


class ActionLinksRepository(Repository):
    """The buttons made for one user; another's token is none."""

    async def add(self, token: str, notice_id: str, action: ActionKind, expires_at: datetime) -> None:
        """Keep a link under the hash of its token; one that stands stays as it is. NotFound for a foreign notice."""
        await self._must_own(NoticeTable, notice_id, "notice")
        row = {"token_hash": token_hash(token), "notice_id": notice_id, "action": action, "expires_at": expires_at}
        await self.session.execute(self._insert(ActionLinkTable, row).on_conflict_do_nothing())

    @reading
    async def get(self, token: str) -> ActionLinkRow:
        """Return what the link does, used or not; NotFound when it never was, is another's, or its time is up."""
        statement = self._mine(ActionLinkRow, ActionLinkTable).where(
            ActionLinkTable.token_hash == token_hash(token), ActionLinkTable.expires_at > self.clock()
        )
        return await self._one(ActionLinkRow, statement, "This link is no longer valid.")

    async def use(self, token: str) -> ActionLinkRow:
        """Press it, once; Conflict when it was pressed before, NotFound as above."""
        link = await self.get(token)
        change = self._change(ActionLinkTable).where(
            ActionLinkTable.token_hash == token_hash(token), ActionLinkTable.used_at.is_(None)
        )
        if not await self._touched(change.values(used_at=self.clock()), ActionLinkTable.token_hash):
            raise Conflict("This button was already used.")
        return link

    async def forget_all(self) -> None:
        """Let none of them be pressed any more."""
        await self.session.execute(self._remove(ActionLinkTable))


class AllActionLinksRepository(SharedRepository):
    """The buttons of everybody."""

    async def prune(self) -> int:
        """Forget those whose time is up; how many."""
        over = delete(ActionLinkTable).where(ActionLinkTable.expires_at < self.clock())
        return len(await self._touched(over, ActionLinkTable.token_hash))
