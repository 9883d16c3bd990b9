"""One delivery, from the row to how it ended: is it still wanted, where to, what it says, and what became of it.

`outbox.py` decides when; channels send. A try that nobody booked comes back by its lease and bears the same id.
"""

import logging
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

from cortex.base.clock import Clock
from cortex.base.errors import CortexError, DatabaseUnavailable, DeliveryError, NotFound
from cortex.ports.channels import DAY_S, Notice, Target
from cortex.services.notices.action_links import ActionLinks
from cortex.services.notices.channels import Channels
from cortex.services.notices.devices import target_of
from cortex.services.notices.notices import DeliveryRow, NoticeDraft, NoticeRow, Notices
from cortex.services.notices.preferences import Choices, held_until, spare
from cortex.services.notifier import PendingNotice
from cortex.storage import notices as rows
from cortex.storage.accounts import AccountsRepository
from cortex.storage.db import Database
from cortex.storage.deliveries import DeliveriesRepository
from cortex.storage.devices import DeviceRow, DevicesRepository
from cortex.storage.notices import Way

BACK_OFF_S = (10, 30, 120, 600, 1_800, 3_600, 3 * 3_600)
UNKNOWN = "It may have arrived all the same; another try bears the same id."
BROKEN_OFF = "Cortex stopped in the middle each time it was sent; it may have arrived."

log = logging.getLogger(__name__)


class DeliveryEnd(Struct, frozen=True, kw_only=True):
    """The end of a try, for good. `is_gone`: the address is dead."""

    state: Literal["delivered", "failed", "dropped"]
    why: str = ""
    is_gone: bool = False


class Again(Struct, frozen=True, kw_only=True):
    """Another try is due `at` that time; `why`: "" for one that was only held back."""

    at: datetime
    why: str = ""


class _Unwanted(Exception):
    """There is nothing to send any more, and why."""


class Delivery(Struct, frozen=True, kw_only=True):
    """Sends and books."""

    db: Database
    notices: Notices
    channels: Channels
    action_links: ActionLinks
    clock: Clock

    async def try_once(self, row: DeliveryRow) -> None:
        """Try it once and book how it ended."""
        outcome = await self._tried(row)
        await self._book(row, outcome)
        self.notices.wake(row.owner_id)

    async def _tried(self, row: DeliveryRow) -> DeliveryEnd | Again:
        try:
            async with self.db.one_view():
                notice = await self.db.repository(rows.NoticesRepository, row.owner_id).get(row.notice_id)
                preferences = await self.notices.preferences.choices_of(row.owner_id)
                await self._check(row, notice)
                # Asked when it was written too; a later try may fall into quiet hours that the first did not.
                held = held_until(notice, preferences, self.clock())
                if held is not None:
                    return Again(at=held)
            target = await self._target(row)
            channel = await self.channels.channel(row.channel)
            await channel.send(await self._parcel(row, notice, preferences), target)
        except _Unwanted as reason:
            return DeliveryEnd(state="dropped", why=str(reason))
        except DeliveryError as error:
            return self._failed(row, error)
        except DatabaseUnavailable:
            raise  # no fault of the delivery: it is tried again
        except CortexError as error:  # the channel is not set up, or a secret can't be opened
            return DeliveryEnd(state="failed", why=error.message)
        return DeliveryEnd(state="delivered")

    async def _check(self, row: DeliveryRow, notice: NoticeRow) -> None:
        if not (await self.db.repository(AccountsRepository).get(row.owner_id)).is_active:
            raise _Unwanted("the account is closed")
        if notice.acknowledged_at is not None:
            raise _Unwanted("answered before it was sent")
        if notice.is_replaced:
            raise _Unwanted("a later notice took its place")
        if notice.read_at is not None and not self.channels.register.kind(row.channel).sends_read:
            raise _Unwanted("read before it was sent")
        if notice.expires_at is not None and notice.expires_at <= self.clock():
            if row.error:  # it was tried in time, and this is why that came to nothing
                raise DeliveryError(row.error, fate="refused")
            raise _Unwanted("its time was up before it was sent")
        if row.attempt > len(BACK_OFF_S) + 1:
            raise DeliveryError(BROKEN_OFF, fate="refused")

    async def _target(self, row: DeliveryRow) -> Target:
        if not row.device_id:
            target = await self.notices.addresses.target(row.owner_id, row.channel)
            if target is None:
                raise _Unwanted("there is no address any more")
            return target
        device = await self._device(row)
        if device is None or device.login_id is None:
            raise _Unwanted("the device was removed" if device is None else "the device was signed out")
        return target_of(device)

    async def _device(self, row: DeliveryRow) -> DeviceRow | None:
        try:
            return await self.db.repository(DevicesRepository, row.owner_id).get(row.device_id)
        except NotFound:
            return None

    async def _parcel(self, row: DeliveryRow, notice: NoticeRow, preferences: Choices) -> Notice:
        left_s = None if notice.expires_at is None else (notice.expires_at - self.clock()).total_seconds()
        return Notice(
            id=row.id,
            kind=notice.kind,
            title=notice.title,
            text=notice.text,
            path=opening(notice),
            tag=notice.tag,
            actions=await self.action_links.made(notice, row.id),
            urgency=notice.urgency,
            ttl_s=DAY_S if left_s is None else int(left_s),
            badge=await self.notices.unread(row.owner_id) if row.device_id else None,
            is_private=row.channel not in preferences.content,
        )

    def _failed(self, row: DeliveryRow, error: DeliveryError) -> DeliveryEnd | Again:
        why = f"{error.message} {UNKNOWN}" if error.is_unknown else error.message
        if error.fate != "later" or row.attempt > len(BACK_OFF_S):
            return DeliveryEnd(state="failed", why=why, is_gone=error.fate == "gone")
        wait_s = max(BACK_OFF_S[row.attempt - 1], error.retry_after_s or 0.0)
        return Again(at=self.clock() + timedelta(seconds=wait_s), why=why)

    async def _book(self, row: DeliveryRow, outcome: DeliveryEnd | Again) -> None:
        device = await self._device(row) if row.device_id else None
        ended = outcome.state if isinstance(outcome, DeliveryEnd) else ""
        is_gone = isinstance(outcome, DeliveryEnd) and outcome.is_gone
        lost = await self._lost(device) if is_gone and device is not None else None
        more = await self._spare(row) if ended == "failed" else ()
        async with self.db.transaction(row.owner_id) as repository:
            deliveries, devices = repository(DeliveriesRepository), repository(DevicesRepository)
            match outcome:
                case Again(at=at, why=why):
                    is_ours = await deliveries.again(row.id, row.attempt, at, why)
                case DeliveryEnd(state=state, why=why):
                    is_ours = await deliveries.end(row.id, row.attempt, state, why)
            if not is_ours:  # the lease was over: who took it then books it
                log.warning("outbox: delivery %s exceeded its lease, another attempt owns it now", row.id)
                return
            await repository(rows.NoticesRepository).send_instead(row.notice_id, more)
            if device is not None and lost is not None:
                await devices.remove(device.id, "the device no longer takes notifications")
                await lost.write(repository)
            elif device is not None and ended != "dropped" and (why or ended):
                await devices.pushed(device.id, why)

    async def _spare(self, row: DeliveryRow) -> tuple[Way, ...]:
        """One more channel for a notice that still waits for its person; those that were tried are left out."""
        view = await self.notices.get(row.owner_id, row.notice_id)
        notice, at = view.row, self.clock()
        is_over = notice.is_replaced or (notice.expires_at is not None and notice.expires_at <= at)
        if is_over or notice.read_at is not None or notice.acknowledged_at is not None:
            return ()
        preferences, means = (
            await self.notices.preferences.choices_of(row.owner_id),
            await self.notices.means(row.owner_id),
        )
        return spare(notice, preferences, means, at, {sent.channel for sent in view.deliveries})

    async def _lost(self, device: DeviceRow) -> PendingNotice:
        """The notice of a device that is gone, here and by every other way."""
        draft = NoticeDraft(
            key=f"device-gone:{device.id}:{device.created_at.isoformat()}",
            kind="system",
            title=f"{device.name} no longer takes notifications",
            text="It was removed from your devices. Open Cortex on it and switch notifications on again.",
            path="/account/devices",
            is_tainted=False,
        )
        return await self.notices.prepare(device.owner_id, draft, without=device.id)


def opening(notice: NoticeRow) -> str:
    """The page that it opens, marked with its id: a browser that comes there by it says that it was seen."""
    path, mark, place = notice.path.partition("#")
    return f"{path}{'&' if '?' in path else '?'}notice={notice.id}{mark}{place}"
