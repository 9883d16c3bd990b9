"""The needs of programs of MCP servers on this machine: proposed from their command, given when an admin ticks it.

Only what is proposed can be given here, by its exact path; each yes is in the audit log. What is given is part of the
server's card like any other of its settings.
"""

import asyncio
import shlex
from collections.abc import Collection, Sequence
from typing import Any

from msgspec import Struct, field

from cortex.base.errors import UserError
from cortex.base.user import User
from cortex.integrations.mcp.needs import Plan
from cortex.ports.mcp import FAMILY
from cortex.services.integrations.forms import checked
from cortex.services.integrations.mcp import McpTools
from cortex.storage.audit import AuditRepository
from cortex.storage.integrations import IntegrationRow
from cortex.storage.mcp_tools import McpToolsRepository

READ, CHANGE, NETWORK, INSTALL, ARGUMENTS = "read:", "change:", "network", "install", "arguments"


class ServerNeeds(Struct, frozen=True, kw_only=True):
    """A server with what its command lacks. `is_open`: whether there is something to say of it."""

    name: str
    command: str
    plan: Plan
    is_open: bool


class McpNeeds(Struct, frozen=True, kw_only=True):
    """The needs of the servers that are set up."""

    tools: McpTools
    _installing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def of(self, name: str) -> ServerNeeds | None:
        """Return what this one lacks; None for a server elsewhere. NotFound."""
        row = await self.tools.server(name)
        if not row.settings.get("command"):
            return None
        system = await self._system(row)
        plan = await asyncio.to_thread(system.plan, row.failure)
        is_new = row.worked_at is None and not row.failure and bool(plan.needs or plan.network or plan.added)
        is_open = bool(plan.problem or plan.package or plan.hidden or is_new or (row.failure and plan.needs))
        return ServerNeeds(name=row.name, command=str(row.settings["command"]), plan=plan, is_open=is_open)

    async def open_ones(self, names: Sequence[str]) -> list[ServerNeeds]:
        """Those of these servers of which there is something to say."""
        found = [await self.of(name) for name in names]
        return [one for one in found if one is not None and one.is_open]

    async def allow(self, user: User, name: str, chosen: Collection[str]) -> str:
        """Give what was ticked, and install what was; what came of it in a sentence. UserError, NotFound.

        chosen: `read:` or `change:` and a path, `network`, `install`, `arguments`.
        """
        user.must_be_admin("give folders to MCP servers")
        row = await self.tools.server(name)
        system = await self._system(row)
        plan: Plan = await asyncio.to_thread(system.plan, row.failure)
        settings = _settings(row, plan, chosen)
        if settings != row.settings:
            await self.tools.integrations.save(
                user, FAMILY, row.name, settings, is_new=False, is_same_place=not await self._is_known(row.name)
            )
        if INSTALL not in chosen or plan.package is None:
            return "Allowed."
        async with self._installing:
            return await self._install(user, name)

    async def _install(self, user: User, name: str) -> str:
        row = await self.tools.server(name)
        system = await self._system(row)
        plan: Plan = await asyncio.to_thread(system.plan)
        if plan.package is None:  # pressed twice
            return "Installed."
        version = await system.install()
        async with self.tools.db.transaction() as repository:
            detail = {"package": plan.package.spec, "from": plan.package.kind, "version": version}
            await repository(AuditRepository).add(user.id, "mcp.installed", row.name, detail)
        return f"Installed: {plan.package.spec} {version}."

    async def _is_known(self, name: str) -> bool:
        """Tell whether its tools were listed before. Its keys were given to it as it was then, and stay with that."""
        return bool(await self.tools.db.repository(McpToolsRepository).list(name))

    async def _system(self, row: IntegrationRow) -> Any:  # Any: `McpSystem`
        kind = self.tools.integrations.kind(FAMILY)
        form = checked(kind.form, row.settings, await self.tools.integrations.secrets.kept(kind, row.name))
        return kind.client(form, row.name)


def _settings(row: IntegrationRow, plan: Plan, chosen: Collection[str]) -> dict[str, Any]:
    """The card with what was ticked. UserError for what was not proposed."""
    given = {one for one in chosen if one not in (NETWORK, INSTALL, ARGUMENTS)}
    proposed = {f"{READ}{one.path}" for one in plan.needs}
    proposed |= {f"{CHANGE}{one.path}" for one in plan.needs if one.may_change}
    if plan.problem:
        raise UserError(plan.problem)
    given -= {f"{READ}{one}" for one in row.settings.get("readable", ())}  # pressed twice
    given -= {f"{way}{one}" for one in row.settings.get("writable", ()) for way in (READ, CHANGE)}
    if given - proposed:
        raise UserError("This is not what is proposed any more. Look at it again. Nothing was changed.")
    changed = [one.removeprefix(CHANGE) for one in sorted(given) if one.startswith(CHANGE)]
    read = [one.removeprefix(READ) for one in sorted(given) if one.startswith(READ)]
    settings = dict(row.settings)
    settings["writable"] = [*settings.get("writable", ()), *changed]
    settings["readable"] = [*settings.get("readable", ()), *(one for one in read if one not in changed)]
    if NETWORK in chosen:
        settings["has_network"] = True
    argv = shlex.split(settings["command"]) if plan.is_package else list(plan.argv)
    settings["command"] = shlex.join([*argv, *(plan.added if ARGUMENTS in chosen else ())])
    return settings
