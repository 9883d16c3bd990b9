"""A person's reminders, jobs and due tasks as a calendar address of their own, for the programs on their devices.

Whoever knows the address reads it, and nothing more: it is made, shown again, renewed and taken away by its person. The
secret stands sealed among theirs.
"""

import asyncio
import secrets
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

from msgspec import Struct, field

from cortex.base.crypto import Vault
from cortex.base.errors import ConfigError, NotFound, Throttled
from cortex.base.rates import MINUTE, Rates
from cortex.base.user import User
from cortex.base.zone import midnight
from cortex.services.calendars.agenda import AgendaService
from cortex.services.runtime import Runtime
from cortex.storage.accounts import AccountsRepository
from cortex.storage.audit import AuditRepository
from cortex.storage.due_tasks import DueTasksRepository
from cortex.storage.secrets import SecretsRepository

KEPT_AS = "calendar-feed"
AHEAD_DAYS, TASKS_MOST, LINES_MOST = 60, 200, 1_000
ASKED_A_MINUTE = 30
FOLD_BYTES = 74
NOT_HERE = "There is no such calendar."
TITLES = {"reminder": "Reminder", "job": "Job", "task": "To do"}


class CalendarFeed(Struct, frozen=True, kw_only=True):
    """The addresses of everybody. `_refused`, `_read`: of late, by whose they claim to be."""

    runtime: Runtime
    vault: Vault
    agenda: AgendaService
    _refused: Rates = field(default_factory=Rates)
    _read: Rates = field(default_factory=Rates)

    async def path(self, user: User) -> str:
        """The last parts of the person's address; "" while there is none."""
        secret = await self._secret(user.id)
        return f"{user.id}/{secret}.ics" if secret else ""

    async def make(self, user: User) -> None:
        """Give the person an address, in place of one that they have."""
        sealed = await asyncio.to_thread(self.vault.seal, secrets.token_urlsafe(24))
        async with self.runtime.db.transaction(user.id) as repository:
            await repository(SecretsRepository).put(KEPT_AS, sealed)
            await repository(AuditRepository).add(user.id, "calendar.feed_made", user.name)

    async def close(self, user: User) -> None:
        """Take it away; nothing where there is none."""
        async with self.runtime.db.transaction(user.id) as repository:
            if await repository(SecretsRepository).remove(KEPT_AS):
                await repository(AuditRepository).add(user.id, "calendar.feed_removed", user.name)

    async def read(self, owner_id: str, secret: str) -> str:
        """The calendar as text. NotFound for a wrong address, Throttled for too many of them."""
        now = self.runtime.clock()
        if max(self._refused.count(owner_id, now), self._read.count(owner_id, now)) >= ASKED_A_MINUTE:
            raise Throttled("Too many requests. Try again in a minute.", wait_s=MINUTE.total_seconds())
        kept = await self._secret(owner_id)
        if not kept or not secrets.compare_digest(kept.encode(), secret.encode()):
            if kept:  # nobody is counted who is not there: that is bounded by how many people there are
                self._refused.add(owner_id, now)
            raise NotFound(NOT_HERE)
        self._read.add(owner_id, now)
        person = await self.runtime.db.repository(AccountsRepository).get(owner_id)
        if not person.is_active:
            raise NotFound(NOT_HERE)
        user = User(id=person.id, name=person.name, rank=person.rank, time_zone=person.time_zone or "UTC")
        return await self._text(user, now)

    async def _secret(self, owner_id: str) -> str:
        sealed = await self.runtime.db.repository(SecretsRepository, owner_id).get(KEPT_AS)
        try:
            return await asyncio.to_thread(self.vault.unseal, sealed) if sealed else ""
        except ConfigError:
            return ""  # sealed under another key: a new address is made

    async def _text(self, user: User, now: datetime) -> str:
        since = midnight(now, user.time_zone)
        timed = await self.agenda.timed(user, since, since + timedelta(days=AHEAD_DAYS))
        until = (since + timedelta(days=AHEAD_DAYS)).date()
        tasks = await self.runtime.db.repository(DueTasksRepository, user.id).due(until, TASKS_MOST)
        lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Cortex//EN", "X-WR-CALNAME:Cortex"]
        for one in sorted(timed, key=lambda line: line.starts_at)[:LINES_MOST]:
            uid = f"{one.kind}-{one.id}-{one.starts_at:%Y%m%dT%H%M%S}"
            lines += _event(uid, now, f"{TITLES[one.kind]}: {one.text}", one.starts_at, one.ends_at)
        for row in tasks:
            if row.due is not None:
                lines += _event(f"task-{row.id}", now, f"{TITLES['task']}: {row.title}", row.due, None)
        return "".join(_folded(line) for line in [*lines, "END:VCALENDAR"])


def _event(uid: str, now: datetime, title: str, begins: datetime | date, ends: datetime | None) -> list[str]:
    """The lines of one entry; without an end it takes the whole day."""
    if isinstance(begins, datetime):
        times = [f"DTSTART:{_utc(begins)}", f"DTEND:{_utc(ends or begins)}"]
    else:
        times = [f"DTSTART;VALUE=DATE:{begins:%Y%m%d}"]
    said = title.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,")
    words = " ".join("".join(sign if sign.isprintable() else " " for sign in said).split())
    head = ["BEGIN:VEVENT", f"UID:{uid}@cortex", f"DTSTAMP:{_utc(now)}"]
    return [*head, *times, f"SUMMARY:{words}", "TRANSP:TRANSPARENT", "END:VEVENT"]


def _utc(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _folded(line: str) -> str:
    """The line as the format wants it: no more bytes in a row than it allows, no sign cut in two."""
    return "\r\n ".join(_pieces(line)) + "\r\n"


def _pieces(line: str) -> Iterator[str]:
    piece, size = "", 0
    for sign in line:
        wide = len(sign.encode("utf-8", "replace"))
        if size + wide > FOLD_BYTES:
            yield piece
            piece, size = "", 0
        piece, size = piece + sign, size + wide
    yield piece
