"""The settings of the server as admins change them on the page: checked, stored, in force at once or with a restart.

What was given outside wins. What could lock out whoever changes it is on trial: it goes back unless it is confirmed
within two minutes, after a restart or a kill too, since the row alone says when. `web/serve.py` has a start that fails
by it go back at once.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base import log as lines
from cortex.base.clock import Clock
from cortex.base.crypto import Vault
from cortex.base.errors import ConfigError, UserError
from cortex.base.outages import Outages
from cortex.base.server_settings import (
    KINDS,
    Value,
    as_text,
    default_of,
    in_words,
    kind_of,
    put_in_force,
    refusal,
    shape_of,
    with_texts,
)
from cortex.base.settings import PREFIX, Settings
from cortex.base.user import User
from cortex.storage.audit import AuditRepository
from cortex.storage.db import Database, Opener
from cortex.storage.secrets import ServerSecretsRepository
from cortex.storage.server_settings import ServerSettingRow, ServerSettingsRepository

TRIAL = timedelta(minutes=2)
SEALED = "sealed"  # in place of a secret, in its row
SECRET = "setting:"  # noqa: S105 - how the names of their sealed rows begin
BEFORE = ":before"
UNCONFIRMED = "It was not confirmed within two minutes, so it went back."
PROXIES_ASK = "Trusted proxies say who a visitor is. Give your password again to change them."

log = logging.getLogger(__name__)


class ServerSettings(Struct, frozen=True, kw_only=True):
    """Sets them, tries them, and takes them back.

    `restart`: begins this process anew; UserError where nobody can. `listeners`: called when something has changed.
    `waits`: names of those that hold from the next start on.
    """

    settings: Settings
    db: Database
    vault: Vault
    clock: Clock
    outages: Outages = field(default_factory=Outages)
    restart: Callable[[], None] = lambda: None
    listeners: list[Callable[[], None]] = field(default_factory=list)
    waits: set[str] = field(default_factory=set)
    _stirred: asyncio.Event = field(default_factory=asyncio.Event)
    _ends: dict[str, datetime] = field(default_factory=dict)  # when the trials end, as of the last look

    # --- what is set

    async def rows(self) -> Mapping[str, ServerSettingRow]:
        """The settings that were ever changed here, by name."""
        found = await self.db.repository(ServerSettingsRepository).list()
        return {row.name: row for row in found if row.name in KINDS}  # another version may have had more

    def is_given(self, name: str) -> bool:
        """Tell whether it was given outside, which wins."""
        return name in self.settings.model_fields_set

    @property
    def trial_ends_at(self) -> datetime | None:
        """When the first trial ends, as of the last look; None while none is going on."""
        return min(self._ends.values(), default=None)

    # --- changes

    async def set(
        self, user: User, values: Mapping[str, Value], *, is_confirmed: bool = False, is_proven: bool = False
    ) -> Sequence[str]:
        """Set these by the names of their fields in `Settings`, all or none; None or "" unsets one. Names that changed.

        is_confirmed: whoever asks has just given the password, as trusted proxies need it. What can lock out goes on
        trial (`keep` ends that); with one that needs a restart among them, all of them with that restart. is_proven:
        it was seen to work, so there is no trial. UserError names the field that is wrong; NotAllowed for who is no
        admin.
        """
        user.must_be_admin("change the server's settings")
        rows = await self.rows()
        wanted = {kind_of(name).name: _text(name, value) for name, value in values.items()}
        present = await self._texts({name: row.value for name, row in rows.items()})
        changes = {name: text for name, text in wanted.items() if text != present.get(name)}
        for name in changes:
            if self.is_given(name):
                raise UserError(f"{PREFIX}{name.upper()} is set outside, which wins. Change it there.", field=name)
        if "trusted_proxies" in changes and not is_confirmed:
            raise UserError(PROXIES_ASK, field="password")
        await self._check({**present, **changes}, changes)
        if changes:
            tried = set() if is_proven else {name for name in changes if KINDS[name].is_tried}
            await self._write(user.id, changes, tried)
        return list(changes)

    async def unset(self, user: User | None, name: str) -> bool:
        """Let it be as without the page, with no trial; whether anything was set. `user` None: by the command line."""
        if user:
            user.must_be_admin("change the server's settings")
        name = kind_of(name).name
        async with self.db.transaction() as repository:
            row = (await _held(repository)).get(name)
            if row is None or row.value is None:
                return False
            await _keep_secret(repository, name, None)
            values = {"before": row.value, "value": None, "is_on_trial": False, "trial_ends_at": None, "note": ""}
            by = user.id if user else ""
            await repository(ServerSettingsRepository).save(replace(row, **values, set_by=by, set_at=self.clock()))
            await repository(AuditRepository).add(by or "command", "setting.unset", name)
        await self._after()
        return True

    async def undo(self, user: User, name: str, *, is_confirmed: bool = False) -> None:
        """Set it to what it was ahead of its last change; once more undoes that. UserError where it never changed."""
        name = kind_of(name).name
        row = (await self.rows()).get(name)
        if row is None or (row.value == row.before and shape_of(name) != "secret"):
            raise UserError("It was not changed here.", field=name)
        before = (await self._texts({f"{name}{BEFORE}": row.before})).get(f"{name}{BEFORE}")
        await self.set(user, {name: before}, is_confirmed=is_confirmed)

    async def keep(self, user: User) -> None:
        """End the trial: what is tried stays."""
        user.must_be_admin("change the server's settings")
        await self._end_trial(user.id, lambda row: row.trial_ends_at is not None, keeps=True)

    async def take_back(self, user: User | None, note: str = "") -> bool:
        """Let everything on trial go back; whether anything was. note: why, for its row. A restart where one is due."""
        if user:
            user.must_be_admin("change the server's settings")
        return await self._end_trial(user.id if user else "server", lambda _: True, keeps=False, note=note)

    # --- their life

    async def begin(self, *, is_daemon: bool) -> None:
        """Put all in force, at a start; with a daemon, trials that waited for it begin and those that are over end."""
        if is_daemon:
            await self._begin_trials()
        await self.look(is_start=True)

    async def _begin_trials(self) -> None:
        await self._take_back_overdue()
        ends = self.clock() + TRIAL
        if any(map(_waits_for_start, (await self.rows()).values())):
            async with self.db.transaction() as repository:
                for row in filter(_waits_for_start, (await _held(repository)).values()):
                    await repository(ServerSettingsRepository).save(replace(row, trial_ends_at=ends))

    async def look(self, *, is_start: bool = False) -> None:
        """Put in force what stands in the table; a restart alone brings the rest."""
        rows, at = await self.rows(), self.clock()
        self._ends.clear()
        self._ends.update(
            {row.name: row.trial_ends_at for row in rows.values() if row.is_on_trial and row.trial_ends_at}
        )
        texts = await self._texts({name: row.text(at) for name, row in rows.items()})
        before = self.settings.log_level
        now = put_in_force(self.settings, {name: text for name, text in texts.items() if text}, is_start=is_start)
        self.waits.clear()
        self.waits.update(now.waits)
        for name, why in now.wrong.items():
            log.warning("settings: %s%s as set on the page is not used: %s", PREFIX, name.upper(), why)
        lines.also_blot(*self.settings.known_secrets)
        if self.settings.log_level != before:
            lines.set_level(self.settings.log_level)

    async def watch(self) -> None:
        """Run until cancelled: take back what is not confirmed in time, and heed what another process has set."""
        while True:
            ends, waited_for = self.trial_ends_at, None
            try:
                async with asyncio.timeout(max(0.0, (ends - self.clock()).total_seconds()) if ends else None):
                    await self._stirred.wait()
            except TimeoutError:
                waited_for = ends  # over, also where the system's clock was set back meanwhile
            self._stirred.clear()
            await self.outages.wait_out(partial(self._take_back_overdue, waited_for))
            await self.outages.wait_out(self.look)

    def go_on(self, before: "ServerSettings") -> None:
        """Know of the trials that this one knows of, who looked ahead of the services."""
        self._ends.update(before._ends)

    def stir(self) -> None:
        """Look again, soon: another process has changed something."""
        self._stirred.set()

    async def _take_back_overdue(self, waited_for: datetime | None = None) -> None:
        at = max(self.clock(), waited_for or self.clock())

        def is_over(row: ServerSettingRow) -> bool:
            return row.trial_ends_at is not None and row.trial_ends_at <= at

        await self._end_trial("server", is_over, keeps=False, note=UNCONFIRMED)

    async def _end_trial(
        self, by: str, ends: Callable[[ServerSettingRow], bool], *, keeps: bool, note: str = ""
    ) -> bool:
        if not any(row.is_on_trial and ends(row) for row in (await self.rows()).values()):
            return False
        async with self.db.transaction() as repository:  # read anew in it: of two that end one, the first has the say
            found = [row for row in (await _held(repository)).values() if row.is_on_trial and ends(row)]
            for row in found:
                values = {"is_on_trial": False, "trial_ends_at": None, "note": note}
                values |= {} if keeps else {"value": row.before, "before": row.value}
                await repository(ServerSettingsRepository).save(replace(row, **values))
                detail = {"note": note} if note else {}
                action = "setting.kept" if keeps else "setting.taken_back"
                await repository(AuditRepository).add(by, action, row.name, detail)
        if not keeps and found:
            log.warning("settings: taken back: %s", ", ".join(row.name for row in found))
        await self._after()
        if not keeps and any(KINDS[row.name].needs_restart and row.trial_ends_at for row in found):
            with suppress(UserError):  # of several processes nobody can; each goes back at its next start
                self.restart()
        return bool(found)

    # --- how they are kept

    async def _check(self, texts: Mapping[str, str | None], changes: Mapping[str, str | None]) -> None:
        made = with_texts(self.settings, {name: text for name, text in texts.items() if text})
        tried = next((name for name in changes if KINDS[name].is_tried), "")
        if tried and (why := refusal(made, has_account=True)):
            raise UserError(in_words(why), field=tried)
        if place := next((name for name in ("port", "host") if name in changes), ""):
            await asyncio.to_thread(_must_be_free, made, place)

    async def _write(self, by: str, changes: Mapping[str, str | None], tried: AbstractSet[str]) -> None:
        at = self.clock()
        waits = any(KINDS[name].needs_restart for name in tried)
        secrets = {name: text for name, text in changes.items() if text and shape_of(name) == "secret"}
        sealed = {name: await asyncio.to_thread(self.vault.seal, text) for name, text in secrets.items()}
        async with self.db.transaction() as repository:
            rows = await _held(repository)
            for name, text in changes.items():
                row = rows.get(name, ServerSettingRow(name=name))
                is_secret = shape_of(name) == "secret"
                await _keep_secret(repository, name, sealed.get(name))
                changed = replace(
                    row,
                    value=SEALED if is_secret and text else text,
                    before=row.before if row.is_on_trial else row.value,
                    set_by=by,
                    set_at=at,
                    is_on_trial=name in tried,
                    trial_ends_at=at + TRIAL if name in tried and not waits else None,
                    note="",
                )
                await repository(ServerSettingsRepository).save(changed)
                detail = {} if is_secret else {"before": row.text(at) or "", "value": text or ""}
                await repository(AuditRepository).add(by, "setting.set" if text else "setting.unset", name, detail)
        await self._after()

    async def _after(self) -> None:
        await self.look()
        self.stir()
        for listener in self.listeners:
            listener()

    async def _texts(self, values: Mapping[str, str | None]) -> dict[str, str | None]:
        """The values with the secrets opened; one that cannot be opened counts as not set, as the doctor says."""
        found = dict(values)
        for name, value in values.items():
            if value is None or shape_of(name.removesuffix(BEFORE)) != "secret":
                continue
            sealed = await self.db.repository(ServerSecretsRepository).get(f"{SECRET}{name}")
            try:
                found[name] = await asyncio.to_thread(self.vault.unseal, sealed) if sealed else None
            except ConfigError:
                found[name] = None
        return found


def _text(name: str, value: Value) -> str | None:
    """The value as it is stored; None where that is the default anyway."""
    text = as_text(value)
    return None if text in ("", as_text(default_of(kind_of(name).name))) else text


async def _held(repository: Opener) -> Mapping[str, ServerSettingRow]:
    """The settings that were ever changed here, by name; nobody else changes them before this transaction ends."""
    rows = await repository(ServerSettingsRepository).list(is_held=True)
    return {row.name: row for row in rows if row.name in KINDS}


async def _keep_secret(repository: Opener, name: str, sealed: bytes | None) -> None:
    """Put another secret in place of the one of this setting, if it has any, which is kept as the one before."""
    if shape_of(name) != "secret":
        return
    secrets = repository(ServerSecretsRepository)
    now, former = f"{SECRET}{name}", f"{SECRET}{name}{BEFORE}"
    kept = await secrets.get(now)
    await (secrets.put(former, kept) if kept else secrets.remove([former]))
    await (secrets.put(now, sealed) if sealed else secrets.remove([now]))


def _waits_for_start(row: ServerSettingRow) -> bool:
    return row.is_on_trial and row.trial_ends_at is None


def _must_be_free(settings: Settings, changed: str) -> None:
    """UserError at what was changed where this machine cannot listen there; of an address alone, on no port of it."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        settings.host.replace("\0", "\ud800").encode("idna")  # what no name can be would come as a TypeError
        socket.create_server((settings.host, settings.port if changed == "port" else 0), family=family).close()
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or "this is no address of this machine"
        raise UserError(f"Cannot listen on {settings.host}:{settings.port}: {why}.", field=changed) from error
