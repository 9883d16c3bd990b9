"""The plug-in door: packages that bring tools or channels, none of them imported until an admin allows it.

What is allowed is a package as its files were then: one that changed is not loaded until it is allowed again. It runs
with all rights of Cortex, so what it brings is checked and kept apart (`toolkit/plugins.py`), but not shut in.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from threading import Thread
from types import ModuleType
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base import scan
from cortex.base.errors import Conflict, NotFound, UserError
from cortex.base.user import User
from cortex.integrations.plugins import CHANNELS, TOOLS, PluginPackage, installed
from cortex.services.tools.plugin_channels import kept_apart
from cortex.storage.audit import AuditRepository
from cortex.storage.db import Database
from cortex.storage.integrations import PLUGIN, IntegrationRow, IntegrationsRepository
from cortex.storage.tool_settings import ToolSettingsRepository
from cortex.toolkit.plugins import attempted, plugin_category
from cortex.toolkit.registry import Registry
from cortex.toolkit.spec import Category

ONLY = "allow plug-ins"  # for admins
KIND = PLUGIN  # of its row among the integrations
LOAD_S = 10.0
PutChannels = Callable[[Mapping[str, ModuleType]], object]  # holds these channels, or raises and holds those before
State = Literal["new", "allowed", "failed", "changed", "waiting", "gone", "unfit"]

log = logging.getLogger(__name__)


class LoadedPlugin(Struct, frozen=True, kw_only=True):
    """A package as this process has it, as it was then.

    `faults`, `refused`: what could not be taken, in words; the latter of its channels.
    """

    digest: str
    categories: tuple[Category, ...] = ()
    channels: Mapping[str, ModuleType] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


class Plugin(Struct, frozen=True, kw_only=True):
    """A package as the page shows it. `row`: how it was allowed, None = never; `package`: None = not installed.

    `tools`, `channels`: what it brings here; `faults`: what of it cannot be used, and why.
    """

    name: str
    state: State
    package: PluginPackage | None
    row: IntegrationRow | None
    tools: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def allowed_version(self) -> str:
        """The version that was allowed, "" = none."""
        return str(self.row.settings.get("version", "")) if self.row else ""


class Plugins:
    """Packages that are installed beside Cortex, and which of them an admin allowed."""

    def __init__(self, db: Database, registry: Registry, put_channels: PutChannels) -> None:
        """Look at nothing yet. put_channels: is given the channels of all in force, in place of those before."""
        self._db = db
        self._registry = registry
        self._put_channels = put_channels
        self._loaded: dict[str, LoadedPlugin] = {}
        self._used: Sequence[str] = ()
        self._number = -1  # of the changes that `refresh` knows
        self._one_at_a_time = asyncio.Lock()

    async def list(self) -> Sequence[Plugin]:
        """Every package with such entry points, and those that were allowed and are gone; by name. Imports none.

        One that is found changed goes out of use, here and in every process, with the next message.
        """
        rows = await self._rows()
        packages = {one.name: one for one in await asyncio.to_thread(installed)}
        found = [self._shown(name, packages.get(name), rows.get(name)) for name in sorted({*packages, *rows})]
        if any(one.state in ("changed", "gone", "unfit") and one.name in self._used for one in found):
            async with self._db.transaction() as repository:
                await repository(ToolSettingsRepository).changed()
        return found

    async def count(self) -> int:
        """Return how many are allowed."""
        return len(await self._rows())

    async def allow(self, user: User, name: str, digest: str) -> None:
        """Let it be loaded as its files are now. Conflict where they are not what the page showed.

        A process that has not loaded it before does so with the next message; another one needs a restart.
        """
        user.must_be_admin(ONLY)
        package = next((one for one in await asyncio.to_thread(installed) if one.name == name), None)
        if package is None:
            raise NotFound(f"No plug-in {name!r} is installed.")
        if package.unfit:
            raise UserError(f"{name} cannot be allowed. {package.unfit}")
        if package.digest != digest:
            raise Conflict(f"{name} changed while you were reading. Look at it again. Nothing was allowed.")
        detail = {"version": package.version, "digest": digest}
        async with self._db.transaction() as repository:
            before = await repository(IntegrationsRepository).get(KIND, name)
            row = IntegrationRow(kind=KIND, name=name, settings=detail)
            await repository(IntegrationsRepository).save(row, user.id)
            await repository(ToolSettingsRepository).changed()
            was = before.settings if before else None
            await repository(AuditRepository).add(user.id, "plugin.allowed", name, {**detail, "was": was})

    async def revoke(self, user: User, name: str) -> None:
        """Let nobody use it from the next message on; what is in memory of it goes with the next restart. NotFound."""
        user.must_be_admin(ONLY)
        async with self._db.transaction() as repository:
            if not await repository(IntegrationsRepository).remove(KIND, name):
                raise NotFound(f"The plug-in {name!r} is not allowed.")
            await repository(ToolSettingsRepository).changed()
            await repository(AuditRepository).add(user.id, "plugin.revoked", name)

    async def categories(self) -> Sequence[Category]:
        """The tools of those that are allowed, each loaded at its first need; what fails at that is left out.

        Their channels are handed on as well.
        """
        rows = await self._rows()
        if not (rows or self._loaded):
            return ()
        async with self._one_at_a_time:
            self._used = await self._in_force(rows)
            self._hand_on_channels(self._used)
            return [category for name in self._used for category in self._loaded[name].categories]

    async def refresh(self) -> None:
        """The same where an admin changed something since, in whatever process; else one number is read."""
        number = await self._db.repository(ToolSettingsRepository).number()
        if number != self._number:
            await self.categories()
            self._number = number

    async def _in_force(self, rows: Mapping[str, IntegrationRow]) -> Sequence[str]:
        """The names of those that are allowed as they are, and that this process has so."""
        found = []
        for package in await asyncio.to_thread(installed):
            row = rows.get(package.name)
            if row is None or package.unfit or row.settings.get("digest") != package.digest:
                continue
            if package.name not in self._loaded:
                self._loaded[package.name] = await self._load(package)
            if self._loaded[package.name].digest == package.digest:
                found.append(package.name)
        return found

    def _hand_on_channels(self, names: Sequence[str]) -> None:
        """Have their channels held; one that is refused costs the others nothing."""
        taken: dict[str, ModuleType] = {}
        self._put_channels(taken)
        for name in names:
            loaded, faults = self._loaded[name], []
            for channel, module in loaded.channels.items():
                more = {**taken, channel: module}
                twice = "another plug-in has this name already." if channel in taken else ""
                fault = twice or attempted(partial(self._put_channels, more), f"{name}: the channel {channel}")[1]
                taken = taken if fault else more
                faults += [f"{channel}: {fault}"] if fault else []
            self._loaded[name] = replace(loaded, refused=tuple(faults))

    async def _load(self, package: PluginPackage) -> LoadedPlugin:
        """The package, imported in a thread of its own: one that never comes back holds nothing but that thread."""
        done: Future[LoadedPlugin] = Future()

        def work() -> None:
            done.set_running_or_notify_cancel()  # from now on nobody who gave up waiting can cancel it
            done.set_result(_loaded(package, self._registry))

        Thread(target=work, name=f"plug-in {package.name}", daemon=True).start()
        try:
            async with asyncio.timeout(LOAD_S):
                return await asyncio.wrap_future(done)
        except TimeoutError:
            fault = f"It was not imported within {LOAD_S:.0f} seconds."
            log.error("plug-in %s: %s", package.name, fault)
            return LoadedPlugin(digest=package.digest, faults=(fault,))

    async def _rows(self) -> Mapping[str, IntegrationRow]:
        rows = await self._db.repository(IntegrationsRepository).list()
        return {row.name: row for row in rows if row.kind == KIND}

    def _shown(self, name: str, package: PluginPackage | None, row: IntegrationRow | None) -> Plugin:
        made = Plugin(name=name, state="new", package=package, row=row)
        if package is None:
            return replace(made, state="gone")
        if package.unfit:
            return replace(made, state="unfit")
        if row is None:
            return made
        if row.settings.get("digest") != package.digest:
            return replace(made, state="changed")
        loaded = self._loaded.get(name)
        if loaded is None:
            return replace(made, state="allowed")
        if loaded.digest != package.digest:
            return replace(made, state="waiting")
        tools, faults = [], [*loaded.faults, *loaded.refused]
        for tool in (tool for category in loaded.categories for tool in category.tools):
            if self._registry.get(tool.name) is tool:
                tools.append(tool.name)
            else:
                faults.append(f"{tool.name}: another tool, or its category, has this name already.")
        state: State = "failed" if faults else "allowed"
        channels = tuple(name for name in loaded.channels if not any(one.startswith(f"{name}: ") for one in faults))
        return replace(made, state=state, tools=tuple(tools), channels=channels, faults=tuple(faults))


def _loaded(package: PluginPackage, registry: Registry) -> LoadedPlugin:
    """Import what the package brings, a module at a time; a fault in one costs the others nothing."""
    categories: list[Category] = []
    channels: dict[str, ModuleType] = {}
    faults: list[str] = []
    for group, name, dotted in package.modules:
        module, fault = attempted(partial(scan.load_plugin, dotted), f"{package.name}: importing {dotted}")
        if module is not None and group == TOOLS:
            category, fault = attempted(
                partial(plugin_category, module, registry.shipped), f"{package.name}: the tools of {dotted}"
            )
            categories += [category] if category else []
        elif module is not None and group == CHANNELS:
            channel, fault = attempted(partial(kept_apart, name, module), f"{package.name}: the channel of {dotted}")
            channels |= {name: channel} if channel else {}
        faults += [f"{dotted}: {fault}"] if fault else []
    return LoadedPlugin(digest=package.digest, categories=tuple(categories), channels=channels, faults=tuple(faults))
