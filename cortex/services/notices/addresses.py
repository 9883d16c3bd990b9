"""Where a person's channels lead to: e-mail address, ntfy topic, room of Talk, webhook.

Sealed, for an address may be a secret.

Push devices stand in `devices.py`. Nothing here decides who is notified when.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Literal, get_args
from urllib.parse import urlsplit

from cortex import notify
from cortex.base.crypto import Vault
from cortex.base.errors import ConfigError, NotFound, UserError
from cortex.base.ids import new_id
from cortex.base.user import User
from cortex.ports.channels import ChannelName, Target
from cortex.services.notices.channels import Channels
from cortex.storage.db import Database
from cortex.storage.deliveries import DeliveriesRepository
from cortex.storage.secrets import SecretsRepository

Addressed = Literal["email", "ntfy", "talk", "webhook"]
ADDRESSED: tuple[Addressed, ...] = get_args(Addressed)
LOOKED_AT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelView:
    """A channel for its page. `lacks`: what an administrator must set up first, "" for nothing.

    `address`: as it may be shown, "" when none is set; `has_secret`: one is kept, and never shown. `error`, `error_at`:
    why the newest delivery there failed, "" and None when it did not; `is_tried_again`: it is not over yet.
    """

    name: ChannelName
    lacks: str
    address: str = ""
    has_secret: bool = False
    error: str = ""
    error_at: datetime | None = None
    is_tried_again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """The addresses of people."""

    db: Database
    vault: Vault
    channels: Channels

    async def named(self, user_id: str) -> frozenset[ChannelName]:
        """The channels for which this person has an address, and which this server can use."""
        kept = await self.db.repository(SecretsRepository, user_id).names()
        named = [name for name in ADDRESSED if _name(name) in kept]
        return frozenset([name for name in named if not await self.channels.lacks_for(user_id, name)])

    async def target(self, user_id: str, channel: ChannelName) -> Target | None:
        """The address, None when there is none. ConfigError when it was sealed under another key of the server."""
        sealed = await self.db.repository(SecretsRepository, user_id).get(_name(channel))
        return None if sealed is None else Target(**json.loads(await asyncio.to_thread(self.vault.unseal, sealed)))

    async def views(self, user: User) -> tuple[ChannelView, ...]:
        """Every channel that takes an address, with how it fared of late."""
        rows = await self.db.repository(DeliveriesRepository, user.id).list(limit=LOOKED_AT)
        found: list[ChannelView] = []
        for name in ADDRESSED:
            newest = next((row for row in rows if row.channel == name and row.state != "dropped"), None)
            view = ChannelView(name=name, lacks=await self.channels.lacks_for(user.id, name))
            if newest is not None and newest.error:
                error_at = newest.ended_at or newest.created_at
                view = replace(view, error=newest.error, error_at=error_at, is_tried_again=newest.ended_at is None)
            try:
                target = await self.target(user.id, name)
            except ConfigError as error:
                view = replace(view, address="?", error=error.message)
            else:
                view = view if target is None else replace(view, address=_shown(target), has_secret=bool(target.secret))
            found.append(view)
        return tuple(found)

    async def put(self, user: User, channel: str, address: str, secret: str = "") -> str:
        """Keep an address; a secret that was made for it, to be shown this once, else "".

        No `secret`: the one that is kept goes on with the same server, and a webhook without one is given one.
        UserError names the field that is wrong, or says what the server lacks.
        """
        name = _addressed(channel)
        former = await self._readable(user.id, name)
        kept = former.secret if former and _place(former.address) == _place(address.strip()) else ""
        target, made = Target(address=address.strip(), secret=secret.strip() or kept), ""
        if name == "webhook" and not target.secret:
            made = await asyncio.to_thread(notify.new_secret)
            target = replace(target, secret=made)
        if name == "talk":
            target = replace(target, key=user.id)
        target = (await self.channels.channel(name)).checked(target)
        sealed = await asyncio.to_thread(self.vault.seal, json.dumps(asdict(target)))
        await self.db.repository(SecretsRepository, user.id).put(_name(name), sealed)
        return made

    async def remove(self, user: User, channel: str) -> None:
        """Forget it; what waits for it is dropped when its time comes. NotFound when there is none."""
        if not await self.db.repository(SecretsRepository, user.id).remove(_name(_addressed(channel))):
            raise NotFound("This address does not exist.")

    async def test(self, user: User, channel: str) -> str:
        """Send a test there now; the error for the person, "" when it was taken. UserError when no address is set."""
        name = _addressed(channel)
        target = await self.target(user.id, name)
        if target is None:
            raise UserError("Save an address first.", field="address")
        return await self.channels.test(name, target, new_id())

    async def _readable(self, user_id: str, name: Addressed) -> Target | None:
        try:
            return await self.target(user_id, name)
        except ConfigError:  # sealed under a former key: it is being replaced
            return None


def _name(channel: str) -> str:
    return f"reach:{channel}"


def _addressed(channel: str) -> Addressed:
    found: Sequence[Addressed] = [name for name in ADDRESSED if name == channel]
    if not found:
        raise NotFound(f"There is no channel {channel!r} with an address.")
    return found[0]


def _place(address: str) -> str:
    """Return what a secret belongs to: the server."""
    return urlsplit(address).netloc.lower() if "://" in address else ""


def _shown(target: Target) -> str:
    """A mail address as it is; of a page only its server, for the rest of it may be the secret."""
    place = _place(target.address)
    return f"{urlsplit(target.address).scheme}://{place}/…" if place else target.address
