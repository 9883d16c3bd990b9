"""Opens notification channels as this server is set up, off the event loop, and says what one still lacks.

Knows no user and no notice: who is notified by what is `preferences.py`, when is `outbox.py`.
"""

import asyncio
from dataclasses import dataclass, field

from cortex import notify
from cortex.base.clock import Clock
from cortex.base.errors import CortexError, DeliveryError
from cortex.base.settings import Settings
from cortex.ports.channels import Channel, ChannelName, TalkRooms, Target
from cortex.services.notices.push_keys import PushKeys

LACKS_CONTACT = (
    "It needs CORTEX_PUSH_SUBJECT (mailto:you@example.org) or CORTEX_PUBLIC_URL (the page's https address) in the "
    "server's settings."
)
LACKS_TALK = "Nextcloud Talk is not set up on this server."
LACKS_SERVER = "It needs CORTEX_SMTP_HOST and CORTEX_SMTP_FROM in the server's settings."


@dataclass(frozen=True, slots=True, kw_only=True)
class Channels:
    """The channels of this server."""

    settings: Settings
    keys: PushKeys
    clock: Clock
    talk: TalkRooms | None = None
    _open: dict[tuple[ChannelName, tuple[str, ...]], Channel] = field(default_factory=dict)

    def lacks(self, name: ChannelName) -> str:
        """Return what must be set up before anything can go this way; "" when nothing."""
        if name == "web_push" and not notify.contact_from(self.settings):
            return LACKS_CONTACT
        if name == "email" and notify.smtp_from(self.settings) is None:
            return LACKS_SERVER
        return ""

    async def lacks_for(self, user_id: str, name: ChannelName) -> str:
        """The same for this account, where an admin decides on a page who may use it."""
        if name != "talk":
            return self.lacks(name)
        return await self.talk.lacks(user_id) if self.talk else LACKS_TALK

    async def channel(self, name: ChannelName) -> Channel:
        """The channel, read from its file once. UserError says what it lacks; ConfigError when no key can be opened."""
        keys = await self.keys.keys() if name == "web_push" else ()
        known = self._open.get((name, keys))
        if known is None:
            known = await asyncio.to_thread(notify.open_channel, name, self._surroundings(keys))
            for former in [place for place in self._open if place[0] == name]:
                del self._open[former]
            self._open[name, keys] = known
        return known

    async def test(self, name: ChannelName, target: Target, id: str) -> str:
        """Send a test there, now; the error in words for the person, "" when it was taken."""
        try:
            await (await self.channel(name)).send(notify.trial(id, name), target)
        except DeliveryError as error:
            return f"{error.message} It may have arrived all the same." if error.is_unknown else error.message
        except CortexError as error:
            return error.message
        return ""

    def _surroundings(self, keys: tuple[str, ...]) -> notify.ChannelContext:
        contact = notify.contact_from(self.settings)
        return notify.ChannelContext(
            site=self.settings.public_url or f"http://{self.settings.page_host}:{self.settings.port}",
            hosts=self.settings.notify_places,
            vapid=notify.Vapid(keys=keys, subject=contact) if keys and contact else None,
            smtp=notify.smtp_from(self.settings),
            talk=self.talk,
            clock=self.clock,
        )
