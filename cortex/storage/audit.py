"""The audit log: rows chained by hashes, which the database itself refuses to change or delete."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, insert, select, text

from cortex.storage.repository import SharedRepository, reading
from cortex.storage.schema import AuditTable

_START = "0" * 64
_LOCK = 0x0C07_7E31
_STRIDE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """A link of the chain. `detail` is canonical JSON; `hash` covers everything else and the hash before."""

    number: int
    at: datetime
    actor: str
    action: str
    subject: str
    detail: str
    previous_hash: str
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainVerdict:
    """How the chain was found: `entries` that hold; the number of the first that does not, or None."""

    entries: int
    broken_at: int | None


class AuditRepository(SharedRepository):
    """The log of the whole server; who may read it is the services' matter."""

    async def add(self, actor: str, action: str, subject: str, detail: dict[str, Any] | None = None) -> AuditRow:
        """Add a row, in this transaction. Secrets do not belong in it."""
        if self._is_postgresql:  # SQLite has one writer anyway
            await self.session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        last = await self._first(AuditRow, self._links().order_by(AuditTable.number.desc()))
        unsealed = AuditRow(
            number=last.number + 1 if last else 1,
            at=self.clock(),
            actor=_plain(actor),
            action=_plain(action),
            subject=_plain(subject),
            detail=json.dumps(detail or {}, sort_keys=True, separators=(",", ":")),
            previous_hash=last.hash if last else _START,
            hash="",
        )
        values = {name: getattr(unsealed, name) for name in AuditRow.__dataclass_fields__}
        values["hash"] = _hash(unsealed)
        await self.session.execute(insert(AuditTable), values)
        return AuditRow(**values)

    @reading
    async def list(
        self, limit: int = 100, before: int | None = None, *, subject: str | None = None
    ) -> Sequence[AuditRow]:
        """The newest first, those ahead of number `before`; `subject` narrows it to one."""
        statement = self._links()
        if before is not None:
            statement = statement.where(AuditTable.number < before)
        if subject is not None:
            statement = statement.where(AuditTable.subject == subject)
        return await self._all(AuditRow, statement.order_by(AuditTable.number.desc()).limit(limit))

    @reading
    async def verify(self) -> ChainVerdict:
        """Walk the whole chain: numbers without a gap, every hash as computed, every link to the one before."""
        previous, count = _START, 0
        while True:
            links = self._links().where(AuditTable.number > count).order_by(AuditTable.number).limit(_STRIDE)
            entries = await self._all(AuditRow, links)
            for entry in entries:
                is_whole = entry.number == count + 1 and entry.previous_hash == previous and entry.hash == _hash(entry)
                if not is_whole:
                    return ChainVerdict(entries=count, broken_at=entry.number)
                previous, count = entry.hash, entry.number
            if len(entries) < _STRIDE:
                return ChainVerdict(entries=count, broken_at=None)

    def _links(self) -> Select[Any]:
        return select(*(getattr(AuditTable, name) for name in AuditRow.__dataclass_fields__))


def _hash(entry: AuditRow) -> str:
    fields = [entry.number, entry.at.isoformat(), entry.actor, entry.action, entry.subject, entry.detail]
    return hashlib.sha256(json.dumps([entry.previous_hash, *fields]).encode()).hexdigest()


def _plain(text_given: str) -> str:
    """What both databases give back exactly as it went in."""
    return text_given.encode("utf-8", "replace").decode().replace("\x00", "?")
