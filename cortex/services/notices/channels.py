"""Opens notification channels as this server is set up, off the event loop, and says what one still lacks.

Who is notified by what is `preferences.py`, when is `outbox.py`.
"""

import asyncio
from collections.abc import Callable, Mapping

from msgspec import Struct, field

from cortex import notify
from cortex.base.clock import Clock
from cortex.base.errors import CortexError, DeliveryError
from cortex.base.settings import Settings
from cortex.notify import ChannelKind, ChannelRegister
from cortex.notify.context import STAND_IN, ChannelContext, Vapid, contact_from, smtp_from
from cortex.ports.channels import Channel, ChannelName, LinkedChats, TalkRooms, Target
from cortex.services.integrations.clients import IntegrationClients
from cortex.services.notices.push_keys import PushKeys

TALK = "talk"  # the integration behind the channel of this name


class Channels(Struct, frozen=True, kw_only=True):
    """The channels of this server."""

    settings: Settings
    keys: PushKeys
    clock: Clock
    talk: TalkRooms | None = None
    messengers: LinkedChats | None = None
    register: ChannelRegister = field(default_factory=ChannelRegister)
    _open: dict[ChannelName, tuple[ChannelKind, ChannelContext, Channel]] = field(default_factory=dict)

    @property
    def kinds(self) -> Mapping[ChannelName, ChannelKind]:
        """All that there are, set up or not, in the order of pages."""
        return self.register.held

    def label(self, name: ChannelName) -> str:
        """The words for a channel; the name alone of one that is gone, which old deliveries still hold."""
        kind = self.kinds.get(name)
        return kind.label if kind else name

    def lacks(self, name: ChannelName) -> str:
        """Return what must be set up before anything can go this way; "" when nothing."""
        return self.register.kind(name).lacks(self.settings)

    async def lacks_for(self, user_id: str, name: ChannelName) -> str:
        """The same for this account, where an admin decides on a page who may use it."""
        kind = self.register.kind(name)
        lacks = kind.lacks(self.settings)
        return await kind.lacks_for(self._context(None), user_id) if kind.lacks_for and not lacks else lacks

    async def channel(self, name: ChannelName) -> Channel:
        """The channel, opened anew when what it is opened with changed.

        UserError says what it lacks; ConfigError when no key can be opened.
        """
        kind = self.register.kind(name)
        context = self._context(await self._vapid() if kind.reaches_devices else None)
        known = self._open.get(name)
        if known is None or known[:2] != (kind, context):
            known = kind, context, await asyncio.to_thread(kind.open, context)
            self._open[name] = known
        return known[2]

    async def test(self, name: ChannelName, target: Target, id: str) -> str:
        """Send a test there, now; the error in words for the person, "" when it was taken."""
        try:
            await (await self.channel(name)).send(notify.trial(id, self.register.kind(name)), target)
        except DeliveryError as error:
            return f"{error.message} It may have arrived all the same." if error.is_unknown else error.message
        except CortexError as error:
            return error.message
        return ""

    async def _vapid(self) -> Vapid:
        contact = contact_from(self.settings)
        if contact == STAND_IN:
            contact = contact_from(self.settings, await self.keys.admin_mails())
        return Vapid(keys=await self.keys.keys(), subject=contact)

    @property
    def site(self) -> str:
        """Return the page's address as people type it."""
        return self.settings.public_url or f"http://{self.settings.page_host}:{self.settings.port}"

    def _context(self, vapid: Vapid | None) -> ChannelContext:
        return ChannelContext(
            site=self.site,
            hosts=self.settings.notify_places,
            vapid=vapid,
            smtp=smtp_from(self.settings),
            talk=self.talk,
            messengers=self.messengers,
            clock=self.clock,
        )


class TalkNotices(Struct, frozen=True, kw_only=True):
    """Implements `TalkRooms` of `ports/channels.py`. clients: asked for at the first need."""

    clients: Callable[[], IntegrationClients]

    async def lacks(self, user_id: str) -> str:
        """Return what must be done before anything of this account can go there; "" when nothing."""
        integrations = self.clients().integrations
        if await integrations.names(TALK, user_id):
            return ""
        return "An administrator sets Nextcloud Talk up under Integrations, for this account too."

    async def post(self, user_id: str, link: str, id: str, text: str) -> None:
        """Post it in the room of this link, once per id. ToolFailed."""
        async with self.clients().using(TALK, user_id=user_id) as talk:
            await talk.post_at(link, id, text)
