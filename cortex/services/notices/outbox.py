"""The outbox at work: takes what is due, several of each channel at a time, and sleeps until the next is.

Each channel has places of its own, so that one that hangs holds up no other, and no person has more than half of them.
Woken by what `notices.py` announces, in whatever process; several processes may run it on one database. Makes no model
call.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct, field
from sqlalchemy.exc import SQLAlchemyError

from cortex.base.clock import Clock
from cortex.base.errors import CortexError
from cortex.ports.channels import ChannelName
from cortex.ports.engine import Hub
from cortex.services.notices.delivery import Delivery
from cortex.services.notices.notices import DeliveryRow
from cortex.services.notifier import OUTBOX
from cortex.storage.db import Database
from cortex.storage.deliveries import AllDeliveriesRepository

PLACES_OF_GONE = 2  # deliveries by a channel that is gone, which fail with a reason
LEASE_S = 90.0  # a channel gives up after 20 seconds
LOOK_S = 30.0
BUSY_LOOK_S = 5.0  # while something due finds no place; one that gets free here wakes it sooner
LAST_WORDS_S = 2.0  # at the end: what is on the wire gets so long to be booked

Refresh = Callable[[], Awaitable[object]]

log = logging.getLogger(__name__)


class Outbox(Struct, frozen=True, kw_only=True):
    """The loop. refresh: brings up to date, in this process, which channels of plug-ins are in force."""

    db: Database
    hub: Hub
    delivery: Delivery
    clock: Clock
    refresh: Refresh
    _at_work: dict["asyncio.Task[None]", DeliveryRow] = field(default_factory=dict)

    async def send_due(self) -> None:
        """Until cancelled. What is cut off on the way comes back when its lease is over."""
        heard = await self.hub.changed(OUTBOX, -1, 0)  # ahead of the look: a wake in between is not missed
        try:
            while True:
                heard = await self._rest(heard, await self._round())
        finally:
            await self._end()

    async def _round(self) -> float:
        """Take what is due where there is room; the seconds until it is worth looking again."""
        try:
            lines = await self.db.repository(AllDeliveriesRepository).lines()
            due = {line.channel: line.due for line in lines if line.due}
            if not due:
                return self._wait_s(min((line.next_at for line in lines), default=None))
            if not all(map(self.delivery.channels.register.ships, due)):
                await self.refresh()  # an admin may have allowed or revoked one in another process
            taken = await self._take(due)
        except (CortexError, SQLAlchemyError) as error:
            log.warning("outbox: database error, retrying: %s", error)
            return LOOK_S
        return 0.0 if taken else BUSY_LOOK_S

    async def _take(self, due: Mapping[ChannelName, int]) -> int:
        taken = 0
        for channel in sorted(due):
            kind = self.delivery.channels.kinds.get(channel)
            places = kind.at_once if kind else PLACES_OF_GONE
            for _ in range(min(places, due[channel])):
                busy = Counter(row.owner_id for row in self._at_work.values() if row.channel == channel)
                full = [owner for owner, count in busy.items() if count >= places // 2]
                if busy.total() == places or not (rows := await self._due(channel, full)):
                    break
                self._start(*rows)
                taken += 1
        return taken

    async def _due(self, channel: ChannelName, besides: Sequence[str]) -> Sequence[DeliveryRow]:
        """The next one of this channel, or none."""
        return await self.db.repository(AllDeliveriesRepository).take(channel, 1, LEASE_S, besides)

    def _start(self, row: DeliveryRow) -> None:
        worker = asyncio.create_task(self.delivery.try_once(row))  # noqa: TID251 - heard by `_done`, ended by `_end`
        self._at_work[worker] = row
        worker.add_done_callback(self._done)

    def _done(self, worker: "asyncio.Task[None]") -> None:
        self._at_work.pop(worker, None)
        if not worker.cancelled() and worker.exception() is not None:
            log.error("outbox: a delivery was interrupted, retrying", exc_info=worker.exception())

    async def _rest(self, heard: int, wait_s: float) -> int:
        """Until it is woken, a place is free, or the time is up; the hub's counter."""
        counter = asyncio.ensure_future(self.hub.changed(OUTBOX, heard, wait_s))  # noqa: TID251 - ended right below
        try:
            await asyncio.wait({counter, *self._at_work}, return_when=asyncio.FIRST_COMPLETED)
            return counter.result() if counter.done() else heard
        finally:
            counter.cancel()

    def _wait_s(self, due_at: datetime | None) -> float:
        return LOOK_S if due_at is None else min(LOOK_S, (due_at - self.clock()).total_seconds())

    async def _end(self) -> None:
        workers = list(self._at_work)
        if workers:
            await asyncio.wait(workers, timeout=LAST_WORDS_S)
        for worker in workers:
            worker.cancel()
        if workers:
            await asyncio.wait(workers)
