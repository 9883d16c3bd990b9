"""The tools of MCP servers: seen when a server is asked, off until an admin allows each, off again once it changes.

What is allowed is kept as it was then, and that is what models are sent: a server that describes its tool in other
words later changes nothing but that the tool is off until somebody has read them.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from cortex.base import scan
from cortex.base.errors import Conflict, NotFound, ServiceDown, ToolFailed, UserError
from cortex.base.ids import digest
from cortex.base.user import User
from cortex.integrations.mcp.form import McpForm
from cortex.integrations.mcp.pasted import entries_of, form_of
from cortex.integrations.mcp.refusals import ServerFailed
from cortex.ports.mcp import FAMILY, LEFT_OUT, category_name
from cortex.services.integrations.clients import IntegrationClients
from cortex.services.integrations.forms import checked
from cortex.services.integrations.integrations import MOST_OF_A_KIND, NAME_CHARACTERS, Integrations
from cortex.storage.audit import AuditRepository
from cortex.storage.db import Database
from cortex.storage.home import Homes
from cortex.storage.integrations import IntegrationRow, IntegrationsRepository
from cortex.storage.mcp_tools import Listed, McpToolRow, McpToolsRepository
from cortex.storage.tool_settings import ToolSettingsRepository
from cortex.toolkit.registry import Registry
from cortex.toolkit.spec import Category, Tool

ONLY = "set up MCP servers"  # for admins
FILES_FOLDER = "mcp"
PROGRAMS = "mcp-programs"  # the folder in HOME of packages that were installed for servers
RESOURCE = "cortex_resource"  # a mark that no server can set: only the protocol's own fields are kept of a tool
READ_RESOURCE: Listed = {
    "name": "read_resource",
    "description": "Read a resource of this server, such as one that a result names.",
    "inputSchema": {
        "type": "object",
        "properties": {"uri": {"type": "string", "description": "Its address, as the server gave it."}},
        "required": ["uri"],
    },
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
    RESOURCE: True,
}
UNKNOWN = "It is not known whether the call was carried out: find out before it is made again."
NO_SESSION = "A new session was refused as well: behind a load balancer all requests of a session go to one server."
WORDS_CHARACTERS = 1_000


class SeenTool(Struct, frozen=True, kw_only=True):
    """A tool as the page shows it. `tool`: as it would be, or is, among the others; `is_taken`: its name is another's.

    `before`: as it was allowed, where it has changed since. `left_out`: why it cannot be used, "" = it can.
    """

    row: McpToolRow
    tool: Tool
    is_taken: bool = False
    left_out: str = ""
    before: Tool | None = None


class Choice(Struct, frozen=True, kw_only=True):
    """An admin's choice for a tool: its name, the digest of what the page showed of it, words of their own."""

    name: str
    digest: str
    is_allowed: bool
    words: str = ""


class McpTools(Struct, frozen=True, kw_only=True):
    """The tools that MCP servers offer, and those of them that are allowed."""

    db: Database
    registry: Registry
    integrations: Integrations
    clients: IntegrationClients

    async def categories(self) -> Sequence[Category]:
        """The allowed tools as categories of the registry; those of a server that is switched off too."""
        rows = await self.db.repository(McpToolsRepository).list()
        if not any(row.is_in_force for row in rows):
            return ()
        servers = {row.name: row for row in await self._servers()}
        return await asyncio.to_thread(_categories, servers, rows)

    async def servers(self) -> Sequence[tuple[IntegrationRow, Sequence[McpToolRow]]]:
        """Each server that is set up, with the tools that were seen of it."""
        rows = await self.db.repository(McpToolsRepository).list()
        return [(one, [row for row in rows if row.server == one.name]) for one in await self._servers()]

    async def server(self, name: str) -> IntegrationRow:
        """One of them; NotFound."""
        found = await self.db.repository(IntegrationsRepository).get(FAMILY, name)
        if found is None:
            raise NotFound(f"There is no MCP server {name!r}.")
        return found

    async def tools(self, name: str) -> Sequence[SeenTool]:
        """Return what was seen of a server, by name. NotFound."""
        server = await self.server(name)
        rows = await self.db.repository(McpToolsRepository).list(name)
        return await asyncio.to_thread(self._shown, server, rows)

    def _shown(self, server: IntegrationRow, rows: Sequence[McpToolRow]) -> list[SeenTool]:
        called = scan.load("cortex.toolkit.mcp").tool_names(server.name, [row.name for row in rows])
        shown = []
        for row in rows:
            seen = row.seen or row.allowed or {}
            tool, left_out = _made(server, seen, row.words, called[row.name])
            standing = self.registry.get(tool.name)
            before = row.allowed if row.has_changed else None
            shown.append(
                SeenTool(
                    row=row,
                    tool=tool,
                    is_taken=standing is not None and standing.category != category_name(server.name),
                    left_out=left_out,
                    before=_made(server, before, row.words, called[row.name])[0] if before else None,
                )
            )
        return shown

    async def look(self, user: User, name: str) -> int:
        """Ask the server for its tools now; how many it has. ToolFailed says why it does not answer."""
        user.must_be_admin(ONLY)
        await self.server(name)
        async with self.clients.using(FAMILY, name, user_id=user.id) as system:
            listing = await system.listing(is_fresh=True)
        await self.keep(name, listing.tools, has_resources=listing.has_resources)
        return sum(LEFT_OUT not in one for one in listing.tools.values())

    async def keep(self, name: str, tools: Mapping[str, Listed], *, has_resources: bool) -> None:
        """Keep what a server lists. What was allowed and is another now is off from the next message on."""
        listed = dict(tools)
        if has_resources:
            listed.setdefault(READ_RESOURCE["name"], READ_RESOURCE)
        async with self.db.transaction() as repository:
            if await repository(McpToolsRepository).seen(name, listed):
                changed = [row.name for row in await repository(McpToolsRepository).list(name) if row.has_changed]
                await repository(ToolSettingsRepository).changed()
                await repository(AuditRepository).add("", "mcp.changed", name, {"off": changed})

    async def choose(self, user: User, name: str, choices: Sequence[Choice]) -> int:
        """Allow and forbid as the page says; how many changed. Conflict where a tool is another than was shown."""
        user.must_be_admin(ONLY)
        await self.server(name)
        rows = {row.name: row for row in await self.db.repository(McpToolsRepository).list(name)}
        count = 0
        async with self.db.transaction() as repository:
            tools, audit = repository(McpToolsRepository), repository(AuditRepository)
            for one in choices:
                row, words = rows.get(one.name), one.words.strip()
                if len(words) > WORDS_CHARACTERS:
                    raise UserError(
                        f"Your own description can have at most {WORDS_CHARACTERS:,} characters ({one.name})."
                    )
                if row is None or (one.is_allowed == row.is_in_force and words == row.words):
                    continue
                if not one.is_allowed and row.allowed is not None:
                    await tools.forbid(name, one.name)
                    await audit.add(user.id, "mcp.forbidden", name, {"tool": one.name})
                elif one.is_allowed:
                    if why := (row.seen or {}).get(LEFT_OUT):
                        raise UserError(f"{one.name} cannot be used: {why} Nothing was allowed.")
                    if not await tools.allow(name, one.name, one.digest, words, user.id):
                        raise Conflict(
                            f"{one.name} changed while you were reading. Review it again. Nothing was allowed."
                        )
                    detail = {"tool": one.name, "digest": one.digest, "definition": row.seen, "words": words}
                    await audit.add(user.id, "mcp.allowed", name, detail)
                else:
                    continue
                count += 1
            if count:
                await repository(ToolSettingsRepository).changed()
        return count

    async def paste(self, user: User, text: str) -> Sequence[str]:
        """Set up the servers of the usual JSON; their names. UserError says what is wrong, and nothing is set up."""
        user.must_be_admin(ONLY)
        try:
            entries = entries_of(text)
        except ValueError as error:
            raise UserError(f"{error} Nothing was set up.") from None
        forms: dict[str, dict[str, Any]] = {}
        kind = self.integrations.kind(FAMILY)
        standing = {row.name for row in await self._servers()}
        for name, entry in entries.items():
            tidy = re.sub(r"[^\w-]+", "-", name.strip().casefold())[:NAME_CHARACTERS].strip("-") or "server"
            if tidy in standing or tidy in forms:
                raise UserError(f"A server with this name already exists: {tidy}. Nothing was added.")
            try:
                forms[tidy] = form_of(name, entry, Path.home())
                checked(kind.form, forms[tidy], {})
            except ValueError as error:
                raise UserError(f"{error} Nothing was set up.") from None
            except UserError as error:
                raise UserError(f"{name}: {error.message} Nothing was set up.") from None
        if len(standing) + len(forms) > MOST_OF_A_KIND:
            raise UserError(f"There can be at most {MOST_OF_A_KIND} servers. Nothing was set up.")
        for name, form in forms.items():
            await self.integrations.save(user, FAMILY, name, form, is_new=True)
        return list(forms)

    async def _servers(self) -> Sequence[IntegrationRow]:
        rows = await self.db.repository(IntegrationsRepository).list()
        return [row for row in rows if row.kind == FAMILY]


class UserMcp(Struct, frozen=True, kw_only=True):
    """Implements `McpServers` for one user."""

    tools: McpTools
    homes: Homes
    user_id: str

    async def call(self, server: str, tool: str, arguments: dict[str, Any]) -> str:
        """The tool's answer. What is not allowed as the server has it now is not called."""
        async with self.tools.clients.using(FAMILY, server, user_id=self.user_id) as system:
            row = await self._row(system, server, tool)
            try:
                answer = await _asked(system, row, arguments)
            except ServerFailed as failed:
                if not failed.is_once_more or not (failed.is_undone or _is_repeatable(row)):
                    raise _failure(failed, row) from failed
                row = await self._row(system, server, tool)  # in a new session, by what it offers there
                try:
                    answer = await _asked(system, row, arguments)
                except ServerFailed as again:
                    raise _failure(again, row, is_second=True) from again
        text = answer.text
        for file in answer.files:
            path = f"{FILES_FOLDER}/{digest(file.data.hex())}{file.suffix}"
            await self.homes.home_of(self.user_id).keep(f"files/{path}", file.data)
            text = text.replace(file.mark, path)
        if answer.is_error:
            raise ToolFailed(f"{tool} says that it failed: {text}", is_tainted=True)
        return str(text)

    async def _row(self, system: Any, server: str, tool: str) -> McpToolRow:  # Any: `McpSystem`
        """The tool as it is allowed, once what the server offers now was held against it. ToolFailed."""
        listing = await system.listing()
        if listing is not None:
            await self.tools.keep(server, listing.tools, has_resources=listing.has_resources)
        rows = await self.tools.db.repository(McpToolsRepository).list(server)
        row = next((one for one in rows if one.name == tool and one.is_in_force), None)
        if row is None:
            raise ToolFailed(
                f"{tool} of the MCP server {server} changed since an admin allowed it, so "
                f"it was not called. An admin can review it under "
                "Integrations."
            )
        return row


async def _asked(system: Any, row: McpToolRow, arguments: dict[str, Any]) -> Any:  # Any: `McpSystem`, `McpResult`
    try:
        if (row.allowed or {}).get(RESOURCE) is True:
            return await system.read(str(arguments["uri"]))
        return await system.call(row.name, arguments)
    except ToolFailed as failed:
        failed.is_unknown = failed.is_unknown and not _is_repeatable(row)
        raise


def _is_repeatable(row: McpToolRow) -> bool:
    """Tell whether a second call has no other effect than one, as the server said when the tool was allowed."""
    hints = (row.allowed or {}).get("annotations")
    return isinstance(hints, dict) and (hints.get("readOnlyHint") is True or hints.get("idempotentHint") is True)


def _failure(failed: ServerFailed, row: McpToolRow, *, is_second: bool = False) -> ServiceDown:
    """Put the failure in words: what happened, and whether it was done."""
    words = failed.message
    if failed.is_undone:
        words += f" {NO_SESSION}" if is_second and failed.is_once_more else ""
        return ServiceDown(f"{words} The call was not made.")
    if _is_repeatable(row):
        return ServiceDown(words)
    return ServiceDown(f"{words} {UNKNOWN}", is_unknown=True)


def _categories(servers: Mapping[str, IntegrationRow], rows: Sequence[McpToolRow]) -> list[Category]:
    """Loads what checks calls, which takes its time: run it off the event loop."""
    mcp = scan.load("cortex.toolkit.mcp")
    made = []
    for name, server in servers.items():
        seen = [row for row in rows if row.server == name]
        own = [mcp.McpTool.of(row.allowed, row.words) for row in seen if row.is_in_force and row.allowed]
        if own:
            made.append(mcp.mcp_category(_facts(server), own, [row.name for row in seen]))
    return made


def _made(server: IntegrationRow, listed: Listed, words: str, called: str) -> tuple[Tool, str]:
    """The tool, and why it cannot be used ("" = it can); in that case it is one that says nothing."""
    mcp = scan.load("cortex.toolkit.mcp")
    why = str(listed.get(LEFT_OUT, ""))
    if not why:
        try:
            return mcp.mcp_tool(_facts(server), mcp.McpTool.of(listed, words), called), ""
        except mcp.UNUSABLE as error:
            why = f"It cannot be read ({type(error).__name__})."
    return mcp.mcp_tool(_facts(server), mcp.McpTool(name=str(listed.get("name", "")), schema={}), called), why


def _facts(server: IntegrationRow) -> Any:  # Any: `McpServer` of a module that is loaded late
    form = McpForm.model_validate(server.settings)
    return scan.load("cortex.toolkit.mcp").McpServer(
        name=server.name, about=form.about, place=form.place, is_private=form.reads_private
    )
