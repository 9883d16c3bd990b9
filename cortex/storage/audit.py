"""The audit log: rows chained by keyed hashes, which the database itself refuses to change or delete.

The key is the database's (`storage/db.py`), made from the secret key; the newest row is kept apart (`audit_head.py`).
"""

import hmac
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import func, insert, or_, select, text

from cortex.storage.audit_head import BEGINNING, Head
from cortex.storage.repository import SharedRepository, as_row, reading, selected
from cortex.storage.schema import AuditTable
from cortex.storage.table import StorableText

AUDIT_KEY, AUDITED = "audit_key", "audited"  # of a session: the chain's key, and the first row that it added
_LOCK = 0x0C07_7E31
_STRIDE = 1000


class AuditRow(Struct, frozen=True, kw_only=True):
    """A link of the chain. `detail` is canonical JSON; `hash` covers everything else and the hash before."""

    number: int
    at: datetime
    actor: str
    action: str
    subject: str
    detail: str
    previous_hash: str
    hash: str


class ChainVerdict(Struct, frozen=True, kw_only=True):
    """The verdict on the chain: `entries` that hold; the number of the first that does not, or None, and why."""

    entries: int
    broken_at: int | None
    why: str = ""


class AuditFilter(Struct, frozen=True, kw_only=True):
    """A choice of rows; an empty field means any.

    `person`: the id of who acted, `name`: of whom it was about; either will do. `kind`: an action or what it begins
    with. `since`, `until`: from the one to just ahead of the other.
    """

    person: str = ""
    name: str = ""
    kind: str = ""
    since: datetime | None = None
    until: datetime | None = None


ANY = AuditFilter()


_LINKS = selected(AuditRow, AuditTable)


class AuditRepository(SharedRepository):
    """The log of the whole server; who may read it is the services' matter."""

    async def add(self, actor: str, action: str, subject: str, detail: dict[str, Any] | None = None) -> AuditRow:
        """Add a row, in this transaction. Secrets do not belong in it."""
        if self._is_postgresql:  # SQLite has one writer anyway
            await self.session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        last = await self._first(AuditRow, _LINKS.order_by(AuditTable.number.desc()))
        unsealed = AuditRow(
            number=last.number + 1 if last else 1,
            at=self.clock(),
            actor=_plain(actor),
            action=_plain(action),
            subject=_plain(subject),
            detail=json.dumps(detail or {}, sort_keys=True, separators=(",", ":")),
            previous_hash=last.hash if last else BEGINNING.hash,
            hash="",
        )
        row = replace(unsealed, hash=chained(self._key, unsealed))
        await self.session.execute(insert(AuditTable), as_row(row))
        self.session.info.setdefault(AUDITED, row.number)
        return row

    @reading
    async def list(
        self, limit: int = 100, before: int | None = None, *, subject: str | None = None, which: AuditFilter = ANY
    ) -> Sequence[AuditRow]:
        """The newest first, those ahead of number `before`; `subject` and `which` narrow it."""
        statement = _LINKS
        if before is not None:
            statement = statement.where(AuditTable.number < before)
        if subject is not None:
            statement = statement.where(AuditTable.subject == subject)
        if which.person:
            statement = statement.where(or_(AuditTable.actor == which.person, AuditTable.subject == which.name))
        if which.kind:
            begins_with = func.substr(AuditTable.action, 1, len(which.kind) + 1, type_=StorableText())
            statement = statement.where(or_(AuditTable.action == which.kind, begins_with == f"{which.kind}."))
        if which.since is not None:
            statement = statement.where(AuditTable.at >= which.since)
        if which.until is not None:
            statement = statement.where(AuditTable.at < which.until)
        return await self._all(AuditRow, statement.order_by(AuditTable.number.desc()).limit(limit))

    @reading
    async def actions(self) -> Sequence[str]:
        """Every action that stands in the log, by name."""
        statement = select(AuditTable.action).distinct().order_by(AuditTable.action)
        return (await self.session.execute(statement)).scalars().all()

    @reading
    async def sealed(self, action: str) -> AuditRow | None:
        """The newest row of this action that was sealed with the present key: a forged one is none."""
        rows = await self._all(AuditRow, _LINKS.where(AuditTable.action == action).order_by(AuditTable.number.desc()))
        return next((row for row in rows if hmac.compare_digest(row.hash, chained(self._key, row))), None)

    @reading
    async def heads(self, number: int) -> tuple[Head | None, Head]:
        """The row of this number, None where it is gone, and the newest one; number 0 is the beginning."""
        columns = selected(Head, AuditTable)
        named = await self._first(Head, columns.where(AuditTable.number == number))
        newest = await self._first(Head, columns.order_by(AuditTable.number.desc()))
        return (named if number else BEGINNING), newest or BEGINNING

    @reading
    async def verify(self, since: Head = BEGINNING) -> ChainVerdict:
        """Walk the chain behind `since`: numbers without a gap, every hash as computed, every link to the last."""
        last = since
        while True:
            links = _LINKS.where(AuditTable.number > last.number).order_by(AuditTable.number).limit(_STRIDE)
            entries = await self._all(AuditRow, links)
            for entry in entries:
                if why := _fault(self._key, last, entry):
                    return ChainVerdict(entries=last.number, broken_at=entry.number, why=why)
                last = Head(number=entry.number, hash=entry.hash)
            if len(entries) < _STRIDE:
                return ChainVerdict(entries=last.number, broken_at=None)

    @property
    def _key(self) -> bytes:
        key: bytes = self.session.info[AUDIT_KEY]
        return key


def chained(key: bytes, entry: AuditRow) -> str:
    """The hash of a row under the chain's key: over all of it, and the hash of the row before."""
    fields = [entry.number, entry.at.isoformat(), entry.actor, entry.action, entry.subject, entry.detail]
    return hmac.new(key, json.dumps([entry.previous_hash, *fields]).encode(), "sha256").hexdigest()


def _fault(key: bytes, last: Head, entry: AuditRow) -> str:
    """Why this row does not continue the chain, or ""."""
    if entry.number != last.number + 1:
        return f"Rows {last.number + 1} to {entry.number - 1} are gone."
    if entry.previous_hash != last.hash:
        return f"It does not follow row {last.number}: one of the two was changed or put in."
    if not hmac.compare_digest(entry.hash, chained(key, entry)):
        return "It was changed after it was written, or the secret key is not the one it was written with."
    return ""


def _plain(text_given: str) -> str:
    """Return what both databases give back exactly as it went in."""
    return text_given.encode("utf-8", "replace").decode().replace("\x00", "?")
