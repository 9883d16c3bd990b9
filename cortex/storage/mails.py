"""The index of mails: heads by folder and number, found by words, people, time and marks; which of them are news."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, Select, and_, false, func, or_, select

from cortex.ports.mail import MailWanted
from cortex.storage.repository import Repository, as_row, reading
from cortex.storage.schema import MailNewsTable, MailTable, MailTriggerTable
from cortex.storage.words import fold, pieces

NO_MAIL = "There is no such mail."
ROWS_AT_ONCE = 500
THREAD_MOST = 200
WORDS_CHARACTERS = 2_000


class MailRow(Struct, frozen=True, kw_only=True):
    """The head of a mail. `recipients`: as JSON, pairs of address and name; `words`: see `found_by`."""

    id: str
    owner_id: str
    folder_id: str
    uid: int
    at: datetime
    sender: str
    sender_name: str
    recipients: str
    subject: str
    message_id: str
    thread: str
    words: str
    size: int
    is_seen: bool
    is_flagged: bool
    is_answered: bool
    is_draft: bool
    has_files: bool


class MailsRepository(Repository):
    """The index of one person's mails."""

    @reading
    async def get(self, id: str) -> MailRow:
        """One of theirs; NotFound."""
        return await self._get(MailRow, MailTable, id, NO_MAIL)

    @reading
    async def uids(self, folder_id: str) -> frozenset[int]:
        """The numbers of a folder's mails."""
        statement = select(MailTable.uid).where(self._reach(MailTable), MailTable.folder_id == folder_id)
        return frozenset((await self.session.execute(statement)).scalars())

    @reading
    async def marked(self, folder_id: str, mark: str) -> frozenset[int]:
        """The numbers of those with this mark: is_seen, is_flagged or is_answered."""
        where = self._reach(MailTable), MailTable.folder_id == folder_id, getattr(MailTable, mark)
        return frozenset((await self.session.execute(select(MailTable.uid).where(*where))).scalars())

    @reading
    async def at(self, folder_id: str, uids: Sequence[int]) -> Sequence[MailRow]:
        """Those of these numbers, the newest first."""
        found: list[MailRow] = []
        for start in range(0, len(uids), ROWS_AT_ONCE):
            part = uids[start : start + ROWS_AT_ONCE]
            where = MailTable.folder_id == folder_id, MailTable.uid.in_(part)
            found += await self._all(MailRow, self._mine(MailRow, MailTable).where(*where))
        return sorted(found, key=lambda one: one.at, reverse=True)

    @reading
    async def found(
        self, wanted: MailWanted, folder_ids: Sequence[str], ids: Sequence[str] | None = None
    ) -> tuple[Sequence[MailRow], int]:
        """The mails that are meant in these folders, the newest first, and how many there are in all.

        ids: among these alone.
        """
        where = self._wanted(wanted, folder_ids)
        if ids is not None:
            where.append(MailTable.id.in_(ids) if ids else false())
        count = select(func.count()).select_from(MailTable).where(*where)
        total = int((await self.session.execute(count)).scalar_one())
        statement = self._mine(MailRow, MailTable).where(*where)
        if wanted.before and (last := await self._first(MailRow, self._by_id(wanted.before))):
            older = and_(MailTable.at == last.at, MailTable.id < last.id)
            statement = statement.where(or_(MailTable.at < last.at, older))
        ordered = statement.order_by(MailTable.at.desc(), MailTable.id.desc()).limit(wanted.most)
        return await self._all(MailRow, ordered), total

    @reading
    async def count(self) -> int:
        """Return how many there are of the person, of all accounts."""
        statement = select(func.count()).select_from(MailTable).where(self._reach(MailTable))
        return int((await self.session.execute(statement)).scalar_one())

    @reading
    async def newest(self, ids: Sequence[str], most: int) -> Sequence[str]:
        """The newest of these."""
        found: list[tuple[datetime, str]] = []
        for start in range(0, len(ids), ROWS_AT_ONCE):
            where = self._reach(MailTable), MailTable.id.in_(ids[start : start + ROWS_AT_ONCE])
            rows = await self.session.execute(select(MailTable.at, MailTable.id).where(*where))
            found = sorted([*found, *((row[0], row[1]) for row in rows.all())], reverse=True)[:most]
        return [id for _, id in found]

    async def remove_oldest(self, count: int) -> None:
        """Let go of so many of the person's, the oldest."""
        oldest = select(MailTable.id).where(self._reach(MailTable)).order_by(MailTable.at, MailTable.id).limit(count)
        ids = list((await self.session.execute(oldest)).scalars())
        for start in range(0, len(ids), ROWS_AT_ONCE):
            gone = self._remove(MailTable).where(MailTable.id.in_(ids[start : start + ROWS_AT_ONCE]))
            await self.session.execute(gone)

    @reading
    async def of_thread(self, thread: str) -> Sequence[MailRow]:
        """The mails of a conversation, the oldest first."""
        statement = self._mine(MailRow, MailTable).where(MailTable.thread == thread)
        return await self._all(MailRow, statement.order_by(MailTable.at, MailTable.id).limit(THREAD_MOST))

    @reading
    async def thread_of(self, message_ids: Sequence[str]) -> Mapping[str, str]:
        """The conversations of those of these ids that are here."""
        found: dict[str, str] = {}
        for start in range(0, len(message_ids), ROWS_AT_ONCE):
            part = message_ids[start : start + ROWS_AT_ONCE]
            where = MailTable.owner_id == self.owner_id, MailTable.message_id.in_(part)
            rows = await self.session.execute(select(MailTable.message_id, MailTable.thread).where(*where))
            found.update((row[0], row[1]) for row in rows.all())
        return found

    @reading
    async def threads(self, keys: Sequence[str]) -> frozenset[str]:
        """Those of these conversations that have mails here."""
        found: set[str] = set()
        for start in range(0, len(keys), ROWS_AT_ONCE):
            part = keys[start : start + ROWS_AT_ONCE]
            where = MailTable.owner_id == self.owner_id, MailTable.thread.in_(part)
            found.update((await self.session.execute(select(MailTable.thread).where(*where).distinct())).scalars())
        return frozenset(found)

    async def add(self, rows: Sequence[MailRow], *, are_news: bool) -> None:
        """Keep these heads, unless they stand already. `are_news`: they came just now, and may begin a job."""
        for start in range(0, len(rows), ROWS_AT_ONCE):
            await self._add_new(MailTable, [as_row(one) for one in rows[start : start + ROWS_AT_ONCE]])
        if are_news and await self._has_triggers():
            await self._add_new(MailNewsTable, [{"mail_id": one.id} for one in rows])

    async def join_threads(self, joined: Mapping[str, str]) -> None:
        """Have the conversations of these keys be those of their values."""
        for old, new in joined.items():
            await self.session.execute(self._change(MailTable).where(MailTable.thread == old).values(thread=new))

    async def remove(self, folder_id: str, uids: Sequence[int]) -> None:
        """Let go of those of these numbers."""
        for start in range(0, len(uids), ROWS_AT_ONCE):
            part = uids[start : start + ROWS_AT_ONCE]
            where = MailTable.folder_id == folder_id, MailTable.uid.in_(part)
            await self.session.execute(self._remove(MailTable).where(*where))

    async def mark(self, folder_id: str, uids: Sequence[int], **values: bool) -> None:
        """Set marks of those of these numbers."""
        for start in range(0, len(uids), ROWS_AT_ONCE):
            part = uids[start : start + ROWS_AT_ONCE]
            where = MailTable.folder_id == folder_id, MailTable.uid.in_(part)
            await self.session.execute(self._change(MailTable).where(*where).values(**values))

    def _by_id(self, id: str) -> Select[Any]:
        return self._mine(MailRow, MailTable).where(MailTable.id == id)

    async def _has_triggers(self) -> bool:
        statement = select(MailTriggerTable.job_id).where(MailTriggerTable.owner_id == self.owner_id).limit(1)
        return (await self.session.execute(statement)).first() is not None

    def _wanted(self, wanted: MailWanted, folder_ids: Sequence[str]) -> list[ColumnElement[bool]]:
        where: list[ColumnElement[bool]] = [self._reach(MailTable)]
        where.append(MailTable.folder_id.in_(folder_ids) if folder_ids else false())
        for text, ahead, behind in (
            (wanted.words, "", ""),
            (wanted.subject, "", "\n%\n"),
            (wanted.sender, "\n", "\n"),
            (wanted.to, "\n%\n", ""),
        ):
            where += [MailTable.words.like(_with(piece, ahead, behind), escape="/") for piece in pieces(fold(text))]
        if wanted.since is not None:
            where.append(MailTable.at >= wanted.since)
        if wanted.until is not None:
            where.append(MailTable.at < wanted.until)
        for name in ("is_seen", "is_flagged", "has_files"):
            value = getattr(wanted, name)
            if value is not None:
                where.append(getattr(MailTable, name).is_(value))
        return where


def found_by(subject: str, sender: str, recipients: str) -> str:
    """Return what is stored of a mail to find it by: a line of its subject, of who sent it, and of whom it is to."""
    lines = (" ".join(fold(text).split()) for text in (subject, sender, recipients))
    return "\n".join(line[:WORDS_CHARACTERS] for line in lines)


def _with(piece: str, ahead: str, behind: str) -> str:
    """A pattern for a piece of a line that has these ends of line ahead of it and behind it."""
    plain = piece.replace("/", "//").replace("%", "/%").replace("_", "/_")
    return f"%{ahead}%{plain}%{behind}%"
