"""The emergency stop: ends all work of a person, or of everybody, and keeps it ended until somebody lifts it.

Ordered from a page, the command line, a signal (SIGUSR1) or a file named STOP in HOME. What is in force stands in the
database, so that it holds in every process and after a restart; `services/turns/queue.py` starts nothing meanwhile.
"""

import asyncio
import logging
import os
import shlex
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path

from msgspec import Struct, field
from sqlalchemy.exc import SQLAlchemyError

from cortex.base.errors import Busy, CortexError, DatabaseUnavailable, NotAllowed, NotFound
from cortex.base.user import User
from cortex.services.runtime import Runtime
from cortex.services.turns.queue import TurnQueue
from cortex.storage.accounts import AccountsRepository
from cortex.storage.approvals import AllGrantsRepository
from cortex.storage.audit import AuditRepository
from cortex.storage.halts import EVERYBODY, OUTWARD, HaltRow, HaltsRepository
from cortex.storage.tool_settings import ToolSettingsRepository

FILE = "STOP"
OF_ONE = "STOP-"  # and an account's id: a stop of that person's work, left where it could not be written down
END_S = 3.0
COMMAND = "the command line"
SIGNAL = "a signal (SIGUSR1)"
BY_FILE = f"the file {FILE} in HOME"
LOOK_S = 0.5  # one stat and, on SQLite, one read of a counter
LOOK_SHARED_S = 1.0  # PostgreSQL has no such counter: a query

log = logging.getLogger(__name__)


class HaltView(Struct, frozen=True, kw_only=True):
    """A stop in force, for whoever reads of it. `whose`: the name of the person whose work stands, "" for others."""

    scope: str
    whose: str
    who: str
    at: datetime
    may_lift: bool

    @property
    def command(self) -> str:
        """The command that lifts it."""
        of = {EVERYBODY: "", OUTWARD: " --outward"}.get(self.scope, f" --user {shlex.quote(self.whose)}")
        return f"cortex stop-all{of} --release"

    @property
    def is_outward(self) -> bool:
        """Tell whether only the tools that reach outside are off."""
        return self.scope == OUTWARD

    @property
    def what(self) -> str:
        """Return what is stopped, and by whom."""
        if self.is_outward:
            return f"Tools that reach outside were switched off by {self.who}"
        whose = "for everybody" if self.scope == EVERYBODY else f"for {self.whose}"
        return f"Everything was stopped {whose} by {self.who}"

    @property
    def meaning(self) -> str:
        """Return what that means for whoever reads it."""
        return "Everything else continues." if self.is_outward else "Nothing starts; messages wait."


class StopAll(Struct, frozen=True, kw_only=True):
    """Orders, lifts and heeds stops. `lifted`: called in a process that hears that one was lifted."""

    runtime: Runtime
    turns: TurnQueue
    lifted: Callable[[], None] = lambda: None
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _signals: list[str] = field(default_factory=list)

    async def stop(self, by: User, whom: User | None) -> None:
        """Order it, and come back when nothing of it runs any more."""
        await self.order(by, whom)
        if not self.turns.held:
            await self.turns.stop_halted()

    async def order(self, by: User | None, whom: User | None, *, who: str = COMMAND) -> None:
        """Stop all work of `whom` (None: of everybody) and take their grants back; whatever runs does so by `watch`.

        `by` None: whoever runs the daemon, as `who` says. NotAllowed where a member means anybody else.
        """
        if by is not None and not by.is_admin and (whom is None or whom.id != by.id):
            raise NotAllowed("Only an admin can stop other people's work.")
        scope = EVERYBODY if whom is None else whom.id
        await self._order(scope, by_id=by.id if by else "", who=by.name if by else who)

    async def _order(self, scope: str, *, by_id: str = "", who: str) -> None:
        halt = HaltRow(scope=scope, by_id=by_id, who=who, at=self.runtime.clock())
        try:
            await self._write_down(halt)
        except (Busy, DatabaseUnavailable) as error:
            await self._hold(halt, error.message)

    async def _write_down(self, halt: HaltRow) -> None:
        async with self.runtime.db.transaction() as repository:
            if await repository(HaltsRepository).add(halt.scope, halt.by_id, halt.who):
                await repository(AllGrantsRepository).revoke(None if halt.scope == EVERYBODY else halt.scope)
                subject = await self._subject(repository(AccountsRepository), halt.scope)
                by = {} if halt.by_id else {"by": halt.who}
                await repository(AuditRepository).add(halt.by_id, "work.stopped", subject, by)
        if self.turns.held.pop(halt.scope, None) and halt.scope != EVERYBODY:
            await asyncio.to_thread(self._note(halt.scope).unlink, missing_ok=True)

    async def _hold(self, halt: HaltRow, reason: str) -> None:
        """Have a stop in force that cannot be written down: what it ends may be what fills the disk.

        Kept in memory, and for the next life as an empty file, for which a full disk has room; `heed` writes it down.
        """
        if halt.scope in self.turns.held:
            return
        log.warning("stop all: in force, but not written down yet: %s", reason)
        self.turns.held[halt.scope] = halt
        with suppress(OSError):
            await asyncio.to_thread(self._note(halt.scope).touch)
        # What runs here is cut off at once; that it ended waits for room too, and is seen to by `watch`.
        with suppress(TimeoutError, CortexError, SQLAlchemyError):
            async with asyncio.timeout(END_S):
                await self.turns.stop_halted()

    async def release(self, by: User, scope: str) -> None:
        """Lift it and begin what waits."""
        await self.lift(by, scope)
        await self._go_on()

    async def lift(self, by: User | None, scope: str) -> None:
        """Let work go on; what waits is begun by `watch`.

        NotFound where it is not in force, NotAllowed where an admin must lift it.
        """
        halt = next((one for one in await self._in_force() if one.scope == scope), None)
        if halt is None or not (by is None or by.is_admin or scope == by.id):
            raise NotFound("That is not stopped, or was already resumed.")
        if not _may_lift(by, halt):
            raise NotAllowed("An admin stopped this, so an admin has to resume it.")
        # First: it would stop everything again.
        await asyncio.to_thread(self._note(scope).unlink, missing_ok=True)
        if self.turns.held.pop(scope, None):
            return
        async with self.runtime.db.transaction() as repository:
            if await repository(HaltsRepository).lift(scope):
                await self._tell_of_tools(repository(ToolSettingsRepository), scope)
                subject = await self._subject(repository(AccountsRepository), scope)
                await repository(AuditRepository).add(
                    by.id if by else "", "work.released", subject, {} if by else {"by": COMMAND}
                )

    async def switch_outward_off(self, by: User | None) -> None:
        """Let nobody have the tools that reach outside, from the next call on. Only admins; all else goes on."""
        if by is not None and not by.is_admin:
            raise NotAllowed("Only an admin can change everybody's tools.")
        async with self.runtime.db.transaction() as repository:
            if await repository(HaltsRepository).add(OUTWARD, by.id if by else "", by.name if by else COMMAND):
                await self._tell_of_tools(repository(ToolSettingsRepository), OUTWARD)
                await repository(AuditRepository).add(
                    by.id if by else "", "work.stopped", OUTWARD, {} if by else {"by": COMMAND}
                )

    async def shown(self, user: User) -> Sequence[HaltView]:
        """The stops that this person has to know of, for the head of every page."""
        halts = [halt for halt in await self._in_force() if halt.scope in (EVERYBODY, OUTWARD, user.id)]
        return [_view(halt, user, "you") for halt in halts]

    async def all(self, by: User | None) -> Sequence[HaltView]:
        """Every stop in force, for an admin or the command line."""
        halts = await self._in_force()
        names = (
            {one.id: one.name for one in await self.runtime.db.repository(AccountsRepository).list()} if halts else {}
        )
        return [_view(halt, by, names.get(halt.scope, halt.scope)) for halt in halts]

    async def running(self) -> int:
        """Return how many turns that have to stop have not ended yet."""
        return len(await self.turns.to_stop(await self._in_force()))

    def pull(self) -> None:
        """Stop everything for everybody, from a signal handler: `watch` does it at once."""
        self._signals.append(SIGNAL)
        self._news.set()

    async def heed(self) -> None:
        """Put in force what a signal or a file orders, and write down what could not be until now."""
        with suppress(Busy, DatabaseUnavailable):  # said when it was ordered
            for halt in [*self.turns.held.values()]:
                await self._write_down(halt)
        files = await asyncio.to_thread(self._notes)
        ordered = [*self._signals, *([BY_FILE] if FILE in files else [])]
        if ordered:
            await self._order(EVERYBODY, who=ordered[0])
            self._signals.clear()
        for scope in [name.removeprefix(OF_ONE) for name in files if name != FILE]:
            with suppress(NotFound):  # the account is gone
                await self._order(scope, who=BY_FILE)
            if scope not in self.turns.held:
                await asyncio.to_thread(self._note(scope).unlink, missing_ok=True)

    async def watch(self) -> None:
        """Until cancelled: heed signal and file, and do here what another process, or the command line, ordered."""
        before: frozenset[str] = frozenset()
        is_due = False  # what failed, or may have left a turn that could not be stopped yet, is looked at again
        is_shared = self.runtime.db.is_postgresql
        with closing(self.runtime.db.commits.another()) as commits:
            while True:
                try:
                    await self.heed()
                    is_due = await commits.are_new() or is_due
                    if is_due:
                        scopes = frozenset(halt.scope for halt in await self.turns.stop_halted())
                        if before - scopes:
                            await self._go_on()
                        before, is_due = scopes, bool(scopes - {OUTWARD}) or self.turns.looks_again
                except (CortexError, SQLAlchemyError, OSError) as error:
                    log.warning("stop all: failed, retrying: %s", error)
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SHARED_S if is_shared else LOOK_S):
                        await self._news.wait()
                self._news.clear()

    async def _in_force(self) -> Sequence[HaltRow]:
        return await self.turns.halts()

    async def _go_on(self) -> None:
        await self.turns.start_waiting()
        self.lifted()

    @staticmethod
    async def _tell_of_tools(settings: ToolSettingsRepository, scope: str) -> None:
        """Have every process read anew which tools are off, where that is what changed."""
        if scope == OUTWARD:
            await settings.changed()

    @staticmethod
    async def _subject(accounts: AccountsRepository, scope: str) -> str:
        return scope if scope in (EVERYBODY, OUTWARD) else (await accounts.get(scope)).name

    def _note(self, scope: str) -> Path:
        return self.runtime.settings.home / (FILE if scope == EVERYBODY else f"{OF_ONE}{scope}")

    def _notes(self) -> list[str]:
        return [name for name in os.listdir(self.runtime.settings.home) if name == FILE or name.startswith(OF_ONE)]


def _may_lift(by: User | None, halt: HaltRow) -> bool:
    """An admin and the command line lift any; a person what they ordered for themselves."""
    return by is None or by.is_admin or (halt.scope == by.id and halt.by_id == by.id)


def _view(halt: HaltRow, by: User | None, whose: str) -> HaltView:
    return HaltView(scope=halt.scope, whose=whose, who=halt.who, at=halt.at, may_lift=_may_lift(by, halt))
