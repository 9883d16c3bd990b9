"""Opens the journals that an Aether server keeps, for those who may use it; the others' are in Cortex's own tables."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct

from cortex.ports.journals import JournalBook
from cortex.services.integrations.clients import IntegrationClients
from cortex.storage.accounts import AccountsRepository

AETHER = "aether"


class ServerJournals(Struct, frozen=True, kw_only=True):
    """The journals of those who have them on the server that an admin set up."""

    clients: IntegrationClients

    @asynccontextmanager
    async def open(self, user_id: str, by: str) -> AsyncIterator[JournalBook | None]:
        """The user's journals there; None where no server is set up, it is off, or not for this account.

        ToolFailed leaves the block when the server does not answer; it is never passed over in silence.
        """
        if not await self.clients.integrations.names(AETHER, user_id):
            yield None
            return
        account = await self.clients.integrations.db.repository(AccountsRepository).get(user_id)
        async with self.clients.using(AETHER, user_id=user_id) as server:
            yield server.journals(user_id, account.time_zone, by)


class UserJournalPlace(Struct, frozen=True, kw_only=True):
    """Implements the `JournalPlace` port for one user."""

    clients: IntegrationClients
    user_id: str

    async def server(self) -> str:
        """The host of the server that keeps the user's journals, "" where Cortex does."""
        if not await self.clients.integrations.names(AETHER, self.user_id):
            return ""
        return str((await self.clients.peek(AETHER, user_id=self.user_id)).host)
