"""The `HomeAssistant` that tools open for a user: the system of the card, with what this person may see and move of it.

The system is loaded at the first call; this module loads nothing of it.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from cortex.ports.home_assistant import (
    Entity,
    FoundEntities,
    HomeAssistant,
    HouseCommand,
    HouseCommands,
    NamedEntities,
    ServiceChecks,
    StateChange,
)
from cortex.services.accounts.accounts import Accounts
from cortex.services.integrations.clients import IntegrationClients

KIND = "home_assistant"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserHome:
    """Implements `HomeAssistant` and `ServiceChecks` for one user.

    Each call asks anew whether it is set up and open to this account.
    """

    clients: IntegrationClients
    accounts: Accounts
    user_id: str

    async def find(self, words: str, domain: str, area: str, most: int) -> FoundEntities:
        """Entities that fit all of it, best first."""
        async with self._home() as home:
            return await home.find(words, domain, area, most)

    async def resolve(self, words: str, domains: Sequence[str]) -> NamedEntities:
        """Return what the words mean for certain, or what comes near."""
        async with self._home() as home:
            return await home.resolve(words, domains)

    async def read(self, ids: Sequence[str]) -> Sequence[Entity]:
        """These as they stand now."""
        async with self._home() as home:
            return await home.read(ids)

    async def call(self, service: str, ids: Sequence[str], data: Mapping[str, object]) -> Sequence[Entity]:
        """Call a service; how the entities stand afterwards."""
        async with self._home() as home:
            return await home.call(service, ids, data)

    async def check(self, service: str, ids: Sequence[str], data: Mapping[str, object]) -> None:
        """Look at a call without making it."""
        async with opened(self.clients, self.accounts, self.user_id) as (system, name):
            checks: ServiceChecks = await system.home(name)
            await checks.check(service, ids, data)

    async def history(self, id: str, hours: int) -> Sequence[StateChange]:
        """Its states over the last hours."""
        async with self._home() as home:
            return await home.history(id, hours)

    @asynccontextmanager
    async def _home(self) -> AsyncIterator[HomeAssistant]:
        async with opened(self.clients, self.accounts, self.user_id) as (system, name):
            yield await system.home(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserCommands:
    """Implements `HouseCommands` for one user."""

    clients: IntegrationClients
    accounts: Accounts
    user_id: str

    async def understand(self, text: str) -> HouseCommand | None:
        """Return what the text orders for certain. ToolFailed where nothing is set up, or it does not answer."""
        async with opened(self.clients, self.accounts, self.user_id) as (system, name):
            reader: HouseCommands = await system.commands(name)
            return await reader.understand(text)


@asynccontextmanager
async def opened(clients: IntegrationClients, accounts: Accounts, user_id: str) -> AsyncIterator[tuple[Any, str]]:
    """The system, which only the card knows, and the account's name: both read in one transaction, let go of here."""
    db = clients.integrations.db
    async with db.one_view():
        name = (await accounts.user(user_id)).name
        async with clients.using(KIND, user_id=user_id) as system:
            await db.end_view()
            yield system, name
