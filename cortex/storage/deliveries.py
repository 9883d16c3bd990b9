"""The outbox at work: a sender takes deliveries under a lease, and books how each ended. Written by `notices.py`.

A delivery whose sender died comes back when its lease is over; a sender that was too slow can no longer book it.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import ColumnElement, case, func, select, update

from cortex.base.errors import Conflict
from cortex.ports.channels import ChannelName, DeliveryState
from cortex.storage.repository import Repository, SharedRepository, reading, selected
from cortex.storage.schema import DeliveryTable


class DeliveryRow(Struct, frozen=True, kw_only=True):
    """A notice on its way. `next_at`: None when it is over; `attempt`: which try it is; only its maker books it."""

    id: str
    notice_id: str
    owner_id: str
    channel: ChannelName
    device_id: str
    state: DeliveryState
    attempt: int
    next_at: datetime | None
    error: str
    created_at: datetime
    ended_at: datetime | None


class ChannelLine(Struct, frozen=True, kw_only=True):
    """The deliveries of one channel that are on their way. `next_at`: of the first, perhaps long ago; `due`: now."""

    channel: ChannelName
    next_at: datetime
    due: int


class DeliveriesRepository(Repository):
    """The deliveries to one user."""

    @reading
    async def get(self, id: str) -> DeliveryRow:
        """The delivery; NotFound when it is absent or to another user."""
        return await self._get(DeliveryRow, DeliveryTable, id, "This delivery does not exist.")

    @reading
    async def of_notices(self, notice_ids: Sequence[str]) -> Mapping[str, tuple[DeliveryRow, ...]]:
        """The deliveries of each of these notices, by channel."""
        mine = (self._checked(DeliveryTable), DeliveryTable.notice_id.in_(notice_ids))
        statement = selected(DeliveryRow, DeliveryTable).where(*mine)
        found: dict[str, tuple[DeliveryRow, ...]] = dict.fromkeys(notice_ids, ())
        order = (DeliveryTable.channel, DeliveryTable.created_at, DeliveryTable.id)
        for row in await self._all(DeliveryRow, statement.order_by(*order)):
            found[row.notice_id] += (row,)
        return found

    @reading
    async def list(
        self, *, states: Sequence[DeliveryState] = (), skip: int = 0, limit: int = 50
    ) -> Sequence[DeliveryRow]:
        """The newest first, in these states (none: all)."""
        statement = self._mine(DeliveryRow, DeliveryTable)
        if states:
            statement = statement.where(DeliveryTable.state.in_(states))
        order = (DeliveryTable.created_at.desc(), DeliveryTable.id)
        return await self._all(DeliveryRow, statement.order_by(*order).offset(skip).limit(limit))

    async def end(
        self, id: str, attempt: int, state: Literal["delivered", "failed", "dropped"], error: str = ""
    ) -> bool:
        """Say how this attempt ended for good; False when another took it over meanwhile."""
        values = {"state": state, "error": error, "next_at": None, "ended_at": self.clock()}
        return await self._say(id, attempt, values)

    async def again(self, id: str, attempt: int, next_at: datetime, error: str) -> bool:
        """Say that this attempt failed and that another is due then; False when another took it over meanwhile."""
        return await self._say(id, attempt, {"state": "pending", "error": error, "next_at": next_at})

    async def retry(self, id: str) -> DeliveryRow:
        """Send a failed one anew, now, its tries counted from the first; Conflict when it has not failed."""
        change = self._change(DeliveryTable).where(DeliveryTable.id == id, DeliveryTable.state == "failed")
        values = {"state": "pending", "attempt": 0, "next_at": self.clock(), "ended_at": None}
        if not await self._touched(change.values(**values), DeliveryTable.id):
            raise Conflict(f"This delivery is {(await self.get(id)).state}; only a failed one can be sent again.")
        return await self.get(id)

    async def _say(self, id: str, attempt: int, values: dict[str, Any]) -> bool:
        # The attempt grows with each taking: a sender whose lease is over no longer matches.
        change = self._change(DeliveryTable).where(
            DeliveryTable.id == id, DeliveryTable.state == "attempting", DeliveryTable.attempt == attempt
        )
        return bool(await self._touched(change.values(**values), DeliveryTable.id))


class AllDeliveriesRepository(SharedRepository):
    """The deliveries to everybody."""

    async def take(
        self, channel: ChannelName, most: int, lease_s: float, besides: Collection[str] = ()
    ) -> Sequence[DeliveryRow]:
        """Take what is due on this channel, the longest due first, for `lease_s` seconds; nobody else has it then.

        `besides`: the ids of users whose turn it is not.
        """
        at = self.clock()
        # In whatever state: one that is being sent has the end of its lease there, and comes back after it.
        statement = selected(DeliveryRow, DeliveryTable).where(
            DeliveryTable.channel == channel, DeliveryTable.next_at <= at
        )
        statement = statement.where(DeliveryTable.owner_id.not_in(besides))
        statement = statement.order_by(DeliveryTable.next_at, DeliveryTable.id).limit(most)
        # SQLite has one writer at a time and knows no row locks: there this says nothing.
        free = await self._all(DeliveryRow, statement.with_for_update(skip_locked=True))
        until = at + timedelta(seconds=lease_s)
        change = update(DeliveryTable).where(DeliveryTable.id.in_([row.id for row in free]))
        values = {"state": "attempting", "attempt": DeliveryTable.attempt + 1, "next_at": until}
        await self.session.execute(change.values(**values))
        return [replace(row, state="attempting", attempt=row.attempt + 1, next_at=until) for row in free]

    @reading
    async def lines(self) -> Sequence[ChannelLine]:
        """The deliveries on their way, by channel; none of a channel where nothing is."""
        is_due = func.sum(case((DeliveryTable.next_at <= self.clock(), 1), else_=0))
        columns: tuple[ColumnElement[Any], ...] = (
            DeliveryTable.channel.label("channel"),
            func.min(DeliveryTable.next_at).label("next_at"),
            is_due.label("due"),
        )
        statement = select(*columns).where(DeliveryTable.next_at.is_not(None)).group_by(DeliveryTable.channel)
        return await self._all(ChannelLine, statement)
