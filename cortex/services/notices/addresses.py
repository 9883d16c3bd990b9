"""The places that a person's channels lead to, by the fields of each. Sealed, for an address may be a secret.

Push devices are in `devices.py`. Nothing here decides who is notified when.
"""

import asyncio
import json
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base.crypto import Vault
from cortex.base.errors import ConfigError, NotFound, UserError
from cortex.base.ids import new_id
from cortex.base.record import as_dict
from cortex.base.user import User
from cortex.notify import ChannelField, ChannelKind
from cortex.ports.channels import ChannelName, Target
from cortex.services.notices.channels import Channels
from cortex.storage.db import Database
from cortex.storage.deliveries import DeliveriesRepository
from cortex.storage.messengers import MessengersRepository
from cortex.storage.secrets import ADDRESSES, SecretsRepository

LOOKED_AT = 50


class ChannelView(Struct, frozen=True, kw_only=True):
    """A channel for its page. `lacks`: what an administrator must set up first, "" for nothing.

    `address`: as it may be shown, "" when none is set; `values`: what its fields may show, by their names;
    `has_secret`: one is kept, and never shown. `error`, `error_at`: why the newest delivery there failed, "" and None
    when it did not; `is_tried_again`: it is not over yet.
    """

    name: ChannelName
    kind: ChannelKind
    lacks: str
    address: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    has_secret: bool = False
    error: str = ""
    error_at: datetime | None = None
    is_tried_again: bool = False


class Addresses(Struct, frozen=True, kw_only=True):
    """The addresses of people."""

    db: Database
    vault: Vault
    channels: Channels

    async def named(self, user_id: str) -> frozenset[ChannelName]:
        """The channels for which this person has an address, and which this server can use."""
        kept = await self.db.repository(SecretsRepository, user_id).names()
        links = {link.messenger for link in await self.db.repository(MessengersRepository, user_id).links()}
        kinds = self.channels.kinds.items()
        named = [name for name, kind in kinds if (name in links if kind.is_linked else ADDRESSES + name in kept)]
        return frozenset([name for name in named if not await self.channels.lacks_for(user_id, name)])

    async def target(self, user_id: str, channel: ChannelName) -> Target | None:
        """The address, None when there is none. ConfigError when it was sealed under another key of the server."""
        kind = self.channels.kinds.get(channel)
        if kind is not None and kind.is_linked:
            return Target(address="", key=user_id)
        sealed = await self.db.repository(SecretsRepository, user_id).get(ADDRESSES + channel)
        return None if sealed is None else Target(**json.loads(await asyncio.to_thread(self.vault.unseal, sealed)))

    async def views(self, user: User) -> tuple[ChannelView, ...]:
        """Every channel that takes an address, with how it fared of late."""
        rows = await self.db.repository(DeliveriesRepository, user.id).list(limit=LOOKED_AT)
        found: list[ChannelView] = []
        for name, kind in self._kinds.items():
            newest = next((row for row in rows if row.channel == name and row.state != "dropped"), None)
            view = ChannelView(name=name, kind=kind, lacks=await self.channels.lacks_for(user.id, name))
            if newest is not None and newest.error:
                error_at = newest.ended_at or newest.created_at
                view = replace(view, error=newest.error, error_at=error_at, is_tried_again=newest.ended_at is None)
            try:
                target = await self.target(user.id, name)
            except ConfigError as error:
                view = replace(view, address="?", error=error.message)
            else:
                view = view if target is None else _with(view, target)
            found.append(view)
        return tuple(found)

    async def put(self, user: User, channel: ChannelName, address: str, secret: str = "", key: str = "") -> str:
        """Keep what was typed into the channel's fields; a secret that was made for it, to be shown this once, else "".

        No `secret`: the one that is kept goes on with the same server, or the channel makes one. UserError names the
        field that is wrong, or says what the server lacks.
        """
        fields = {one.name: one for one in self._kind(channel).fields}
        former = await self._readable(user.id, channel)
        kept = former.secret if former and _place(former.address) == _place(address.strip()) else ""
        target, made = Target(address=address.strip(), secret=secret.strip() or kept), ""
        target = replace(target, key=key.strip() if "key" in fields else user.id)
        make = fields["secret"].made if "secret" in fields else None
        if make and not target.secret:
            made = await asyncio.to_thread(make)
            target = replace(target, secret=made)
        target = (await self.channels.channel(channel)).checked(target)
        sealed = await asyncio.to_thread(self.vault.seal, json.dumps(as_dict(target)))
        await self.db.repository(SecretsRepository, user.id).put(ADDRESSES + channel, sealed)
        return made

    async def remove(self, user: User, channel: str) -> None:
        """Forget it; what waits for it is dropped when its time comes. NotFound when there is none."""
        self._kind(channel)
        if not await self.db.repository(SecretsRepository, user.id).remove(ADDRESSES + channel):
            raise NotFound("This address does not exist.")

    async def test(self, user: User, channel: ChannelName) -> str:
        """Send a test there now; the error for the person, "" when it was taken. UserError when no address is set."""
        self._kind(channel)
        target = await self.target(user.id, channel)
        if target is None:
            raise UserError("Save an address first.", field="address")
        return await self.channels.test(channel, target, new_id())

    async def _readable(self, user_id: str, name: ChannelName) -> Target | None:
        try:
            return await self.target(user_id, name)
        except ConfigError:  # sealed under a former key: it is being replaced
            return None

    @property
    def _kinds(self) -> Mapping[ChannelName, ChannelKind]:
        """Return those that take an address."""
        return {name: kind for name, kind in self.channels.kinds.items() if kind.fields}

    def _kind(self, channel: ChannelName) -> ChannelKind:
        kind = self._kinds.get(channel)
        if kind is None:
            raise NotFound(f"There is no channel {channel!r} with an address.")
        return kind


def _place(address: str) -> str:
    """Return what a secret belongs to: the server."""
    return urlsplit(address).netloc.lower() if "://" in address else ""


def _with(view: ChannelView, target: Target) -> ChannelView:
    """The view with what of the target may be shown."""
    shown = [one for one in view.kind.fields if one.name != "secret"]
    values: dict[str, str] = {one.name: _shown(getattr(target, one.name), one) for one in shown}
    return replace(view, address=values["address"], values=values, has_secret=bool(target.secret))


def _shown(value: str, field: ChannelField) -> str:
    """The value whole where its field says so; else of a web address only its server: the rest may be the secret."""
    place = _place(value)
    if field.is_shown or not value:
        return value
    return f"{urlsplit(value).scheme}://{place}/…" if place else "…"
