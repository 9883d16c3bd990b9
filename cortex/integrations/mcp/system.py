"""An MCP server as its card set it up: a program in the sandbox, or an address. Implements `IntegrationClient`.

Loading the protocol's package takes half a second and 24 MB: it is loaded with the first connection, in a thread.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cortex.base import private, scan
from cortex.base.clock import Clock
from cortex.base.errors import ServiceDown, ToolFailed, UserError
from cortex.base.hidden import show_hidden
from cortex.integrations.mcp.form import McpForm
from cortex.integrations.quota import MB, Quota
from cortex.integrations.sandbox import WORK, Limits, Sandbox
from cortex.ports.mcp import LEFT_OUT

if TYPE_CHECKING:
    from cortex.integrations.mcp.connection import McpConnection, McpListing
    from cortex.integrations.mcp.http import LoginStore
    from cortex.integrations.mcp.results import McpResult

LOGIN_S = 600.0
LIMITS = Limits(
    cpu_s=86_400,
    memory_bytes=1_000 * MB,
    address_bytes=200_000 * MB,  # node reserves far more than it takes
    processes=128,
    file_bytes=256 * MB,
    temporary_bytes=256 * MB,
    growth=Quota(most_bytes=1_000 * MB, most_files=50_000),
)


class ServerFailed(ServiceDown):
    """The server did not answer a request. `is_undone`: it was not begun. `is_once_more`: a new session may do it."""

    def __init__(self, message: str, *, is_undone: bool, is_once_more: bool) -> None:
        """Keep what decides whether the same may be asked again."""
        super().__init__(message)
        self.is_undone, self.is_once_more = is_undone, is_once_more


@dataclass(frozen=True, slots=True, kw_only=True)
class McpHost:
    """What this machine gives to servers. `folder`: below it each has one of its own. `closed`: folders that none gets.

    logins: where the login of the server of this name is kept. redirect: where a browser comes back to after one.
    """

    sandbox: Sandbox
    folder: Path
    closed: Sequence[Path]
    logins: "Callable[[str], LoginStore]"
    redirect: str
    clock: Clock


class McpSystem:
    """`name`: what the admin calls it, "" while it is only tried."""

    def __init__(self, form: McpForm, name: str, host: McpHost) -> None:
        self.form, self.name = form, name
        self._host = host
        self._connection: McpConnection | None = None
        self._making = asyncio.Lock()

    async def test(self) -> str:
        """Connect and count its tools."""
        listing = await self.listing(is_fresh=True)
        count = sum(LEFT_OUT not in one for one in listing.tools.values()) if listing else 0
        title = listing.title if listing and listing.title else "The server"
        named = f"{title} answers with {count} tool{'' if count == 1 else 's'}."
        return f"{named} Each is off until you allow it on the page of its tools."

    async def listing(self, *, is_fresh: bool = False) -> "McpListing | None":
        """What it offers, where that must be looked at again. ServiceDown, ToolFailed."""
        return await (await self._connected()).listing(is_fresh=is_fresh)

    async def call(self, tool: str, arguments: dict[str, Any]) -> "McpResult":
        """Call a tool. ServiceDown, ToolFailed."""
        return await (await self._connected()).call(tool, arguments)

    async def read(self, uri: str) -> "McpResult":
        """Read a resource. Fails as `call`."""
        return await (await self._connected()).read(uri)

    async def log_in(
        self, redirect: Callable[[str], Awaitable[None]], back: "asyncio.Future[Mapping[str, str]]"
    ) -> None:
        """Log in by OAuth with a person's browser, and keep what comes of it.

        redirect: is given the address to send it to. back: what it comes back with. ServiceDown, ToolFailed.
        """
        await self.close()
        opening = await asyncio.to_thread(scan.load, "cortex.integrations.mcp.opening")
        connection = opening.to_address(self, self._host, redirect, opening.came_back(back), connect_s=LOGIN_S)
        try:
            await connection.listing(is_fresh=True)
        finally:
            await connection.close()
        self._connection = None

    async def close(self) -> None:
        """End it."""
        if self._connection is not None:
            await self._connection.close()

    async def _connected(self) -> "McpConnection":
        async with self._making:
            if self._connection is None:
                module = await asyncio.to_thread(scan.load, "cortex.integrations.mcp.opening")
                self._connection = module.connection_of(self, self._host)
            return self._connection

    def _check_folders(self) -> None:
        """UserError for a folder of the form that is not there or is Cortex's own."""
        for text in (*self.form.readable, *self.form.writable):
            place = Path(text).resolve()
            if not place.exists():
                raise UserError(f"{show_hidden(text)} is not on this machine.")
            if any(place == one or one.is_relative_to(place) or place.is_relative_to(one) for one in self._host.closed):
                raise UserError(f"{show_hidden(text)} contains, or is inside, a folder that MCP servers never get.")

    async def program(self) -> AbstractAsyncContextManager[Any]:
        """The command in the sandbox; ToolFailed where this machine has none."""
        await asyncio.to_thread(self._check_folders)
        own = self._host.folder / (self.name or "trial")
        await asyncio.to_thread(private.make_folder, own)
        try:
            argv = self.form.argv
        except ValueError as error:
            raise ToolFailed("The command cannot be read.") from error
        return self._host.sandbox.service(
            argv,
            workspace=own,
            limits=LIMITS,
            env={"HOME": WORK, **self.form.variables},
            line_bytes=4_000_000,
            readable=tuple(map(Path, self.form.readable)),
            writable=tuple(map(Path, self.form.writable)),
            has_network=self.form.has_network,
        )
