"""What a person may set for a role in the browser: its models, tool mode and rounds, each with where it comes from.

Read and written by the account's pages. The chain of models lives in the model registry, the rest with the role.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from cortex.base.errors import NotFound, UserError
from cortex.base.role import Role, ToolMode
from cortex.base.settings import Settings
from cortex.base.user import User
from cortex.ports.mcp import FAMILY
from cortex.services.models.models import Models
from cortex.services.models.registry import ModelRegistry as ModelRegistry
from cortex.services.roles.role_names import RoleNames
from cortex.services.roles.roles import Origin, RoleInForce, Roles, max_rounds, typed_rounds
from cortex.toolkit.grants import granted
from cortex.toolkit.registry import Registry

OF_REGISTRY = "registry"
OF_EVERY_ROLE = "default"
ToolsKind = Literal["list", "none", "all", "shipped"]
FIELDS = ("models", "mode", "max_rounds")


class RoleSettings(Struct, frozen=True, kw_only=True):
    """A role as its page shows it. `tools`: the categories and tools that it may use here.

    `tools_kind`: whether these are a list of its own, none, everything, or the shipped default, and `tools_from` who
    says so. `is_own`: the home has a file of it, and `ships`: Cortex brings one of this name. `unknown`: sentences on
    names in it that name nothing.

    `models_from`: registry (set on the page), default (as every role), or the layer of a role file that names them.
    `mode_beneath`, `rounds_beneath`: what would hold if nothing were set in the browser; `rounds_from` in words.
    """

    name: str
    tools: tuple[str, ...]
    models: tuple[str, ...]
    models_from: str
    mode: ToolMode
    mode_from: Origin
    mode_beneath: ToolMode
    max_rounds: int | None
    rounds_from: Origin
    rounds_beneath: int
    rounds_beneath_from: str
    tools_kind: ToolsKind = "none"
    tools_from: Origin = "default"
    is_own: bool = False
    ships: bool = True
    unknown: Sequence[str] = ()


class RoleDefaults(Struct, frozen=True, kw_only=True):
    """Reads and changes `RoleSettings`. `server`: the settings of the whole server."""

    roles: Roles
    models: Models
    registry: Registry
    names: RoleNames
    server: Settings

    async def all(self, user: User) -> Sequence[RoleSettings]:
        """Every role that this user may take, by name."""
        return [await self.get(user, name) for name in await self.roles.names(user)]

    async def get(self, user: User, name: str) -> RoleSettings:
        """One role; NotFound when this user may not take it."""
        if name not in await self.roles.names(user):
            raise NotFound(f"There is no role {name!r}.")
        found = await self.roles.in_force(user, name, is_shown=True)
        beneath = (await self.roles.in_force(user, name, with_browser=False, is_shown=True)).role
        registry = await self.models.shown(user)
        entry = registry.first(found.role)
        rounds, rounds_from = max_rounds(self.server.max_rounds, entry, beneath, None)
        return RoleSettings(
            name=name,
            tools=self._here((*found.role.tools, *(found.role.admin_tools if user.is_admin else ()))),
            models=registry.chain(found.role),
            models_from=_models_from(registry, found.role, found.origins["models"]),
            mode=found.role.mode,
            mode_from=found.origins["mode"],
            mode_beneath=beneath.mode,
            max_rounds=found.role.max_rounds,
            rounds_from=found.origins["max_rounds"],
            rounds_beneath=rounds,
            rounds_beneath_from=rounds_from,
            tools_kind=_tools_kind(user, found),
            tools_from=tools_from(found),
            is_own=name in await self.roles.own(user),
            ships=self.roles.ships(name),
            unknown=await self.names.of_role(user, name),
        )

    async def change(self, user: User, name: str, models: Sequence[str] | None, mode: str, rounds: str) -> None:
        """Set all three as a form gives them; an empty one is the default again. UserError names the wrong field.

        `models` None: the form did not offer them, they stay as they are.
        """
        await self.get(user, name)
        number = typed_rounds(rounds)
        if models is not None:
            await self.models.set_chain(user, [model for model in models if model], name)
        await self.roles.change(user, name, {"mode": mode or None, "max_rounds": number})

    async def take_back(self, user: User, name: str, field: str) -> None:
        """Let one of the three be the default again."""
        await self.get(user, name)
        if field not in FIELDS:
            raise UserError(f"{field!r} cannot be undone.")
        if field == "models":
            await self.models.set_chain(user, (), name)
        await self.roles.change(user, name, {field: None})

    def _here(self, named: Sequence[str]) -> tuple[str, ...]:
        """Of what a role names, the categories and tools that this server has."""
        there = {"all", FAMILY, *self.registry.categories, *self.registry.tools}
        return tuple(one for one in named if one in there)


def tools_from(found: RoleInForce) -> Origin:
    """The highest layer that says which tools the role has."""
    origins = (found.origins["tools"], found.origins["admin_tools"])
    layers: tuple[Origin, ...] = ("browser", "yours", "shipped")
    return next((each for each in layers if each in origins), "default")


def _tools_kind(user: User, found: RoleInForce) -> ToolsKind:
    words = granted(found.role, is_admin=user.is_admin).words
    if not words:
        return "none"
    if tools_from(found) == "shipped":
        return "shipped"
    return "all" if "all" in words else "list"


def _models_from(registry: ModelRegistry, role: Role, origin: Origin) -> str:
    if role.models:
        return origin
    return OF_REGISTRY if registry.roles.get(role.name) else OF_EVERY_ROLE
