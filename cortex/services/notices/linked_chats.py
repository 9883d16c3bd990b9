"""The port `LinkedChats`: notices go to the chats that people linked at messengers, by the clients of their cards."""

import asyncio
from collections.abc import Callable

from msgspec import Struct

from cortex.base.errors import DeliveryError, ServiceDown, ToolFailed
from cortex.ports.messengers import ChatClosed, NotSent
from cortex.services.integrations.clients import IntegrationClients
from cortex.storage.db import Database
from cortex.storage.messengers import LinkRow, MessengersRepository

NOT_LINKED = "Link your account under Account, Messengers."
_MARKS = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]<>#~|"})


class LinkedNotices(Struct, frozen=True, kw_only=True):
    """Sends to linked chats. clients: asked for at the first need."""

    db: Database
    clients: Callable[[], IntegrationClients]

    async def lacks(self, messenger: str, user_id: str) -> str:
        """Return what must be done before anything of this account can go there; "" when nothing."""
        if await self._link(messenger, user_id) is None:
            return NOT_LINKED
        names = await self.clients().integrations.names(messenger, user_id)
        return "" if names else "An administrator sets it up under Integrations, for this account too."

    async def tell(self, messenger: str, user_id: str, text: str, *, is_silent: bool, once: str) -> None:
        """Send it, once; one that may have arrived is sent again only where it would be known by its word."""
        link = await self._link(messenger, user_id)
        if link is None:
            raise DeliveryError(NOT_LINKED, fate="refused")
        sent, is_repeatable = 0, False
        try:
            async with self.clients().using(messenger, user_id=user_id) as client:
                lines = text.translate(_MARKS).replace("\n", "  \n")
                is_repeatable = client.is_repeatable
                for at, part in enumerate(await asyncio.to_thread(client.parts, lines)):
                    await client.send(link.chat, part, is_silent=is_silent, once=f"{once}:{at}")
                    sent += 1
        except NotSent as error:
            raise DeliveryError(
                error.message, fate="refused" if sent else "later", retry_after_s=error.wait_s or None
            ) from None
        except ChatClosed as error:
            raise DeliveryError(error.message, fate="refused") from None
        except ServiceDown as error:
            if is_repeatable:
                raise DeliveryError(error.message, fate="later") from None
            # there is no key against doubles: another channel tells it
            raise DeliveryError(error.message, fate="refused", is_unknown=True) from None
        except ToolFailed as error:
            raise DeliveryError(error.message, fate="refused") from None

    async def _link(self, messenger: str, user_id: str) -> LinkRow | None:
        return await self.db.repository(MessengersRepository, user_id).link_at(messenger)
