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
from cortex.base.errors import NotFound
from cortex.base.ids import digest, new_id
from cortex.integrations.mail.client import MailConnection
from cortex.integrations.mail.imap import Imap
from cortex.integrations.mail.values import FolderState
from cortex.ports.foreign import ForeignReader
from cortex.services.mail.accounts import folder_row
from cortex.services.mail.reading import heads_of, row_of
from cortex.storage.db import Database
from cortex.storage.mail import MailAccountRow, MailAccountsRepository, MailFolderRow
from cortex.storage.mails import MailRow, MailsRepository

AT_ONCE = 1_000  # heads in one commit
MAILS_MOST = 50_000  # of a folder, the newest
LEASE = timedelta(minutes=10)  # how long an account is one's own until it is said again
MARKS = {"is_seen": "SEEN", "is_flagged": "FLAGGED", "is_answered": "ANSWERED"}
NO_NEWS = ("sent", "drafts", "junk", "trash", "archive")

log = logging.getLogger(__name__)


class MailSync(Struct, frozen=True, kw_only=True):
    """The index of everybody. `arrived`: looks at what came for the jobs that it may begin."""

    db: Database
    foreign: ForeignReader
    clock: Clock
    arrived: Callable[[str], Awaitable[None]]
    _one: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    async def sync(self, account: MailAccountRow, connection: MailConnection) -> None:
        """Bring the index of an account up to date. ToolFailed, in words, where its server cannot be asked."""
        async with self._one.setdefault(account.id, asyncio.Lock()):
            await self._sync(account, connection)

    async def _sync(self, account: MailAccountRow, connection: MailConnection) -> None:
        await self._folders(account, connection)
        order = {"inbox": 0, "": 1, "sent": 2}
        folders = await self.db.repository(MailAccountsRepository, account.owner_id).of_account(account.id)
        for folder in sorted(folders, key=lambda one: order.get(one.role, 3)):
            if folder.is_read:
                await self._folder(account, folder, connection)
        await self.arrived(account.owner_id)

    async def look_again(
        self, account: MailAccountRow, connection: MailConnection, folders: Sequence[MailFolderRow]
    ) -> None:
        """Bring the index of these folders up to date, in which something was changed just now."""
        async with self._one.setdefault(account.id, asyncio.Lock()):
            for folder in folders:
                if folder.is_read and folder.read_at is not None:
                    await self._folder(account, folder, connection)

    async def _folders(self, account: MailAccountRow, connection: MailConnection) -> None:
        """Take in folders that came on the server, and let those go that are not there any more."""
        found = {one.path: one for one in await connection.do(Imap.folders)}
        accounts = self.db.repository(MailAccountsRepository, account.owner_id)
        known = {one.path: one for one in await accounts.of_account(account.id)}
        if found.keys() == known.keys() or not found:
            return
        async with self.db.transaction(account.owner_id) as repository:
            kept = repository(MailAccountsRepository)
            new = [folder_row(account, one, new_id(self.clock)) for path, one in found.items() if path not in known]
            await kept.add_folders(new)
            for path in known.keys() - found.keys():
                await kept.remove_folder(known[path].id)

    async def _folder(self, account: MailAccountRow, folder: MailFolderRow, connection: MailConnection) -> None:
        accounts = self.db.repository(MailAccountsRepository, account.owner_id)
        try:
            state = await connection.do(Imap.examine, folder.path)
        except NotFound:
            return  # gone since the folders were listed
        if state.modseq and state.text == folder.state and not folder.lacking:
            return
        if folder.uidvalidity != state.uidvalidity:
            if folder.uidvalidity:
                log.info("mail: a folder is counted anew, and read again")
            await accounts.forget(folder.id)
            await accounts.set_folder(folder.id, uidvalidity=state.uidvalidity)
            folder = replace(folder, uidvalidity=state.uidvalidity, read_at=None)
        mails = self.db.repository(MailsRepository, account.owner_id)
        there = set(sorted(await connection.do(Imap.uids), reverse=True)[:MAILS_MOST])
        known = await mails.uids(folder.id)
        await mails.remove(folder.id, sorted(known - there))
        await self._read(account, folder, connection, sorted(there - known, reverse=True))
        await self._marks(folder, connection, there & known)
        await self._stand(folder, state)

    async def _read(
        self, account: MailAccountRow, folder: MailFolderRow, connection: MailConnection, uids: Sequence[int]
    ) -> None:
        are_news = folder.read_at is not None and folder.role not in NO_NEWS
        for start in range(0, len(uids), AT_ONCE):
            part = uids[start : start + AT_ONCE]
            raw = await connection.do(Imap.heads, part)
            said = await heads_of(self.foreign, raw)
            ids = [one for head in said.values() for one in (head.references[:1] + head.references[-1:])]
            threads = await self.db.repository(MailsRepository, account.owner_id).thread_of(list(set(ids)))
            rows = [row_of(folder, folder.uidvalidity, one, said[one.uid], threads) for one in raw if one.uid in said]
            lacking = len(uids) - start - len(part)
            async with self.db.transaction(account.owner_id) as repository:
                mails = repository(MailsRepository)
                await mails.add(rows, are_news=are_news)
                await mails.join_threads(await _joined(mails, rows))
                await repository(MailAccountsRepository).set_folder(folder.id, lacking=lacking)
                if lacking:
                    until = self.clock() + LEASE
                    await repository(MailAccountsRepository).set_account(account.id, next_at=until)

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

    async def _stand(self, folder: MailFolderRow, state: FolderState) -> None:
        values = {"state": state.text, "lacking": 0, "read_at": folder.read_at or self.clock()}
        await self.db.repository(MailAccountsRepository, folder.owner_id).set_folder(folder.id, **values)


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
