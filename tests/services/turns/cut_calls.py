"""A call whose process dies at any one of the points at which something lasts, and all that then stands.

What lasts: a commit, a file that comes or goes, a word to a client. The points are counted, so that a test can die at
each; another life then goes on as the engine would: what a step gave is kept, a step that was cut is made again.
"""

import re
import shutil
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from sqlalchemy import event

from cortex import tools
from cortex.base.log import LogBook
from cortex.base.messages import ToolCall
from cortex.base.turn import Answer, Decision, Performed, Turn
from cortex.base.user import User
from cortex.compose.services import Services
from cortex.engine.hub import LocalHub
from cortex.integrations.sandbox import Sandbox
from cortex.ports.agents import AllowedFolders, CodingAgent
from cortex.ports.mail import Mailboxes
from cortex.ports.memory import Memory
from cortex.ports.outgoing import Mail, Push, Talk
from cortex.services.calendars.accounts import CalendarAccounts
from cortex.services.integrations.integrations import Integrations
from cortex.services.runtime import Runtime
from cortex.services.scope import Opening
from cortex.storage.accounts import AccountsRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Database
from cortex.storage.turns import NOTHING_READ, NewTurn, TurnsRepository
from tests.databases import copy_home, every_row, house_settings, is_on_postgresql
from tests.living_house import peopled_home
from tests.plain_clients import Folders, Letters, MemoryCoder, Phones, PlainMemory
from tests.plain_dav import PlainDav
from tests.plain_mail import PlainMail
from tests.services.turns.admin_turn import admin_turn
from tests.still_clock import StillClock

TURN, PLACE = "turn:1", "here"
FRESH_ID = re.compile(r"\b[0-9a-z]{26}\b|\bgAAAAA[\w=-]+")  # another one in each house, and so is what is sealed
COUNTED = re.compile(r"(?<='position': )\d+" if is_on_postgresql() else "(?!)")  # a sequence counts what was undone too


class Killed(BaseException):
    """The process dies here. No `except Exception` on the way holds it up."""


@dataclass
class Knife:
    """Counts the points at which something lasts, and dies at one of them; `at` 0: at none."""

    at: int = 0
    points: int = 0
    is_out: bool = False

    def point(self, *_: object) -> None:
        if self.is_out:
            self.points += 1
            if self.points == self.at:
                raise Killed


_knife = Knife()


@contextmanager
def cutting() -> Iterator[None]:
    """Count the points inside the block, and die at the one that is meant."""
    _knife.is_out = True
    try:
        yield
    finally:
        _knife.is_out = False


@contextmanager
def dying(at: int) -> Iterator[None]:
    """Count anew inside the block, and die at this point; 0: at none."""
    _knife.at, _knife.points = at, 0
    with cutting():
        yield


def a_point() -> None:
    """Something lasts that is neither a commit nor a file."""
    _knife.point()


def points_seen() -> int:
    """How many there were in the last life."""
    return _knife.points


def _on_audit(name: str, _details: tuple[object, ...]) -> None:
    if name in ("os.rename", "os.remove"):
        _knife.point()


sys.addaudithook(_on_audit)


@dataclass
class Runs:
    """Stands in for the engine: keeps which runs were started or cancelled, and makes none."""

    started: set[str] = field(default_factory=set)
    cancelled: set[str] = field(default_factory=set)

    async def forget(self, run_ids: Sequence[str]) -> None:
        """None is kept."""

    async def start(
        self, run_id: str, workflow: str, argument: dict[str, Any], *, queue: str = "", key: str = ""
    ) -> None:
        self.started.add(run_id)
        _knife.point()

    async def cancel(self, run_id: str) -> None:
        self.cancelled.add(run_id)
        _knife.point()

    async def status(self, run_id: str) -> str:
        return "running" if run_id in self.started - self.cancelled else "unknown"

    async def unfinished(self) -> list[str]:
        return []

    async def hold(self) -> None:
        """Nothing runs."""

    async def has_moved(self) -> None:
        """Nothing runs."""

    async def signal(self, run_id: str, topic: str, value: str) -> None:
        """Nobody waits."""

    async def wait_for_signal(self, topic: str, timeout_s: float) -> str | None:
        return None


class Cut:
    """A client of which each word may have been the last: it may have acted when the process dies."""

    def __init__(self, client: object) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        async def called(*arguments: Any, **more: Any) -> Any:
            made = await getattr(self._client, name)(*arguments, **more)
            _knife.point()
            return made

        return called


class CutServices(Services):
    """The services, with clients that outlive the process."""

    clients: Mapping[type[Any], object]
    dav: PlainDav

    @cached_property
    def calendar_accounts(self) -> CalendarAccounts:
        return replace(super().calendar_accounts, connect=lambda _: Cut(self.dav))

    @cached_property
    def integrations(self) -> Integrations:
        wired = {kind.__name__ for kind in self.clients}  # set up on no card
        known = super().integrations
        return replace(known, kinds=tuple(kind for kind in known.kinds if wired.isdisjoint(kind.port_names)))

    @cached_property
    def tool_clients(self) -> Mapping[type[Any], Opening]:
        def opening(client: object) -> Opening:
            return lambda _: Cut(client)

        return {**super().tool_clients, **{kind: opening(client) for kind, client in self.clients.items()}}


@dataclass(kw_only=True)
class World:
    """All that outlives a process: a home, its database, the engine's runs, what clients were told."""

    home: Path
    db: Database
    user: User
    clock: StillClock
    runs: Runs = field(default_factory=Runs)
    dav: PlainDav = field(default_factory=PlainDav)
    clients: Mapping[type[Any], object] = field(
        default_factory=lambda: {
            Memory: PlainMemory(),
            CodingAgent: MemoryCoder(),
            Mailboxes: PlainMail(),
            AllowedFolders: Folders(),
            Push: Phones(),
            Mail: (letters := Letters()),
            Talk: letters,
        }
    )

    @property
    def turn(self) -> Turn:
        """The turn that makes the call."""
        return admin_turn(TURN, PLACE, self.user.id, self.clock())

    def life(self) -> CutServices:
        """A process that knows nothing of those before it."""
        runtime = Runtime(
            settings=house_settings(self.home),
            db=self.db,
            hub=LocalHub(),
            runner=self.runs,
            signals=self.runs,
            registry=REGISTRY(),
            clock=self.clock,
            ticks_s=lambda: 0.0,
        )
        made = CutServices(runtime, sandbox=Sandbox(home=self.home), is_boxed=False, log_book=LogBook())
        made.clients, made.dav = self.clients, self.dav
        return made

    async def stands(self) -> list[str]:
        """All of it in words; ids that are made by chance without their letters."""
        files = [
            f"{path.relative_to(self.home)}: {path.read_bytes()!r}"
            for path in sorted(self.home.rglob("*"))
            if path.is_file() and self.user.id in path.parts and not path.name.startswith(".")
        ]
        rows = await every_row(self.db)
        lines = (*rows, *files, str(self.runs), str(self.clients), str(self.dav))
        return sorted(COUNTED.sub("#", FRESH_ID.sub("#", line)) for line in lines)


REGISTRY = cache(tools.load)


@asynccontextmanager
async def world(home: Path) -> AsyncIterator[World]:
    """A home with a person whose turn is at work."""
    copy_home(await peopled_home(), home)
    clock = StillClock()
    db = Database(house_settings(home).database, clock=clock)
    event.listen(db.write.sync_engine, "commit", _knife.point)
    try:
        made = World(home=home, db=db, user=await _ada(db), clock=clock)
        await db.repository(ConversationsRepository, made.user.id).create(
            "admin", "auto", id=PLACE, is_title_tainted=False
        )
        await db.repository(TurnsRepository, made.user.id).create(
            NewTurn(
                TURN, PLACE, "do it", mode="auto", role="admin", state="running", is_tainted=False, reads=NOTHING_READ
            )
        )
        yield made
    finally:
        await db.close()
        shutil.rmtree(home)


async def _ada(db: Database) -> User:
    account = await db.repository(AccountsRepository).named("ada")
    assert account is not None
    return User(id=account.id, name="ada", rank="admin")


@dataclass(kw_only=True)
class CutCall:
    """A call in a world, and what of it is kept so far: the engine's part."""

    world: World
    call: ToolCall
    decision: Decision | None = None
    answer: Answer | None = None

    @property
    def points(self) -> int:
        """How many there were in the last life."""
        return _knife.points

    async def live(self, dies_at: int = 0) -> Performed:
        """One life, up to the call's result or to its death; a person who is asked says yes."""
        life, turn = self.world.life(), self.world.turn
        gate, desk = life.executor, life.approvals
        _knife.at, _knife.points = dies_at, 0
        with cutting():
            if self.decision is None:
                self.decision = await gate.decide(turn, 1, self.call)
        asked = self.decision.approval_id
        if asked and self.answer is None:
            await desk.answer(self.world.user, asked, "once")
            self.answer = await desk.settle(turn, asked, "allowed")
        with cutting():
            return await gate.perform(turn, 1, self.call, self.decision, self.answer)
