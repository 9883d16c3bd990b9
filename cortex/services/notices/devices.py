"""A person's browsers that take push: subscribing, looking after on page loads, what was shown, tests, removal.

The page and its service worker call this; sending is `outbox.py`'s.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

from cortex.base.browsers import browser_name
from cortex.base.clock import Clock
from cortex.base.errors import UserError
from cortex.base.ids import derived_id
from cortex.base.record import Veiled
from cortex.base.user import User
from cortex.ports.channels import Target
from cortex.services.accounts.accounts import LoginView
from cortex.services.notices.channels import Channels
from cortex.storage import devices as rows
from cortex.storage.db import Database
from cortex.storage.deliveries import DeliveriesRepository
from cortex.storage.devices import DeviceRow

DEVICES_MOST = 20
NAME_CHARACTERS = 60
TEST = "test:"  # in front of a device's id: what a test bears in place of a delivery's
SILENT_AFTER = timedelta(days=7)
SHOWN_WITHIN = timedelta(hours=1)  # the newest push may still be under way

DeviceState = Literal["ok", "silent", "failing", "expired", "signed_out"]


class Subscription(Veiled, Struct, frozen=True, kw_only=True):
    """A browser's `subscription.toJSON()`, and the public key that it subscribed under.

    `instead_of`: the endpoint that the browser gave up for this one, "" for none; the device keeps its name.
    """

    endpoint: str
    p256dh: str
    auth: str
    signed_for: str
    instead_of: str = ""


class DeviceView(Struct, frozen=True, kw_only=True):
    """A browser for its page.

    `state`: ok; silent: it took pushes for a week and reported none as shown; failing: the newest push went
    wrong (`error`); expired: it subscribed under a key that is gone; signed_out: its login ended, it gets nothing.
    """

    id: str
    name: str
    agent: str
    state: DeviceState
    silent_since: datetime | None
    error: str
    created_at: datetime
    pushed_at: datetime | None
    shown_at: datetime | None


class DevicesService(Struct, frozen=True, kw_only=True):
    """The devices of people."""

    db: Database
    channels: Channels
    clock: Clock

    async def key(self) -> str:
        """The newest public key, as `applicationServerKey` takes it."""
        return (await self.channels.keys.public())[0]

    async def subscribe(self, login: LoginView, subscription: Subscription, agent: str) -> DeviceView:
        """Keep this browser's subscription, new or renewed; it belongs to this login and falls silent with it.

        UserError when the subscription is none, or for the 21st device.
        """
        channel = await self.channels.channel("web_push")
        target = channel.checked(
            Target(address=subscription.endpoint, key=subscription.p256dh, secret=subscription.auth)
        )
        newest = await self.key()
        async with self.db.transaction(login.user.id) as repository:
            devices = repository(rows.DevicesRepository)
            known = {device.id: device for device in await devices.list()}
            former = known.get(_id(subscription.instead_of))
            if former is not None and subscription.instead_of != target.address:
                await devices.remove(former.id, "the browser subscribed anew")
                del known[former.id]
            if len(known) >= DEVICES_MOST and _id(target.address) not in known:
                raise UserError(f"At most {DEVICES_MOST} devices. Remove one you no longer use.")
            row = await devices.add(
                endpoint=target.address,
                p256dh=target.key,
                auth=target.secret,
                signed_for=subscription.signed_for or newest,
                login_id=login.login_id,
                name=(former.name if former else "") or browser_name(agent) or "Browser",
                agent=agent,
            )
        return self._view(row, await self.channels.keys.public())

    async def sync(self, login: LoginView, endpoint: str, signed_for: str) -> Literal["ok", "resubscribe"]:
        """On a page load: whether this browser's subscription stands here as it is there, for this login.

        resubscribe: call `subscribe` with a fresh or the same subscription; under the newest key when `signed_for`
        is not that one.
        """
        newest = await self.key()
        found = [row for row in await self._rows(login.user.id).list() if row.endpoint == endpoint]
        is_known = any(row.signed_for == signed_for and row.login_id == login.login_id for row in found)
        return "ok" if is_known and signed_for == newest else "resubscribe"

    async def unsubscribe(self, user: User, endpoint: str) -> None:
        """This browser switched push off; one that is not known is no error."""
        await self._rows(user.id).remove(_id(endpoint), "notifications were switched off on the device")

    async def shown(self, user: User, delivery_id: str) -> None:
        """The service worker showed this one (`data.id` of the push). NotFound when it is none of this user's."""
        if delivery_id.startswith(TEST):
            device_id = delivery_id.removeprefix(TEST)
        else:
            device_id = (await self.db.repository(DeliveriesRepository, user.id).get(delivery_id)).device_id
        await self._rows(user.id).shown(device_id)

    async def list(self, user: User) -> Sequence[DeviceView]:
        """The user's devices, the oldest first."""
        found = await self._rows(user.id).list()
        keys = await self.channels.keys.public() if found else ()
        return [self._view(row, keys) for row in found]

    async def rename(self, user: User, device_id: str, name: str) -> None:
        """Give it another name; UserError for none, NotFound when it is not there."""
        if not _tidy(name):
            raise UserError("Give it a name.", field="name")
        await self._rows(user.id).rename(device_id, _tidy(name))

    async def test(self, user: User, device_id: str) -> str:
        """Push a test to it now; the error for the person, "" when its push service took it."""
        rows_of = self._rows(user.id)
        row = await rows_of.get(device_id)
        error = await self.channels.test("web_push", target_of(row), TEST + row.id)
        await rows_of.pushed(device_id, error)
        return error

    async def remove(self, user: User, device_id: str) -> None:
        """Send it nothing more, forget it; NotFound when it is not there."""
        await self._rows(user.id).get(device_id)
        await self._rows(user.id).remove(device_id)

    def _rows(self, user_id: str) -> rows.DevicesRepository:
        return self.db.repository(rows.DevicesRepository, user_id)

    def _view(self, row: DeviceRow, keys: Sequence[str]) -> DeviceView:
        heard = row.shown_at or row.created_at
        is_silent = (
            row.pushed_at is not None
            and row.pushed_at - heard > SILENT_AFTER
            and self.clock() - row.pushed_at > SHOWN_WITHIN
        )
        state: DeviceState = "silent" if is_silent else "ok"
        if row.error:
            state = "failing"
        if row.signed_for not in keys:
            state = "expired"
        if row.login_id is None:
            state = "signed_out"
        return DeviceView(
            id=row.id,
            name=row.name,
            agent=row.agent,
            state=state,
            silent_since=heard if is_silent else None,
            error=row.error,
            created_at=row.created_at,
            pushed_at=row.pushed_at,
            shown_at=row.shown_at,
        )


def target_of(row: DeviceRow) -> Target:
    """Return the place that a push to this device goes to."""
    return Target(address=row.endpoint, key=row.p256dh, secret=row.auth, signed_for=row.signed_for)


def _id(endpoint: str) -> str:
    """The id under which the table keeps an endpoint."""
    return derived_id("push", endpoint)


def _tidy(name: str) -> str:
    return " ".join(name.split())[:NAME_CHARACTERS]
