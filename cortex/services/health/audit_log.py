"""The audit log as admins use it: read, filtered, exported, and verified against its head, which is kept apart.

Rows are written by whoever does what they tell, in the same transaction. Once a week every admin is notified of the
head, so that it also stands where nobody who can write HOME reaches it.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

from msgspec import Struct

from cortex.base.clock import Clock
from cortex.base.errors import UserError
from cortex.base.hidden import show_hidden
from cortex.base.user import User
from cortex.services.accounts.accounts import Accounts
from cortex.services.notifier import Notifier, notify
from cortex.storage.audit import AuditFilter as AuditFilter
from cortex.storage.audit import AuditRepository
from cortex.storage.audit import AuditRow as AuditRow
from cortex.storage.audit_head import BEGINNING, AuditHead, Head
from cortex.storage.db import Database
from cortex.storage.notices import NoticeValues
from cortex.storage.restored import RESTORED_UNSIGNED

ACCEPTED = "audit.accepted"
PAGE_ROWS = 50
EXPORT_ROWS = 1_000
NOTICE_KEPT = timedelta(days=400)
FIRST_AFTER = timedelta(days=7)
MEND = (
    "Compare with a backup and with the heads in the admins' notifications. To accept it as it is: cortex audit accept"
)


class AuditVerdict(Struct, frozen=True, kw_only=True):
    """The verdict on the log. `at`: the row at which it is wrong, None where it is whole; `problem`: what is wrong.

    `doubt`: which part nobody can vouch for, although it may be whole; it is a problem too until an admin accepts it.
    """

    entries: int
    head: str
    at: int | None = None
    problem: str = ""
    doubt: str = ""


class AuditPage(Struct, frozen=True, kw_only=True):
    """Rows, the newest first. `older`: pass it as `before` for those ahead of them, None where there are none."""

    rows: Sequence[AuditRow]
    older: int | None


class AuditLog(Struct, frozen=True, kw_only=True):
    """The log of the whole server. Its pages are for admins; who calls has to see to that, but for `export`."""

    db: Database
    accounts: Accounts
    notifier: Notifier
    clock: Clock

    async def verify(self, against: str = "") -> AuditVerdict:
        """Walk the whole log, then hold it against the kept head and against another one, as `NUMBER:HASH`.

        UserError for a head that cannot be read.
        """
        given = [_head_of(against)] if against else []
        since = await self._since()
        found = await self._log.verify(since.first if since else BEGINNING)
        _, newest = await self._log.heads(0)
        head = f"{newest.number}:{newest.hash}"
        if found.broken_at is not None:
            return AuditVerdict(entries=found.entries, head=head, at=found.broken_at, problem=found.why)
        wrong = await self._against([await self._kept(), *given], newest)
        return wrong or _whole(newest, since)

    async def glance(self) -> AuditVerdict:
        """As `verify`, of the end alone: whether the log still holds the row that was kept as its head."""
        _, newest = await self._log.heads(0)
        return await self._against([await self._kept()], newest) or _whole(newest, await self._since())

    async def _since(self) -> "_Since | None":
        """From where the log can be vouched for, where that is not its beginning."""
        row = await self._log.sealed(RESTORED_UNSIGNED)
        if row is None:
            return None
        facts, accepted = json.loads(row.detail), await self._log.sealed(ACCEPTED)
        first = BEGINNING if facts["is_same_key"] else Head(number=row.number - 1, hash=row.previous_hash)
        is_accepted = accepted is not None and accepted.number > row.number
        return _Since(row=row, made_at=str(facts["made_at"]), first=first, is_accepted=is_accepted)

    async def accept(self) -> str:
        """Take the log as it stands now, after a backup was put back or its head was lost; noted in it. The head."""
        await self._log.add("", ACCEPTED, "audit log")
        _, newest = await self._log.heads(0)
        if self._file is not None:
            await asyncio.to_thread(self._file.start, newest)
        return f"{newest.number}:{newest.hash}"

    async def page(self, which: AuditFilter, before: int | None = None) -> AuditPage:
        """A page of those that are meant."""
        rows = await self._log.list(PAGE_ROWS + 1, before, which=which)
        return AuditPage(rows=rows[:PAGE_ROWS], older=rows[PAGE_ROWS - 1].number if len(rows) > PAGE_ROWS else None)

    async def kinds(self) -> Sequence[str]:
        """Return what can be filtered by: every action that stands in the log, and what such begin with."""
        actions = await self._log.actions()
        return sorted({*actions, *(action.partition(".")[0] for action in actions)})

    async def export(self, by: User, which: AuditFilter) -> AsyncIterator[Sequence[AuditRow]]:
        """All that are meant, the newest first, a thousand at a time; that they were read out is noted. NotAllowed."""
        by.must_be_admin("read the audit log")
        noted = await self._log.add(by.id, "audit.exported", by.name)
        before: int | None = noted.number
        while before is not None:
            rows = await self._log.list(EXPORT_ROWS, before, which=which)
            yield rows
            before = rows[-1].number if len(rows) == EXPORT_ROWS else None

    async def notify_admins(self) -> None:
        """Once a week, the head; and whenever the log is found wrong, what is. Called every day.

        In its first week nobody is bothered with a log of a few rows: the head stands in HOME.
        """
        verdict, now = await self.verify(), self.clock()
        if not verdict.problem and not await self._log.list(1, which=AuditFilter(until=now - FIRST_AFTER)):
            return
        year, week, _ = now.isocalendar()
        key, title, text = f"audit:{year}-{week}", "The audit log is whole", f"It has {verdict.entries:,} rows."
        if verdict.problem:
            title = "The audit log cannot be vouched for" if verdict.doubt else "The audit log was changed"
            key, text = f"audit:{verdict.at}:{year}-{week}", verdict.problem
        values = NoticeValues(
            kind="system",
            title=title,
            text=f"{text} Its head: {verdict.head}. Keep this; `cortex audit verify --head` checks it later.",
            path="/admin/audit",
            urgency="high" if verdict.problem else "low",
            is_tainted=False,
            expires_at=now + NOTICE_KEPT,
        )
        for person in await self.accounts.users():
            if person.is_admin:
                await notify(self.db, self.notifier, person.id, key, values)

    async def _against(self, heads: Sequence[Head | None], newest: Head) -> AuditVerdict | None:
        """Return what is wrong with the log by one of these heads, None when it holds them all."""
        head = f"{newest.number}:{newest.hash}"
        for kept in heads:
            if kept is None:
                text = "The file audit.head in HOME is missing or is not ours: a cut end would not be seen."
                return AuditVerdict(entries=newest.number, head=head, at=newest.number, problem=text)
            named, _ = await self._log.heads(kept.number)
            if named is None:
                text = f"The end was cut: row {kept.number} was seen, and the last is {newest.number}."
                return AuditVerdict(entries=newest.number, head=head, at=newest.number + 1, problem=text)
            if named != kept:
                text = f"Row {kept.number} is another one than was seen: the log was rewritten there or before."
                return AuditVerdict(entries=newest.number, head=head, at=kept.number, problem=text)
        return None

    async def _kept(self) -> Head | None:
        return None if self._file is None else await asyncio.to_thread(self._file.read)

    @property
    def _log(self) -> AuditRepository:
        return self.db.repository(AuditRepository)

    @property
    def _file(self) -> AuditHead | None:
        return self.db.audit_head


class _Since(Struct, frozen=True, kw_only=True):
    """A backup that nobody can vouch for was restored in `row`; the chain is walked behind `first`."""

    row: AuditRow
    made_at: str
    first: Head
    is_accepted: bool


def _whole(newest: Head, since: _Since | None) -> AuditVerdict:
    head = f"{newest.number}:{newest.hash}"
    if since is None:
        return AuditVerdict(entries=newest.number, head=head)
    at, made_at = f"{since.row.at:%Y-%m-%d %H:%M} UTC", show_hidden(since.made_at[:40])
    doubt = (
        f"A backup that nobody can vouch for was restored on {at} (row {since.row.number}; it says that it was made at "
        f"{made_at}). What the log says of the time before then, and what it leaves out, cannot be vouched for."
    )
    if since.is_accepted:
        return AuditVerdict(entries=newest.number, head=head, doubt=doubt)
    return AuditVerdict(entries=newest.number, head=head, at=since.row.number, problem=doubt, doubt=doubt)


def _head_of(text: str) -> Head:
    found = re.fullmatch(r"(\d{1,15}):([0-9a-f]{64})", text.strip())
    if found is None:
        raise UserError("A head is written NUMBER:HASH, as in the notification.")
    return Head(number=int(found[1]), hash=found[2])
