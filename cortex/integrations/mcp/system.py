"""An MCP server as its card set it up: a program in the sandbox, or an address. Implements `IntegrationClient`.

Loading the protocol's package takes half a second and 24 MB: it is loaded with the first connection, in a thread.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from cortex.base import private, scan
from cortex.base.clock import Clock
from cortex.base.errors import ToolFailed, UserError
from cortex.base.hidden import show_hidden
from cortex.base.ids import digest
from cortex.integrations.mcp.form import McpForm
from cortex.integrations.mcp.host import Machine
from cortex.integrations.mcp.needs import Plan, named_in, plan_of
from cortex.integrations.mcp.packages import McpPackage, install, installed_in, package_of
from cortex.integrations.quota import MB, Quota
from cortex.integrations.sandbox import WORK, Limits, Sandbox
from cortex.ports.integrations import LoginStore
from cortex.ports.mcp import LEFT_OUT

if TYPE_CHECKING:
    from cortex.integrations.mcp.connection import McpConnection, McpListing
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


class McpHost(Struct, frozen=True, kw_only=True):
    """The parts of this machine that servers get. `folder`: each has one below it. `closed`: folders that none gets.

    programs: below it lie the packages that were installed for them, read-only for each. machine: where programs are.
    logins: where the login of the server of this name is kept. redirect: where a browser comes back to after one.
    """

    sandbox: Sandbox
    folder: Path
    closed: Sequence[Path]
    programs: Path
    machine: Machine
    logins: Callable[[str], LoginStore]
    redirect: Callable[[], str]
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
        """Return what it offers, where that must be looked at again. ServiceDown, ToolFailed."""
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

    def plan(self, missed: str = "") -> Plan:
        """Return how the command runs here, and what it lacks. `missed`: words in which it said what it misses.

        Reads the disk: run it off the event loop.
        """
        form, machine = self.form, self._host.machine
        try:
            argv = form.argv
        except ValueError as error:
            raise ToolFailed("The command cannot be read.") from error
        if not argv or argv[0].startswith(f"{WORK}/"):
            return Plan(argv=tuple(argv))
        if "/" in argv[0] and not argv[0].startswith("/"):
            is_there = os.path.exists(self._host.folder / (self.name or "trial") / argv[0])
            told = f"{show_hidden(argv[0])} is not in the folder of this server: enter the whole path of the program."
            return Plan(argv=tuple(argv), problem="" if is_there else told)
        granted = [Path(one) for one in (*form.readable, *form.writable)]
        package, installed = _package(argv), {}
        if package is not None and (here := installed_in(self._folder_of(package), package)) is not None:
            installed[package.key] = here
            granted.append(self._folder_of(package))
        plan = plan_of(argv, form.variables, granted, machine, installed)
        known = [*granted, *(Path(one.path) for one in plan.needs)]
        more = named_in(missed, known, machine)
        return replace(plan, needs=(*plan.needs, *more))

    async def install(self) -> str:
        """Fetch the package that the command names, with all that it needs; its version. UserError says what failed."""
        package = _package(self.form.argv)
        if package is None:
            raise UserError("The command names no package.")
        made = await install(package, self._folder_of(package), self._host.machine, os.environ)
        return made.version

    def _folder_of(self, package: McpPackage) -> Path:
        return self._host.programs / f"{self.name or 'trial'}-{digest(package.key)[:10]}"

    def _check_folders(self) -> None:
        """UserError for a folder of the form that is not there or is Cortex's own."""
        for text in (*self.form.readable, *self.form.writable):
            place = Path(text).resolve()
            if not os.path.exists(place):
                raise UserError(f"{show_hidden(text)} is not on this machine.")
            if any(place == one or one.is_relative_to(place) or place.is_relative_to(one) for one in self._host.closed):
                raise UserError(f"{show_hidden(text)} contains, or is inside, a folder that MCP servers never get.")

    async def program(self) -> AbstractAsyncContextManager[Any]:
        """The command in the sandbox; ToolFailed where this machine has none."""
        await asyncio.to_thread(self._check_folders)
        own = self._host.folder / (self.name or "trial")
        await asyncio.to_thread(private.make_folder, own)
        argv, readable = await asyncio.to_thread(self._command_line)
        return self._host.sandbox.service(
            argv,
            workspace=own,
            limits=LIMITS,
            env={"HOME": WORK, **self.form.variables},
            line_bytes=4_000_000,
            readable=readable,
            writable=tuple(map(Path, self.form.writable)),
            has_network=self.form.has_network,
        )

    def _command_line(self) -> tuple[tuple[str, ...], tuple[Path, ...]]:
        """The command as it runs, and what it may read; ToolFailed where it could not be seen."""
        plan = self.plan()
        readable = tuple(map(Path, self.form.readable))
        if plan.problem:
            raise ToolFailed(plan.problem)
        if plan.package is not None and not self.form.has_network:  # with the network it may fetch it itself
            raise ToolFailed(f"{plan.package.spec} is not installed: press Install on the page of its tools.")
        if plan.hidden:
            raise ToolFailed(f"{plan.hidden} is hidden by the sandbox: allow its folder on the page of its tools.")
        package = _package(self.form.argv)
        if package is not None and plan.package is None:
            readable = (*readable, self._folder_of(package))
        return plan.argv, readable


def _package(argv: Sequence[str]) -> McpPackage | None:
    """The package that a line names; None also where it cannot be read."""
    try:
        return package_of(argv)
    except UserError:
        return None
