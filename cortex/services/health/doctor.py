"""What is wrong with this installation, in plain words, each with how to mend it. Changes nothing, asks no network."""

import asyncio
import errno
import os
import shlex
import shutil
import socket
import stat
from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from sqlalchemy.exc import SQLAlchemyError

from cortex.base import disk_faults, faults, private
from cortex.base.clock import ticks_s
from cortex.base.database_needs import refuse_unfit
from cortex.base.errors import ConfigError
from cortex.base.serve_lock import clock_moved_s, is_served
from cortex.base.settings import Settings, unknown_variables
from cortex.base.user import User
from cortex.integrations.sandbox import Sandbox
from cortex.services.accounts.accounts import Accounts
from cortex.services.backup.backups import Backups, age_of
from cortex.services.health.audit_log import MEND, AuditLog
from cortex.services.health.finding import Finding, State
from cortex.services.health.home_files import HomeFiles
from cortex.services.health.program import page, program_files
from cortex.services.health.proxy import outgoing_findings
from cortex.services.health.sealed import SealedValues, ways_out
from cortex.services.integrations.integrations import Integrations
from cortex.services.tools.own_weights import is_current
from cortex.services.turns.stop_all import StopAll
from cortex.storage import revisions
from cortex.storage.db import Database
from cortex.storage.refits import RefitsRepository
from cortex.storage.rounds import RoundsRepository

MB = 1_000_000
FREE_BAD_BYTES = 200 * MB
FREE_WARN_BYTES = 1_000 * MB
BACKUP_OLD_H = 48
LOOK_AGAIN_S = 60.0
MODEL_LOOKED_BACK = timedelta(days=1)
CLOCK_MAY_MOVE_S = 300.0  # a time server may set it right by so much


class ExamineEngine(Protocol):
    """Raises ConfigError, with what to do, when the engine's database cannot be used."""

    async def __call__(self, *, is_whole: bool = False) -> None:
        """is_whole: look through all of a SQLite file, which takes a while."""
        ...


class Doctor:
    """Looks at disk, keys, database, what is stopped, sandbox, models, page and port."""

    def __init__(
        self,
        settings: Settings,
        db: Database,
        sandbox: Sandbox,
        accounts: Accounts,
        files: HomeFiles,
        stop_all: StopAll,
        audit_log: AuditLog,
        sealed: SealedValues,
        examine_engine: ExamineEngine,
        backups: Backups,
        integrations: Integrations,
    ) -> None:
        """`settings` as in force; the other parts as `compose/` made them."""
        self._settings = settings
        self._db = db
        self._sandbox = sandbox
        self._accounts = accounts
        self._files = files
        self._stop_all = stop_all
        self._audit_log = audit_log
        self._sealed = sealed
        self._examine_engine = examine_engine
        self._backups = backups
        self._integrations = integrations
        self._looked_at: tuple[float, bool] | None = None

    async def is_ready(self) -> bool:
        """Tell whether a balancer may send people here: the database answers with the newest tables."""
        return (await self._database()).state == "good"

    async def is_well(self) -> bool:
        """Whether disk, key and database are as they should be; looked at once a minute at most, for every page."""
        at = ticks_s()
        if self._looked_at is None or at - self._looked_at[0] > LOOK_AGAIN_S:
            found = (self._disk(), self._key_file(), await self._database())
            self._looked_at = (at, all(one.state != "bad" for one in found))
        return self._looked_at[1]

    async def failing_model(self, user: User) -> str:
        """The model that did not answer this person's last request, "" for none; not one that they removed since."""
        since = self._db.clock() - MODEL_LOOKED_BACK
        name = await self._db.repository(RoundsRepository, user.id).failed_last(since)
        return name if name and any(one.name == name for one in (await self._files.models.shown(user)).entries) else ""

    async def slips(self, user: User) -> Sequence[str]:
        """Return what is wrong in the files of this person's home, for every page of theirs."""
        return await self._files.slips(user)

    async def examine(self, *, of: User | None = None) -> list[Finding]:
        """Every check, in the order in which one would mend them.

        `of`: asked by the running daemon for this person, so of others' models it says nothing and its port is its own.
        """
        await self._db.end_view()
        found = [self._disk(), *await asyncio.to_thread(self._home), *self._clock(), *self._variables()]
        found += await asyncio.to_thread(outgoing_findings, os.environ)
        database = await self._database(is_whole=of is None)
        program = await asyncio.to_thread(program_files)
        found += [program, database, await self._engine(is_whole=of is None), self._key_file()]
        if database.state == "good":
            found += [await self._audit(), *await self._stops()]
            found += [*await self._secrets(), *await self._people_and_models(of)]
            found += [*(await self._refit() if program.state == "good" else []), *await self._systems()]
        return [*found, self._backup(), await self._shut_in(), page(), *([] if of else [self._port()])]

    def _disk(self) -> Finding:
        home = self._settings.home
        if refused := disk_faults.of_folder(home):
            return Finding(name="disk", state="bad", text=refused)
        free = shutil.disk_usage(home).free
        state: State = "bad" if free < FREE_BAD_BYTES else "warn" if free < FREE_WARN_BYTES else "good"
        mend = "" if state == "good" else "Make room: SQLite needs some to finish what it writes."
        return Finding(name="disk", state=state, text=f"{free // MB:,} MB free at {str(home)!r}.", mend=mend)

    def _key_file(self) -> Finding:
        path = self._settings.key_file
        if not path.exists():
            has_key = bool(self._settings.secret_key)
            text = (
                "It comes from CORTEX_SECRET_KEY."
                if has_key
                else "There is none; a start makes one while no secret is stored."
            )
            return Finding(name="secret key", state="good", text=text)
        about = path.stat()
        if not about.st_size:
            mend = "Put the old file back; without one, a start makes another while no secret is stored."
            return Finding(name="secret key", state="bad", text=f"{str(path)!r} is empty.", mend=mend)
        mode = stat.S_IMODE(about.st_mode)
        if mode & private.OTHERS:
            return Finding(
                name="secret key",
                state="bad",
                text=f"{str(path)!r} can be read by others (mode {mode:04o}).",
                mend=f"chmod 600 {path}",
            )
        return Finding(name="secret key", state="good", text=f"{str(path)!r}, readable by its owner only.")

    async def _secrets(self) -> list[Finding]:
        values = await self._sealed.list()
        if not values:
            return []
        lost = [value.name for value in values if not value.opens]
        if lost:
            return [Finding(name="secrets", state="bad", text=await self._sealed.lost(), mend=ways_out(lost))]
        return [Finding(name="secrets", state="good", text=f"The secret key opens all {len(values)} stored secrets.")]

    def _home(self) -> list[Finding]:
        """Tell whether all of HOME is its owner's alone; the whole folder is looked through."""
        home = self._settings.home
        try:
            seen = private.look(home)
        except OSError as error:
            return [_of_files(f"{str(home)!r} cannot be looked through: {error.strerror}.", private.give(home))]
        found = []
        if seen.foreign.count:
            owned = f"In {str(home)!r} another user owns {seen.foreign}."
            found.append(_of_files(owned, f"{private.give(home)}. `cortex serve` does not start before."))
        if seen.loose.count:
            open_to = f"In {str(home)!r} other users may read or enter {seen.loose}."
            found.append(
                _of_files(open_to, f"`cortex serve` corrects it at start; or run chmod -R go= {shlex.quote(str(home))}")
            )
        if seen.stuck.count:
            found.append(_of_files(f"In {str(home)!r} cannot be looked at: {seen.stuck}.", private.give(home)))
        unusable = private.Paths()
        for path in sorted(home.iterdir()):
            if path.is_file() and not os.access(path, os.R_OK | os.W_OK) and not disk_faults.is_read_only(home):
                unusable.add(path.name)
        if unusable.count:
            mend = f"chmod u+rw {' '.join(shlex.quote(str(home / name)) for name in unusable.first)}"
            found.append(_of_files(f"In {str(home)!r} this user may not read or write {unusable}.", mend))
        return found or [Finding(name="files", state="good", text=f"Only this user can read {str(home)!r}.")]

    def _variables(self) -> list[Finding]:
        return [
            Finding(name="settings", state="warn", text=f"{line}.", mend="Correct or remove it.")
            for line in unknown_variables(os.environ)
        ]

    async def _database(self, *, is_whole: bool = False) -> Finding:
        kind = "PostgreSQL" if self._settings.is_postgresql else "SQLite"
        try:
            with faults.in_words(self._settings.database):
                if is_whole:
                    await refuse_unfit([self._settings.database])
                here = await self._db.revision()
                if is_whole:
                    await self._db.look_through()
                if is_whole and here:
                    await self._db.try_to_write()
        except ConfigError as error:
            return Finding(name="database", state="bad", text=error.message)
        except (SQLAlchemyError, OSError) as error:
            return Finding(name="database", state="bad", text=f"{kind} does not answer: {_first_line(error)}")
        newest = revisions.newest()
        if here != newest:
            return Finding(
                name="database",
                state="bad",
                text=f"{kind} answers, but its tables are at {here!r} and should be at {newest!r}."
                if here
                else f"{kind} answers, but has no tables yet.",
                mend="Run that newer version of Cortex again, or restore a backup."
                if here > newest
                else "Run `cortex migrate`; `cortex serve` does it too.",
            )
        wrote = " and can be written" if is_whole else ""
        return Finding(name="database", state="good", text=f"{kind} answers{wrote}; its tables are at {here!r}.")

    async def _audit(self) -> Finding:
        verdict = await self._audit_log.glance()
        if verdict.problem:
            return Finding(name="audit log", state="bad", text=verdict.problem, mend=f"{MEND}.")
        text = f"{verdict.entries:,} rows; the last one is unchanged. {verdict.doubt}".rstrip()
        return Finding(name="audit log", state="good", text=text)

    async def _stops(self) -> list[Finding]:
        return [
            Finding(
                name="stop",
                state="warn",
                text=f"{halt.what}, {halt.at:%Y-%m-%d %H:%M} UTC. {halt.meaning}",
                mend=f"Resume on the page /stop-all, or: {halt.command}",
            )
            for halt in await self._stop_all.all(None)
        ]

    async def _engine(self, *, is_whole: bool) -> Finding:
        try:
            if is_whole:
                await refuse_unfit([self._settings.engine_database])
            await self._examine_engine(is_whole=is_whole)
        except ConfigError as error:
            return Finding(name="engine", state="bad", text=error.message)
        except (SQLAlchemyError, OSError) as error:
            return Finding(name="engine", state="bad", text=_first_line(error))
        return Finding(name="engine", state="good", text="The database of running turns answers.")

    async def _people_and_models(self, of: User | None) -> list[Finding]:
        people = await self._accounts.users()
        if not people:
            return [
                Finding(
                    name="accounts",
                    state="warn",
                    text="No account exists yet.",
                    mend="Open the link that `cortex serve` or `cortex user setup-link` prints.",
                )
            ]
        found = [Finding(name="accounts", state="good", text=f"{len(people)} of them.")]
        for person in people:
            if of is None or of.id == person.id:
                found += [await self._models_of(person), *await self._slips_of(person)]
        return found

    async def _slips_of(self, user: User) -> list[Finding]:
        mend = f"Correct it in the folder {user.id!r} of CORTEX_HOME; turns that need it fail until then."
        found = [
            Finding(name=f"files of {user.name}", state="bad", text=slip, mend=mend) for slip in await self.slips(user)
        ]
        mend = "Correct it in the file, or on the role's page."
        for text in await self._files.names.all(user):
            found.append(Finding(name=f"roles of {user.name}", state="warn", text=text, mend=mend))
        return found

    async def _models_of(self, user: User) -> Finding:
        registry = await self._files.models.shown(user)
        name = f"models of {user.name}"
        if not registry.entries:
            return Finding(
                name=name,
                state="warn",
                text="Only the offline demo model, which is not an AI.",
                mend="Add one on the Models page.",
            )
        text = ", ".join(entry.name for entry in registry.entries) + "."
        if failing := await self.failing_model(user):
            text = f"{text} {failing} did not answer the last request."
            return Finding(name=name, state="warn", text=text, mend="Test it on the Models page.")
        return Finding(name=name, state="good", text=text)

    async def _refit(self) -> list[Finding]:
        """A model of this server's own that an update has put out of use."""
        refit = await self._db.repository(RefitsRepository).in_force()
        if refit is None or await asyncio.to_thread(is_current, refit):
            return []
        text = f"Refit {refit.number} was made for an older model, so the shipped one chooses tools."
        mend = "Make a new refit on the page Learn from use, or undo this one there."
        return [Finding(name="choice of tools", state="warn", text=text, mend=mend)]

    def _backup(self) -> Finding:
        state = self._backups.state()
        age_h = age_of(state, self._db.clock())
        if age_h is None:
            mend = "`cortex backup`, or the page Backups; CORTEX_BACKUP_NIGHTLY makes one every night."
            return Finding(name="backup", state="warn", text=f"There is none yet. {state.error}".strip(), mend=mend)
        text = f"The last one is {age_h:,.0f} h old."
        if state.error:
            return Finding(
                name="backup", state="bad", text=f"{text} The next failed: {state.error}", mend="See Backups."
            )
        if age_h > BACKUP_OLD_H:
            return Finding(
                name="backup", state="warn", text=text, mend="`cortex backup`, or set CORTEX_BACKUP_NIGHTLY."
            )
        return Finding(name="backup", state="good", text=text)

    async def _systems(self) -> list[Finding]:
        """Return how each outside system stood when it was last used; none is asked now."""
        return [
            Finding(
                name=card.title,
                state="warn" if card.is_failing else "good" if card.is_set_up else "unset",
                text=card.state,
                mend="Test it under Integrations." if card.is_failing else "",
            )
            for card in await self._integrations.cards()
            if card.is_shown_by_doctor
        ]

    async def _shut_in(self) -> Finding:
        probe = await self._sandbox.probe()
        if probe.level == "none":
            return Finding(
                name="sandbox",
                state="warn",
                text=f"None works here, so there is no shell tool. {probe.reason}",
                mend="Install bubblewrap, or allow user namespaces.",
            )
        return Finding(name="sandbox", state="good", text=f"{probe.level}. {probe.reason}".strip())

    def _port(self) -> Finding:
        settings = self._settings
        place = f"{settings.host}:{settings.port}"
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        try:
            socket.create_server((settings.host, settings.port), family=family).close()
        except OSError as error:
            text = f"Cannot listen on {place}: {os.strerror(error.errno or 0)}."
            if error.errno == errno.EADDRINUSE and (is_served(settings.home) or settings.is_postgresql):
                return Finding(name="port", state="warn", text=text, mend="Fine when it is Cortex that runs there.")
            return Finding(
                name="port", state="bad", text=text, mend="End what uses it, or choose another one by CORTEX_PORT."
            )
        return Finding(name="port", state="good", text=f"{place} is free.")

    def _clock(self) -> list[Finding]:
        moved_s = clock_moved_s(self._settings.home)
        if moved_s is None or abs(moved_s) < CLOCK_MAY_MOVE_S:
            return []
        way = "forwards" if moved_s > 0 else "backwards"
        return [
            Finding(
                name="clock",
                state="bad",
                text=f"It was set {way} by {timedelta(seconds=round(abs(moved_s)))} while Cortex was running.",
                mend="Set it right; where it is right now, start Cortex again, so that its times are counted anew.",
            )
        ]


def _of_files(text: str, mend: str) -> Finding:
    return Finding(name="files", state="bad", text=text, mend=mend)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
