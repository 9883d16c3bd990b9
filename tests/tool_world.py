"""A house small enough for tool tests: real database, homes and files; what else is wired, the test says."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from cortex import tools
from cortex.base.errors import NotFound
from cortex.base.user import User
from cortex.integrations.files import Files, Root
from cortex.integrations.foreign.door import ForeignFiles
from cortex.integrations.sandbox import Sandbox
from cortex.ports.contacts import Contacts
from cortex.ports.foreign import FrontMatters
from cortex.ports.loop import Targets
from cortex.ports.outgoing import ListSignal
from cortex.services.tools.front_matters import UserFrontMatters
from cortex.storage.db import Database
from cortex.storage.home import Home, Homes
from cortex.storage.preferences import PreferencesRepository
from cortex.storage.repository import Repository
from cortex.toolkit.context import Ctx, UndoNote
from cortex.toolkit.registry import Registry
from cortex.toolkit.spec import Output
from tests.plain_contacts import PlainContacts

T = TypeVar("T")
NOW = datetime(2026, 11, 20, 22, 30, tzinfo=UTC)  # in Berlin a quarter of a day from midnight: 23:30


@dataclass(slots=True)
class KeptTargets:
    """What calls act on, in memory."""

    kept: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def target(self, call_id: str) -> dict[str, Any] | None:
        return self.kept.get(call_id)

    async def keep_target(self, call_id: str, target: dict[str, Any]) -> dict[str, Any]:
        return self.kept.setdefault(call_id, json.loads(json.dumps(target)))


@dataclass(slots=True)
class HeardBell:
    """Which lists rang."""

    heard: list[tuple[str, str]] = field(default_factory=list)

    async def tell_readers(self, *places: tuple[str, str], is_shared: bool = True) -> None:
        self.heard += places


@dataclass(slots=True, kw_only=True)
class World:
    """Calls tools as the executor does: checked arguments, a context of one user, its own call id.

    `wired`: clients by type, the same for all; `bound`: what makes a client of one user.
    """

    db: Database
    homes: Homes
    allowed: dict[str, Path] = field(default_factory=dict)
    wired: dict[type[Any], object] = field(default_factory=dict)
    bound: dict[type[Any], Callable[[str], object]] = field(default_factory=dict)
    registry: Registry = field(default_factory=cache(tools.load))
    calls: int = 0
    targets: KeptTargets = field(default_factory=KeptTargets)
    bell: HeardBell = field(default_factory=HeardBell)

    def provide(self, kind: type[T], user_id: str) -> T:
        if issubclass(kind, Repository):
            return cast("T", self.db.repository(kind, user_id))
        if kind is Targets:
            return cast("T", self.targets)
        if kind is ListSignal:
            return cast("T", self.bell)
        if kind is Home:
            return cast("T", self.homes.home_of(user_id))
        if kind is FrontMatters:
            kept = self.db.repository(PreferencesRepository, user_id)
            return cast("T", UserFrontMatters(ForeignFiles(Sandbox(), is_boxed=False), kept))
        if kind is Files:
            own = self.homes.root / user_id / "files"
            own.mkdir(parents=True, exist_ok=True)
            return cast("T", Files(own, self.roots))
        if kind in self.bound:
            return cast("T", self.bound[kind](user_id))
        if kind in self.wired:
            return cast("T", self.wired[kind])
        if kind is Contacts:
            return cast("T", PlainContacts())
        raise NotFound(f"{kind.__name__} is not wired.")

    async def roots(self) -> tuple[Root, ...]:
        return tuple(Root(name=name, path=path) for name, path in self.allowed.items())

    def ctx(
        self,
        user: User,
        *,
        is_tainted: bool = False,
        has_read_private: bool = False,
        call_id: str = "",
        role: str = "orchestrator",
        is_again: bool = False,
    ) -> Ctx:
        self.calls += 1
        return Ctx(
            user=user,
            conversation_id="here",
            turn_id="turn:1",
            call_id=call_id or f"call-{self.calls}",
            role=role,
            now=NOW,
            scope=self,
            is_tainted=is_tainted,
            has_read_private=has_read_private,
            is_again=is_again,
        )

    async def run(self, ctx: Ctx, name: str, /, **arguments: Any) -> Output:
        tool = self.registry.tools[name]
        checked = tool.arguments.model_validate(arguments)
        values = {key: getattr(checked, key) for key in type(checked).model_fields}
        made = await tool.function(ctx, **values)
        return made if isinstance(made, Output) else Output(text=made)

    async def text(self, user: User, name: str, /, **arguments: Any) -> str:
        return (await self.run(self.ctx(user), name, **arguments)).text

    async def noted(self, user: User, name: str, /, **arguments: Any) -> tuple[str, UndoNote]:
        ctx = self.ctx(user)
        text = (await self.run(ctx, name, **arguments)).text
        return text, ctx.undo_notes[-1]

    async def undo(self, user: User, category: str, note: UndoNote) -> str:
        undo = self.registry.categories[category].undo
        assert undo is not None
        return await undo(self.ctx(user), note.target, note.before, note.expected)

    async def undo_twice(self, user: User, category: str, note: UndoNote) -> tuple[str, UndoNote]:
        """Take a call back, and that too: what the second says, and the way back that stands then."""
        undo = self.registry.categories[category].undo
        assert undo is not None
        first, second = self.ctx(user), self.ctx(user)
        await undo(first, note.target, note.before, note.expected)
        redo = first.undo_notes[-1]
        text = await undo(second, redo.target, redo.before, redo.expected)
        return text, second.undo_notes[-1]
