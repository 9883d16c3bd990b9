"""Keeps the index of a mailbox in step: asks what is in each folder, reads the heads of what came, the newest first.

Each batch is committed with how many are still to be read, so a kill in between has the rest asked again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from weakref import WeakValueDictionary

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base.clock import Clock
from cortex.base.errors import CortexError, NotFound, ServiceDown, ToolFailed
from cortex.base.ids import digest, new_id
from cortex.integrations.mail.client import MailConnection
from cortex.integrations.mail.imap import Imap
from cortex.integrations.mail.values import RawHead
from cortex.ports.foreign import BusyReadingError, ForeignReader
from cortex.services.mail.accounts import folder_row
from cortex.services.mail.reading import heads_of, row_of
from cortex.storage.db import Database
from cortex.storage.mail import MailAccountRow, MailAccountsRepository, MailFolderRow
from cortex.storage.mails import MailRow, MailsRepository

AT_ONCE, ASKED = 1_000, 200  # heads in one commit, and in one command: servers take no longer lines
AT_LEAST, ASKED_LEAST = 50, 10  # where it failed lately, half as many each time
MAILS_MOST = 50_000  # of a folder, the newest
OWN_MOST = 200_000  # of a person, in all accounts
LEASE = timedelta(minutes=10)  # how long an account is one's own until it is said again
LOOK_S = 10.0  # for the index behind a change, which is done already
MARKS = {"is_seen": "SEEN", "is_flagged": "FLAGGED", "is_answered": "ANSWERED"}
NO_NEWS = ("sent", "drafts", "junk", "trash", "archive")

log = logging.getLogger(__name__)


class MailSync(Struct, frozen=True, kw_only=True):
    """The index of everybody. `arrived`: looks at what came for the jobs that it may begin."""

    db: Database
    foreign: ForeignReader
    clock: Clock
    arrived: Callable[[str], Awaitable[None]]
    _reading: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)  # folders
    _one: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    async def sync(self, account: MailAccountRow, connection: MailConnection) -> None:
        """Bring the index of an account up to date. ToolFailed, in words, where its server cannot be asked."""
        async with self._one.setdefault(account.id, asyncio.Lock()):
            await self._sync(account, connection)

    async def look(self, account: MailAccountRow, connection: MailConnection, folder: MailFolderRow) -> None:
        """Bring the index of one folder up to date, in which something came. ToolFailed as `sync`."""
        failure = await self._looked(account, folder, connection)
        if failure is not None:
            raise failure

    async def _sync(self, account: MailAccountRow, connection: MailConnection) -> None:
        await self._folders(account, connection)
        order = {"inbox": 0, "": 1, "sent": 2}
        accounts = self.db.repository(MailAccountsRepository, account.owner_id)
        failures: list[tuple[str, CortexError]] = []
        for folder in sorted(await accounts.of_account(account.id), key=lambda one: order.get(one.role, 3)):
            if not folder.is_read:
                if folder.uidvalidity:  # it was switched off while it was read
                    await accounts.forget(folder.id)
                continue
            await accounts.set_account(account.id, next_at=self.clock() + LEASE)
            failure = await self._looked(account, folder, connection)
            if failure is not None:
                failures.append((folder.name, failure))
        if failures:  # the others are read all the same
            name, failure = failures[0]
            raise ToolFailed(f"{name}: {failure.message}", is_tainted=True)

    async def _looked(
        self, account: MailAccountRow, folder: MailFolderRow, connection: MailConnection
    ) -> CortexError | None:
        """Read one folder, and look at what came of it; why it could not be. Raises where no other one can be read."""
        failure: CortexError | None = None
        try:
            if not await self._folder(account, folder, connection):
                return None
        except (ToolFailed, BusyReadingError) as error:
            failure = error
        if folder.role not in NO_NEWS:
            await self.arrived(account.owner_id)
        if isinstance(failure, ServiceDown | BusyReadingError):
            raise failure
        return failure

    async def look_again(
        self, account: MailAccountRow, connection: MailConnection, folders: Sequence[MailFolderRow]
    ) -> bool:
        """Bring the index of these folders up to date, in which something was changed just now; whether it is.

        What was changed is done: nobody waits here long for whoever reads a folder for hours, and nothing fails.
        """
        try:
            async with asyncio.timeout(LOOK_S):
                for folder in folders:
                    if folder.is_read and folder.read_at is not None:
                        await self._folder(account, folder, connection)
        except (CortexError, TimeoutError) as error:
            log.info("mail: a change is done, its folder is looked at later: %s", type(error).__name__)
            return False
        return True

    async def _folders(self, account: MailAccountRow, connection: MailConnection) -> None:
        """Take in folders that came on the server, and let those go that are not there any more."""
        found = {one.path: one for one in await connection.do(Imap.folders)}
        accounts = self.db.repository(MailAccountsRepository, account.owner_id)
        known = {one.path: one for one in await accounts.of_account(account.id)}
        if not found:
            return
        gone = [known[path] for path in known.keys() - found.keys()]
        new = [folder_row(account, one, new_id(self.clock)) for path, one in found.items() if path not in known]
        if any(not one.is_read and not one.role for one in gone):  # it may bear another name now
            new = [replace(one, is_read=one.is_read and bool(one.role)) for one in new]
        other = [one for path, one in found.items() if path in known and one.role != known[path].role]
        if not (gone or new or other):
            return
        async with self.db.transaction(account.owner_id) as repository:
            kept = repository(MailAccountsRepository)
            await kept.add_folders(new)
            for folder in gone:
                await kept.remove_folder(folder.id)
            for one in other:
                await kept.set_folder(known[one.path].id, role=one.role, name=one.name)

    async def _folder(self, account: MailAccountRow, folder: MailFolderRow, connection: MailConnection) -> bool:
        """Read what came and went, by one at a time; whether anything may have."""
        accounts = self.db.repository(MailAccountsRepository, account.owner_id)
        async with self._reading.setdefault(folder.id, asyncio.Lock()):
            standing = await accounts.folder(folder.id)
            return standing.is_read and await self._stepped(account, standing, connection)

    async def _stepped(self, account: MailAccountRow, folder: MailFolderRow, connection: MailConnection) -> bool:
        accounts = self.db.repository(MailAccountsRepository, account.owner_id)
        try:
            state = await connection.do(Imap.examine, folder.path)
        except NotFound:
            return False  # gone since the folders were listed
        if state.modseq and state.text == folder.state and not folder.lacking:
            return False
        if folder.uidvalidity != state.uidvalidity or not folder.uidvalidity:
            if folder.uidvalidity:
                log.warning("mail: a folder is counted anew and read again; what came just now begins no job")
            await accounts.forget(folder.id)
            await accounts.set_folder(folder.id, uidvalidity=state.uidvalidity)
            folder = replace(folder, uidvalidity=state.uidvalidity, read_at=None)
        mails = self.db.repository(MailsRepository, account.owner_id)
        there = set(sorted(await connection.do(Imap.uids), reverse=True)[:MAILS_MOST])
        known = await mails.uids(folder.id)
        await mails.remove(folder.id, sorted(known - there))
        wanted = await self._in_bounds(folder, sorted(there - known, reverse=True), max(known, default=0))
        if await self._read(account, folder, connection, wanted):
            await self._marks(folder, connection, there & known)
            values = {"state": state.text, "lacking": 0, "read_at": folder.read_at or self.clock()}
            await accounts.set_read(folder.id, folder.uidvalidity, **values)
        return True

    async def _in_bounds(self, folder: MailFolderRow, uids: Sequence[int], last: int) -> Sequence[int]:
        """Those of these mails, the newest first, for which the person has room. What came just now always has.

        last: the newest that is known.
        """
        mails = self.db.repository(MailsRepository, folder.owner_id)
        room = OWN_MOST - await mails.count() if uids else 0
        if room >= len(uids):
            return uids
        came = sum(uid > last for uid in uids) if folder.read_at is not None else 0
        if came > room:
            await mails.remove_oldest(came - max(room, 0))
        log.info("mail: a person has more mails than are kept here")
        return uids[: max(room, came)]

    async def _read(
        self, account: MailAccountRow, folder: MailFolderRow, connection: MailConnection, uids: Sequence[int]
    ) -> bool:
        """Take in these mails; False where the folder is read no more, or counted anew by somebody else."""
        are_news = folder.read_at is not None and folder.role not in NO_NEWS
        most, asked = max(AT_ONCE >> account.failures, AT_LEAST), max(ASKED >> account.failures, ASKED_LEAST)
        for start in range(0, len(uids), most):
            part = uids[start : start + most]
            raw: list[RawHead] = []
            for at in range(0, len(part), asked):
                raw += await connection.do(Imap.heads, part[at : at + asked])
            said = await heads_of(self.foreign, raw)
            ids = [one for head in said.values() for one in (head.references[:1] + head.references[-1:])]
            threads = await self.db.repository(MailsRepository, account.owner_id).thread_of(list(set(ids)))
            rows = [row_of(folder, folder.uidvalidity, one, said[one.uid], threads) for one in raw if one.uid in said]
            lacking = len(uids) - start - len(part)
            async with self.db.transaction(account.owner_id) as repository:
                mails, accounts = repository(MailsRepository), repository(MailAccountsRepository)
                if not await accounts.set_read(folder.id, folder.uidvalidity, lacking=lacking):
                    return False
                await mails.add(rows, are_news=are_news)
                await mails.join_threads(await _joined(mails, rows))
                if lacking:
                    await accounts.set_account(account.id, next_at=self.clock() + LEASE)
        return True

    async def _marks(self, folder: MailFolderRow, connection: MailConnection, kept: set[int]) -> None:
        """Take over the marks of what is in the index already."""
        if not kept:
            return
        mails = self.db.repository(MailsRepository, folder.owner_id)
        for name, criterion in MARKS.items():
            there = kept & set(await connection.do(Imap.uids, criterion))
            here = kept & await mails.marked(folder.id, name)
            await mails.mark(folder.id, sorted(there - here), **{name: True})
            await mails.mark(folder.id, sorted(here - there), **{name: False})


async def _joined(mails: MailsRepository, rows: Sequence[MailRow]) -> dict[str, str]:
    """Return the conversations whose first mail turned out to be an answer in another one."""
    answers = {digest(one.message_id): one.thread for one in rows if one.message_id}
    joined = {old: new for old, new in answers.items() if old != new}
    standing = await mails.threads(list(joined))
    return {old: _end(joined, new) for old, new in joined.items() if old in standing}


def _end(joined: dict[str, str], thread: str) -> str:
    """Return where a conversation ends up, of which some are joined into others."""
    seen = set[str]()
    while thread in joined and thread not in seen:
        seen.add(thread)
        thread = joined[thread]
    return thread
