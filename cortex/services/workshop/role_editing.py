"""A whole role as its admin page edits it: every value with its origin, what lies beneath, and what its tools cost.

The layers are those of `Roles`; the chain of models lives in the model registry. Each change is audited.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from cortex.base.errors import NotFound, UserError
from cortex.base.numbers import whole_number
from cortex.base.role import Role
from cortex.base.settings import MAX_ROUNDS_CAP
from cortex.base.user import User
from cortex.selection.recipes import RECIPES
from cortex.selection.types import META
from cortex.services.roles.roles import Origin, Roles
from cortex.services.roles.settings import RoleDefaults, RoleSettings, tools_from
from cortex.services.tools.tools import ToolsService
from cortex.storage.audit import AuditRepository
from cortex.storage.db import Database
from cortex.toolkit.grants import ToolGrant, granted, permits
from cortex.toolkit.registry import Registry

TEXTS = ("prompt", "mode", "recipe")
NUMBERS = ("max_rounds", "tool_budget_tokens", "budget_tokens")
EDITED = (*TEXTS, *NUMBERS, "budget_usd", "core")
PROMPT_MAX = 12_000
EVERYTHING = "all"


class Value(Struct, frozen=True, kw_only=True):
    """A field in force. `own`: as set in the browser, "" for nothing; `beneath`: what holds without that."""

    value: Any
    origin: Origin
    own: str
    beneath: str


class PricedTools(Struct, frozen=True, kw_only=True):
    """The price of a list of tools: those that can be used now, their tokens in full, and those not set up."""

    tools: int
    tokens: int
    asleep: int


class CategoryChoice(Struct, frozen=True, kw_only=True):
    """A category of the checklist: its tools by name, and those of them that are not set up here."""

    name: str
    summary: str
    tools: tuple[str, ...]
    asleep: tuple[str, ...]


class RoleSheet(Struct, frozen=True, kw_only=True):
    """A role to edit. `words`: the categories and tools in force for an admin's account, `all` for everything."""

    settings: RoleSettings
    values: Mapping[str, Value]
    words: tuple[str, ...]
    words_beneath: tuple[str, ...]
    words_from: Origin
    is_admin_only: bool
    priced: PricedTools


class RoleEditing(Struct, frozen=True, kw_only=True):
    """Reads and changes the roles of an admin."""

    db: Database
    roles: Roles
    defaults: RoleDefaults
    tools: ToolsService
    registry: Registry

    async def all(self, user: User) -> Sequence[RoleSheet]:
        """Every role, by name."""
        return [await self.sheet(user, name) for name in await self.roles.names(user)]

    async def sheet(self, user: User, name: str) -> RoleSheet:
        """One role; NotFound for a name that nobody wrote."""
        settings = await self.defaults.get(user, name)
        found = await self.roles.in_force(user, name, is_shown=True)
        beneath = (await self.roles.in_force(user, name, with_browser=False, is_shown=True)).role
        words = self.here(_words(found.role))
        return RoleSheet(
            settings=settings,
            values={field: _value(field, found.role, found.origins[field], beneath) for field in EDITED},
            words=words,
            words_beneath=self.here(_words(beneath)),
            words_from=tools_from(found),
            is_admin_only=found.role.is_admin_only,
            priced=await self.priced(words),
        )

    async def choices(self) -> Sequence[CategoryChoice]:
        """The checklist: every category that a role can have."""
        setups = await self.tools.setups()
        return [
            CategoryChoice(
                name=category.name,
                summary=category.summary,
                tools=tuple(tool.name for tool in category.tools),
                asleep=tuple(tool.name for tool in category.tools if tool.name in setups),
            )
            for category in self.registry.categories.values()
            if category.name != META
        ]

    async def change(self, user: User, name: str, typed: Mapping[str, str], models: Sequence[str] | None) -> None:
        """Set what the form says; an empty field, or what lies beneath anyway, is the default again.

        UserError names the wrong field. `models` None: the form did not offer them.
        """
        sheet = await self._mine(user, name)
        values = {field: self._read(field, typed.get(field, ""), sheet.values[field]) for field in EDITED}
        if models is not None:
            await self._set_models(user, name, [model for model in models if model])
        await self.roles.change(user, name, values, is_audited=True)

    async def set_tools(self, user: User, name: str, words: Sequence[str]) -> None:
        """Let the role have these categories and tools and no others; none at all is an answer too."""
        sheet = await self._mine(user, name)
        wanted = self.joined(words)
        if set(wanted) == set(sheet.words_beneath):
            await self.roles.change(user, name, {"tools": None, "admin_tools": None}, is_audited=True)
            return
        beneath = (await self.roles.in_force(user, name, with_browser=False, is_shown=True)).role
        for_admins = [word for word in wanted if self._is_for_admins(word, beneath)]
        values = {"tools": [word for word in wanted if word not in for_admins], "admin_tools": for_admins}
        await self.roles.change(user, name, values, is_audited=True)

    async def take_back(self, user: User, name: str, field: str) -> None:
        """Let one value be the default again."""
        await self._mine(user, name)
        if field == "models":
            await self._set_models(user, name, ())
        elif field == "tools":
            await self.roles.change(user, name, {"tools": None, "admin_tools": None}, is_audited=True)
            return
        elif field not in EDITED:
            raise UserError(f"{field!r} cannot be undone.")
        await self.roles.change(user, name, {field: None}, is_audited=True)

    async def priced(self, words: Sequence[str]) -> PricedTools:
        """Return what these words let an admin use, in full."""
        ground = await self.tools.ground()
        ready, given = frozenset(ground.ready), ToolGrant(words=frozenset(words))
        found = [
            entry
            for entry in ground.snapshot.entries
            if not entry.is_meta and permits(given, entry.name, entry.category, "chat", is_withheld=False)
        ]
        awake = [entry for entry in found if entry.name in ready]
        return PricedTools(
            tools=len(awake), tokens=sum(entry.tokens_full for entry in awake), asleep=len(found) - len(awake)
        )

    def joined(self, words: Sequence[str]) -> tuple[str, ...]:
        """The words without what others of them say already; UserError for one that names nothing."""
        if EVERYTHING in words:
            return (EVERYTHING,)
        unknown = [word for word in words if word not in self.registry.categories and word not in self.registry.tools]
        if unknown:
            raise UserError(f"There is no category and no tool {unknown[0]!r}.", field="tools")
        whole = [name for name in self.registry.categories if name in words]
        tools = [tool.name for tool in self.registry.tools.values() if tool.name in words]
        return (*whole, *(name for name in tools if self.registry.tools[name].category not in whole))

    def here(self, words: Sequence[str]) -> tuple[str, ...]:
        """Of what a role names, the categories and tools that this server has."""
        return self.joined([word for word in words if word == EVERYTHING or self._is_known(word)])

    def _is_known(self, word: str) -> bool:
        return word in self.registry.categories or word in self.registry.tools

    def _is_for_admins(self, word: str, beneath: Role) -> bool:
        """Tell whether the role gives this to admins' accounts alone, so that a change here gives it to nobody else."""
        tool = self.registry.get(word)
        names = {word, tool.category} if tool else {word}
        return bool(names & {*beneath.admin_tools}) and not names & {*beneath.tools}

    async def _mine(self, user: User, name: str) -> RoleSheet:
        user.must_be_admin("change a whole role")
        if name not in await self.roles.names(user):
            raise NotFound(f"There is no role {name!r}.")
        return await self.sheet(user, name)

    async def _set_models(self, user: User, name: str, models: Sequence[str]) -> None:
        registry = await self.defaults.models.registry(user)
        if tuple(models) == tuple(registry.roles.get(name, ())):
            return
        await self.defaults.models.set_chain(user, models, name)
        await self.db.repository(AuditRepository).add(user.id, "role.models", name, {"models": list(models)})

    def _read(self, field: str, typed: str, value: Value) -> Any:
        """Return what the role keeps for this field, None for the default. Any: each field has its own type."""
        text = typed.replace("\r\n", "\n").strip()
        if text in ("", value.beneath.strip()):
            return None
        if field in NUMBERS:
            return _number(field, text, MAX_ROUNDS_CAP if field == "max_rounds" else 100_000_000)
        if field == "budget_usd":
            return _dollars(text)
        if field == "core":
            return [] if text == "none" else list(self._core(text))
        if field == "recipe" and text not in RECIPES:
            raise UserError(f"There is no recipe {text!r}; known: {', '.join(RECIPES)}.", field=field)
        if field == "mode" and text not in ("auto", "chat", "all"):
            raise UserError("A tool mode is auto, chat or all.", field=field)
        if len(text) > PROMPT_MAX:
            raise UserError(f"That is too long: at most {PROMPT_MAX:,} characters.", field=field)
        return text

    def _core(self, text: str) -> tuple[str, ...]:
        words = tuple(dict.fromkeys(text.replace(",", " ").split()))
        unknown = [word for word in words if not self._is_known(word)]
        if unknown:
            raise UserError(f"There is no category and no tool {unknown[0]!r}.", field="core")
        return words


def _words(role: Role) -> tuple[str, ...]:
    return tuple(sorted(granted(role, is_admin=True).words))


def _value(field: str, role: Role, origin: Origin, beneath: Role) -> Value:
    value = getattr(role, field)
    own = _shown(value) if origin == "browser" else ""
    return Value(
        value=value,
        origin=origin,
        own=own or ("none" if origin == "browser" else ""),
        beneath=_shown(getattr(beneath, field)),
    )


def _shown(value: Any) -> str:
    """The value as a form has it."""
    if value is None:
        return ""
    return " ".join(value) if isinstance(value, tuple) else f"{value:g}" if isinstance(value, float) else str(value)


def _number(field: str, text: str, most: int) -> int:
    number = whole_number(text.replace(",", "").replace("\u202f", ""))
    if number is None or not 1 <= number <= most:
        raise UserError(f"Write a whole number from 1 to {most:,}.", field=field)
    return number


def _dollars(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= 1_000_000:
        raise UserError("Write an amount of dollars, such as 2.50.", field="budget_usd")
    return value
