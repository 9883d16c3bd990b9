"""Logins to MCP servers by OAuth: begun by an admin on the page, finished when their browser comes back.

What is open is kept by the process that began it, for ten minutes; what comes of it is sealed with the server.
"""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct, field

from cortex.base.crypto import Vault
from cortex.base.errors import ServiceDown, UserError
from cortex.base.user import User
from cortex.ports.mcp import FAMILY, LOGIN
from cortex.services.integrations.mcp import McpTools
from cortex.storage.db import Database
from cortex.storage.secrets import ServerSecretsRepository

OPEN_S = 600.0
BEGIN_S = 40.0
FINISH_S = 40.0
AGAIN = "This login was not started here or has expired. Start it again on the server's page."


class SealedLogin(Struct, frozen=True, kw_only=True):
    """Implements `LoginStore`: the login at one server, sealed, under the name that goes with its card."""

    db: Database
    vault: Vault
    name: str = ""
    kind: str = FAMILY

    async def load(self) -> str:
        """Return what is kept, "" for nothing."""
        sealed = await self.db.repository(ServerSecretsRepository).get(self._called)
        return "" if sealed is None else await asyncio.to_thread(self.vault.unseal, sealed)

    async def save(self, text: str) -> None:
        """Keep it."""
        sealed = await asyncio.to_thread(self.vault.seal, text)
        await self.db.repository(ServerSecretsRepository).put(self._called, sealed)

    @property
    def _called(self) -> str:
        return f"integration:{self.kind}:{self.name}:{LOGIN}"


class _Open(Struct):
    user_id: str
    server: str
    address: "asyncio.Future[str]"
    back: "asyncio.Future[Mapping[str, str]]"
    task: "asyncio.Task[None] | None" = None


class McpLogins(Struct, frozen=True, kw_only=True):
    """The logins that are open in this process."""

    tools: McpTools
    _open: dict[str, _Open] = field(default_factory=dict)

    async def begin(self, user: User, name: str) -> str:
        """Begin a login; the address for the admin's browser, "" where none is wanted. UserError, ToolFailed."""
        user.must_be_admin("log in to MCP servers")
        row = await self.tools.server(name)
        system = await self.tools.clients.peek(FAMILY, name, user_id=user.id)
        if not system.form.has_login:
            raise UserError("This server is configured without a login. Switch it on in its settings first.")
        loop = asyncio.get_running_loop()
        opened = _Open(user.id, row.name, loop.create_future(), loop.create_future())
        opened.task = asyncio.ensure_future(self._log_in(opened, system))  # noqa: TID251 - ends by itself within OPEN_S
        waited: set[asyncio.Future[Any]] = {opened.task, opened.address}
        await asyncio.wait(waited, timeout=BEGIN_S, return_when=asyncio.FIRST_COMPLETED)
        if opened.address.done():
            address = opened.address.result()
            self._open[_state(address)] = opened
            return address
        if opened.task.done():
            opened.task.result()
            return ""
        opened.task.cancel()
        raise ServiceDown(f"The server did not say within {BEGIN_S:.0f} seconds where to log in.")

    async def finish(self, user: User, given: Mapping[str, str]) -> str:
        """The browser is back with what the login server gave it; the server's name. UserError, ToolFailed."""
        opened = self._open.pop(given.get("state", ""), None)
        if opened is None or opened.task is None or opened.user_id != user.id:
            raise UserError(AGAIN)
        opened.back.set_result(given)
        done, _ = await asyncio.wait({opened.task}, timeout=FINISH_S)
        if not done:
            raise ServiceDown("The login server did not answer in time. Try again.")
        opened.task.result()
        return opened.server

    async def _log_in(self, opened: _Open, system: Any) -> None:  # Any: `McpSystem`
        async def redirect(address: str) -> None:
            opened.address.set_result(address)

        try:
            async with asyncio.timeout(OPEN_S):
                await system.log_in(redirect, opened.back)
        except TimeoutError as error:
            raise UserError(AGAIN) from error
        finally:
            for state in [state for state, one in self._open.items() if one is opened]:
                del self._open[state]


def _state(address: str) -> str:
    return (parse_qs(urlsplit(address).query).get("state") or [""])[0]
