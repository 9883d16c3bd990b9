"""What is wrong with this installation, in plain words, each with how to mend it; for `cortex_status` in lines.

Changes nothing, asks no network.
"""

import asyncio
import errno
import os
import shlex
import shutil
import socket
import stat
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from msgspec import Struct
from sqlalchemy.exc import SQLAlchemyError

from cortex import VERSION
from cortex.base import disk_faults, faults, open_files, private
from cortex.base.clock import ticks_s
from cortex.base.database_needs import refuse_unfit
from cortex.base.errors import ConfigError
from cortex.base.serve_lock import clock_moved_s, is_served, server_of
from cortex.base.server_settings import row_of
from cortex.base.settings import Settings, unknown_variables
from cortex.base.user import User
from cortex.integrations.sandbox import Sandbox
from cortex.services.accounts.accounts import Accounts
from cortex.services.backup.backups import Backups, age_of
from cortex.services.health.audit_log import MEND, AuditLog
from cortex.services.health.finding import (
    Finding,
    State,
    backup_advice,
    bad,
    good,
    open_files_finding,
    outgoing_findings,
    page,
    plugin_findings,
    program_files,
    warn,
)
from cortex.services.health.sealed import SealedValues, ways_out
from cortex.services.integrations.integrations import Integrations
from cortex.services.roles.role_names import HomeFiles
from cortex.services.runtime import Runtime
from cortex.services.tools.own_weights import is_current
from cortex.services.tools.plugins import Plugins
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


class Doctor(Struct):
    """Looks at disk, keys, database, what is stopped, sandbox, models, page and port.

    `settings` as in force; the other parts as `compose/` made them.
    """

    settings: Settings
    db: Database
    sandbox: Sandbox
    accounts: Accounts
    files: HomeFiles
    stop_all: StopAll
    audit_log: AuditLog
    sealed: SealedValues
    examine_engine: ExamineEngine
    backups: Backups
    integrations: Integrations
    plugins: Plugins
    _looked_at: tuple[float, bool] | None = None

    async def is_ready(self) -> bool:
        """Tell whether a balancer may send people here: the database answers with the newest tables."""
        return (await self._database()).state == "good"

    async def is_well(self) -> bool:
        """Tell whether disk, key and database are in order; looked at once a minute at most, for every page."""
        at = ticks_s()
        if self._looked_at is None or at - self._looked_at[0] > LOOK_AGAIN_S:
            found = (self._disk(), self._key_file(), await self._database())
            self._looked_at = (at, all(one.state != "bad" for one in found))
        return self._looked_at[1]

    async def failing_model(self, user: User) -> str:
        """The model that did not answer this person's last request, "" for none; not one that they removed since."""
        since = self.db.clock() - MODEL_LOOKED_BACK
        name = await self.db.repository(RoundsRepository, user.id).failed_last(since)
        return name if name and any(one.name == name for one in (await self.files.models.shown(user)).entries) else ""

    async def slips(self, user: User) -> Sequence[str]:
        """Return what is wrong in the files of this person's home, for every page of theirs."""
        return await self.files.slips(user)

    async def examine(self, *, of: User | None = None) -> list[Finding]:
        """Every check, in the order in which one would mend them.

        `of`: asked by the running daemon for this person, so of others' models it says nothing and its port is its own.
        """
        await self.db.end_view()
        found = [self._disk(), *await asyncio.to_thread(self._home), *self._clock()]
        found += [warn("settings", f"{line}.", "Correct or remove it.") for line in unknown_variables(os.environ)]
        found += await asyncio.to_thread(outgoing_findings, os.environ)
        database = await self._database(is_whole=of is None)
        program = await asyncio.to_thread(program_files)
        found += [program, database, await self._engine(is_whole=of is None), self._key_file()]
        if database.state == "good":
            found += [await self._audit(), *await self._stops()]
            found += [*await self._secrets(), *await self._people_and_models(of)]
            found += [*(await self._refit() if program.state == "good" else []), *await self._systems()]
            found += plugin_findings(await self.plugins.list())
        return [
            *found,
            self._backup(),
            await self._shut_in(),
            *self._open_files(),
            page(),
            *([] if of else [self._port()]),
        ]

    def _disk(self) -> Finding:
        home = self.settings.home
        if refused := disk_faults.of_folder(home):
            return bad("disk", refused)
        free = shutil.disk_usage(home).free
        state: State = "bad" if free < FREE_BAD_BYTES else "warn" if free < FREE_WARN_BYTES else "good"
        mend = "" if state == "good" else "Make room: SQLite needs some to finish what it writes."
        return Finding(name="disk", state=state, text=f"{free // MB:,} MB free at {str(home)!r}.", mend=mend)

    def _key_file(self) -> Finding:
        path = self.settings.key_file
        if not path.exists():
            has_key = bool(self.settings.secret_key)
            text = (
                "It comes from CORTEX_SECRET_KEY."
                if has_key
                else "There is none; a start makes one while no secret is stored."
            )
            return good("secret key", text)
        about = path.stat()
        if not about.st_size:
            mend = "Put the old file back; without one, a start makes another while no secret is stored."
            return bad("secret key", f"{str(path)!r} is empty.", mend)
        mode = stat.S_IMODE(about.st_mode)
        if mode & private.OTHERS:
            return bad("secret key", f"{str(path)!r} can be read by others (mode {mode:04o}).", f"chmod 600 {path}")
        return good("secret key", f"{str(path)!r}, readable by its owner only.")

    async def _secrets(self) -> list[Finding]:
        values = await self.sealed.list()
        if not values:
            return []
        lost = [value.name for value in values if not value.opens]
        if lost:
            return [bad("secrets", await self.sealed.lost(), ways_out(lost))]
        return [good("secrets", f"The secret key opens all {len(values)} stored secrets.")]

    def _home(self) -> list[Finding]:
        """Tell whether all of HOME is its owner's alone; the whole folder is looked through."""
        home = self.settings.home
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
        return found or [good("files", f"Only this user can read {str(home)!r}.")]

    async def _database(self, *, is_whole: bool = False) -> Finding:
        kind = "PostgreSQL" if self.settings.is_postgresql else "SQLite"
        try:
            with faults.in_words(self.settings.database):
                if is_whole:
                    await refuse_unfit([self.settings.database])
                here = await self.db.revision()
                if is_whole:
                    await self.db.look_through()
                if is_whole and here:
                    await self.db.try_to_write()
        except ConfigError as error:
            return bad("database", error.message)
        except (SQLAlchemyError, OSError) as error:
            return bad("database", f"{kind} does not answer: {_first_line(error)}")
        newest = revisions.newest()
        if here != newest:
            return bad(
                "database",
                f"{kind} answers, but its tables are at {here!r} and should be at {newest!r}."
                if here
                else f"{kind} answers, but has no tables yet.",
                "Run that newer version of Cortex again, or restore a backup."
                if here > newest
                else "Run `cortex migrate`; `cortex serve` does it too.",
            )
        wrote = " and can be written" if is_whole else ""
        return good("database", f"{kind} answers{wrote}; its tables are at {here!r}.")

    async def _audit(self) -> Finding:
        verdict = await self.audit_log.glance()
        if verdict.problem:
            return bad("audit log", verdict.problem, f"{MEND}.")
        text = f"{verdict.entries:,} rows; the last one is unchanged. {verdict.doubt}".rstrip()
        return good("audit log", text)

    async def _stops(self) -> list[Finding]:
        return [
            warn(
                "stop",
                f"{halt.what}, {halt.at:%Y-%m-%d %H:%M} UTC. {halt.meaning}",
                f"Resume on the page /stop-all, or: {halt.command}",
            )
            for halt in await self.stop_all.all(None)
        ]

    async def _engine(self, *, is_whole: bool) -> Finding:
        try:
            if is_whole:
                await refuse_unfit([self.settings.engine_database])
            await self.examine_engine(is_whole=is_whole)
        except ConfigError as error:
            return bad("engine", error.message)
        except (SQLAlchemyError, OSError) as error:
            return bad("engine", _first_line(error))
        return good("engine", "The database of running turns answers.")

    async def _people_and_models(self, of: User | None) -> list[Finding]:
        people = await self.accounts.users()
        if not people:
            return [
                warn(
                    "accounts",
                    "No account exists yet.",
                    "Open the link that `cortex serve` or `cortex user setup-link` prints.",
                )
            ]
        found = [good("accounts", f"{len(people)} of them.")]
        for person in people:
            if of is None or of.id == person.id:
                found += [await self._models_of(person), *await self._slips_of(person)]
        return found

    async def _slips_of(self, user: User) -> list[Finding]:
        mend = f"Correct it in the folder {user.id!r} of CORTEX_HOME; turns that need it fail until then."
        found = [bad(f"files of {user.name}", slip, mend) for slip in await self.slips(user)]
        mend = "Correct it in the file, or on the role's page."
        for text in await self.files.names.all(user):
            found.append(warn(f"roles of {user.name}", text, mend))
        return found

    async def _models_of(self, user: User) -> Finding:
        registry = await self.files.models.shown(user)
        name = f"models of {user.name}"
        if not registry.entries:
            return warn(name, "Only the offline demo model, which is not an AI.", "Add one on the Models page.")
        text = ", ".join(entry.name for entry in registry.entries) + "."
        if failing := await self.failing_model(user):
            text = f"{text} {failing} did not answer the last request."
            return warn(name, text, "Test it on the Models page.")
        return good(name, text)

    async def _refit(self) -> list[Finding]:
        """A model of this server's own that an update has put out of use."""
        refit = await self.db.repository(RefitsRepository).in_force()
        if refit is None or await asyncio.to_thread(is_current, refit):
            return []
        text = f"Refit {refit.number} was made for an older model, so the shipped one chooses tools."
        mend = "Make a new refit on the page Learn from use, or undo this one there."
        return [warn("choice of tools", text, mend)]

    def _backup(self) -> Finding:
        state = self.backups.state()
        age_h = age_of(state, self.db.clock())
        if age_h is None:
            mend = f"`cortex backup`, or the page Backups; one every night: {row_of('backup_nightly')}."
            return warn("backup", f"There is none yet. {state.error}".strip(), mend)
        text = f"The last one is {age_h:,.0f} h old."
        if state.error:
            return bad("backup", f"{text} The next failed: {state.error}", "See Backups.")
        if age_h > BACKUP_OLD_H:
            return warn("backup", text, f"`cortex backup`; one every night: {row_of('backup_nightly')}.")
        return good("backup", " ".join((text, *backup_advice(self.settings))))

    async def _systems(self) -> list[Finding]:
        """Return how each outside system stood when it was last used; none is asked now."""
        return [
            Finding(
                name=card.title,
                state="warn" if card.is_failing else "good" if card.is_set_up else "unset",
                text=card.state,
                mend="Test it under Integrations." if card.is_failing else "",
            )
            for card in await self.integrations.cards()
            if card.is_shown_by_doctor
        ]

    async def _shut_in(self) -> Finding:
        probe = await self.sandbox.probe()
        if probe.level == "none":
            return warn(
                "sandbox",
                f"None works here, so there is no shell tool. {probe.reason}",
                "Install bubblewrap, or allow user namespaces.",
            )
        return good("sandbox", f"{probe.level}. {probe.reason}".strip())

    def _open_files(self) -> list[Finding]:
        """Of the process that serves, also where another one asks; of several that share a server, of this one."""
        home = self.settings.home
        seen = open_files.of_process(server_of(home) or os.getpid() if is_served(home) else os.getpid())
        return [] if seen is None else [open_files_finding(seen)]

    def _port(self) -> Finding:
        settings = self.settings
        place = f"{settings.host}:{settings.port}"
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        try:
            socket.create_server((settings.host, settings.port), family=family).close()
        except OSError as error:
            text = f"Cannot listen on {place}: {os.strerror(error.errno or 0)}."
            if error.errno == errno.EADDRINUSE and (is_served(settings.home) or settings.is_postgresql):
                return warn("port", text, "Fine when it is Cortex that runs there.")
            return bad("port", text, "End what uses it, or choose another one: CORTEX_PORT.")
        return good("port", f"{place} is free.")

    def _clock(self) -> list[Finding]:
        moved_s = clock_moved_s(self.settings.home)
        if moved_s is None or abs(moved_s) < CLOCK_MAY_MOVE_S:
            return []
        way = "forwards" if moved_s > 0 else "backwards"
        return [
            bad(
                "clock",
                f"It was set {way} by {timedelta(seconds=round(abs(moved_s)))} while Cortex was running.",
                "Set it right; where it is right now, start Cortex again, so that its times are counted anew.",
            )
        ]


def _of_files(text: str, mend: str) -> Finding:
    return bad("files", text, mend)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__


class StatusService(Struct, frozen=True, kw_only=True):
    """Implements the `Status` port."""

    runtime: Runtime
    doctor: Doctor
    started_at: datetime

    async def lines(self) -> tuple[str, ...]:
        """Version, time up, database, then the doctor's findings."""
        up_s = (self.runtime.clock() - self.started_at).total_seconds()
        kind = "PostgreSQL" if self.runtime.db.is_postgresql else "SQLite"
        head = (
            f"Cortex {VERSION}, up {up_s / 3600:.1f} h, {kind}, {len(await self.runtime.runner.unfinished())} runs open"
        )
        findings = await self.doctor.examine()
        return (head, *(f"{item.name}: {item.state}. {item.text}" for item in findings))
