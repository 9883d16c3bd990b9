"""The port `Mailboxes` of one person: found in the index, read and changed on the servers."""

import contextlib
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.clock import Clock, ticks_s
from cortex.base.errors import ConfigError, Conflict, CortexError, NotFound, ToolFailed, UserError
from cortex.integrations.mail.client import LONG_S, MailConnection
from cortex.integrations.mail.imap import LITERAL_BYTES, MARKS, Imap
from cortex.integrations.mail.values import TextHits
from cortex.ports.foreign import ForeignReader
from cortex.ports.mail import (
    MailAccount,
    MailChange,
    MailDraft,
    MailFile,
    MailFolder,
    MailHead,
    MailPlace,
    MailReply,
    MailsFound,
    MailText,
    MailWanted,
)
from cortex.services.mail import letters
from cortex.services.mail.accounts import MailAccounts
from cortex.services.mail.changes import MailChanges, checked
from cortex.services.mail.reading import HeadRead, file_of, heads_of, person, row_id, text_of
from cortex.services.mail.sync import OWN_MOST, MailSync
from cortex.storage.db import Database
from cortex.storage.mail import MailAccountRow, MailAccountsRepository, MailFolderRow
from cortex.storage.mails import NO_MAIL, MailRow, MailsRepository
from cortex.storage.words import pieces

MAIL_BYTES = LITERAL_BYTES - 2_000_000
FOUND_MOST = 400  # mails that a server's own search may give
CHANGED_MOST = 100
SHORTENED = "The mail is larger than is fetched; what is attached to it may be missing."
LOOKED_S = 100.0  # for texts, of all accounts together
UNREAD = "{names}: not read, so nothing of it can be found. The user can tick it on the page Mail accounts."
NO_DRAFTS = "This account has no folder for drafts."


class UserMailboxes(Struct, frozen=True, kw_only=True):
    """One person's mail."""

    db: Database
    mail: MailAccounts
    sync: MailSync
    foreign: ForeignReader
    clock: Clock
    user_id: str

    @property
    def _kept(self) -> MailAccountsRepository:
        return self.db.repository(MailAccountsRepository, self.user_id)

    @property
    def _mails(self) -> MailsRepository:
        return self.db.repository(MailsRepository, self.user_id)

    async def accounts(self) -> Sequence[MailAccount]:
        """Every account, with its folders."""
        folders = await self._kept.folders()
        made = []
        for one in await self._kept.accounts():
            own = [folder for folder in folders if folder.account_id == one.id]
            made.append(
                MailAccount(
                    id=one.id,
                    label=one.address,
                    address=one.address,
                    folders=[_shown(folder) for folder in own],
                    is_stale=one.failure,
                    reading=sum(folder.lacking for folder in own if folder.is_read),
                )
            )
        return made

    async def search(self, wanted: MailWanted) -> MailsFound:
        """The mails that are meant: from the index, and from the servers where their texts are looked through."""
        folders = {one.id: one for one in await self._kept.folders()}
        meant = [one for one in folders.values() if _is_meant(one, wanted)]
        asked = [one for one in meant if one.is_read]
        notes: list[str] = []
        ids: Sequence[str] | None = None
        if wanted.before:
            await self._mails.get(wanted.before)  # NotFound: it would begin at the top again
        if wanted.in_text and wanted.words:
            ids, notes = await self._in_text(wanted, asked)
            wanted = replace(wanted, words="")
        rows, count = await self._mails.found(wanted, [one.id for one in asked], ids)
        lacking = sum(one.lacking for one in asked)
        if lacking:
            notes.append(f"{lacking} mails are still being read and were not looked through.")
        if unread := sorted({one.name for one in meant if not one.is_read}) if _names_one(wanted) else []:
            notes.append(UNREAD.format(names=", ".join(unread)[:200]))
        if await self._mails.count() >= OWN_MOST:
            notes.append(f"Older ones are not in the list: it holds the newest {OWN_MOST} mails.")
        notes += [
            f"{one.address} could not be reached lately: {one.failure}"
            for one in await self._kept.accounts()
            if one.failure and wanted.account_id in ("", one.id)
        ]
        heads = [_head(row, folders[row.folder_id]) for row in rows if row.folder_id in folders]
        return MailsFound(heads=heads, count=count, note=" ".join(notes))

    async def _in_text(self, wanted: MailWanted, asked: Sequence[MailFolderRow]) -> tuple[Sequence[str], list[str]]:
        """The ids of the newest mails in whose texts the words stand, and what was not looked through, or for."""
        words, found, notes, passed = pieces(wanted.words), list[str](), list[str](), set[str]()
        until_s = ticks_s() + LOOKED_S
        for account in await self._kept.accounts():
            left = [one for one in asked if one.account_id == account.id and one.uidvalidity]
            if not left:
                continue
            try:
                async with self._opened(account) as connection:
                    while left and (within_s := until_s - ticks_s()) > 0:
                        said = await connection.do(_searched, left[0], words, within_s=within_s)
                        folder = left.pop(0)
                        passed |= set(said.passed)
                        if len(said.passed) < len(words):
                            found += [row_id(folder, folder.uidvalidity, uid) for uid in said.uids]
            except (CortexError, ConfigError) as error:
                notes.append(f"{account.address} could not be looked through: {error.message}")
            else:
                if left:
                    names = ", ".join(one.name for one in left)[:200]
                    notes.append(f"Of {account.address} there was no time to look through {names}.")
        if passed:
            notes.append(f"The server cannot look for {', '.join(sorted(passed))} in texts.")
        if len(found) > FOUND_MOST:
            notes.append(f"These are the newest {FOUND_MOST} of {len(found)}.")
        return await self._mails.newest(found, FOUND_MOST), notes

    async def head(self, id: str) -> MailHead:
        """One mail as in a list."""
        row = await self._mails.get(id)
        return _head(row, await self._kept.folder(row.folder_id))

    async def read(self, id: str) -> MailText:
        """The whole of a mail, from its server. It stays as unread as it was."""
        row, folder, data = await self._fetched(id)
        return await self._text(row, folder, data)

    async def read_all(self, ids: Sequence[str]) -> Mapping[str, MailText]:
        """The whole of several mails by one login; those that are there."""
        made: dict[str, MailText] = {}
        rows = [await self._mails.get(id) for id in ids]
        folders = {one.id: one for one in await self._kept.folders()}
        for account in await self._kept.accounts():
            own = [row for row in rows if row.folder_id in folders and folders[row.folder_id].account_id == account.id]
            if not own:
                continue
            async with self._opened(account) as connection:
                for row in own:
                    folder = folders[row.folder_id]
                    try:
                        data = await connection.do(_message, folder, row.uid, within_s=LONG_S)
                    except (NotFound, Conflict):  # it was moved or removed just now: the others are read
                        continue
                    made[row.id] = await self._text(row, folder, data)
        return made

    async def _text(self, row: MailRow, folder: MailFolderRow, data: bytes) -> MailText:
        said = await text_of(self.foreign, data)
        note = " ".join(filter(None, (said.note, SHORTENED if row.size > MAIL_BYTES else "")))
        return MailText(
            head=_head(row, folder),
            text=said.text,
            cc=tuple(map(person, said.cc)),
            reply_to=tuple(map(person, said.reply_to)),
            files=[
                MailFile(number=at, name=one.name, media_type=one.media_type, size=one.size)
                for at, one in enumerate(said.files, start=1)
            ],
            message_id=said.message_id,
            references=said.references,
            note=note,
        )

    async def thread(self, id: str) -> Sequence[MailHead]:
        """All mails of its conversation that are in the index, the oldest first."""
        folders = {one.id: one for one in await self._kept.folders()}
        row = await self._mails.get(id)
        rows = await self._mails.of_thread(row.thread)
        return [_head(one, folders[one.folder_id]) for one in rows if one.folder_id in folders]

    async def file(self, id: str, number: int) -> bytes:
        """An attachment's bytes; ToolFailed for one that is too large."""
        _, _, data = await self._fetched(id)
        return await file_of(self.foreign, data, number)

    async def reply(self, id: str, *, to_all: bool = False) -> MailReply:
        """Whom an answer goes to, its subject, and what puts it into the thread."""
        row = await self._mails.get(id)
        folder = await self._kept.folder(row.folder_id)
        account = await self._kept.account(folder.account_id)
        return letters.reply_to(await self._said(account, folder, row), account.address, to_all=to_all)

    async def ready_draft(self, key: str, draft: MailDraft) -> MailChange:
        """A draft, ready to be laid down; the same one for the same key."""
        if draft.answers:
            row = await self._mails.get(draft.answers)
            folder = await self._kept.folder(row.folder_id)
            account = await self._kept.account(draft.account_id or folder.account_id)
            answer = letters.reply_to(await self._said(None, folder, row), account.address, to_all=draft.to_all)
        else:
            accounts = await self._kept.accounts()
            account = next((one for one in accounts if draft.account_id in ("", one.id)), None) or _no_account()
            answer = MailReply(to=(), subject="", headers={})
        answer = replace(answer, subject=draft.subject or answer.subject)
        drafts = next((one for one in await self._kept.of_account(account.id) if one.role == "drafts"), None)
        if drafts is None:
            raise ToolFailed(NO_DRAFTS)
        mail = letters.draft(account.address, (draft.to or answer.to, draft.cc), answer, draft.text)
        message_id = letters.draft_id(key, account.address)
        return MailChange(
            kind="draft",
            account_id=account.id,
            folder_id=drafts.id,
            data=letters.finished(mail, message_id, self.clock()),
            message_id=message_id,
        )

    async def ready_move(self, ids: Sequence[str], folder_id: str) -> MailChange:
        """Mails of one account, ready to be moved to this folder of it."""
        places, account_id, _ = await self._places(ids)
        target = await self._kept.folder(folder_id)
        if target.account_id != account_id:
            raise ToolFailed("Mails are moved within their account only.")
        return MailChange(kind="move", account_id=account_id, folder_id=folder_id, places=places)

    async def ready_marks(self, ids: Sequence[str], marks: Sequence[str], unmarks: Sequence[str]) -> MailChange:
        """Mails of one account, ready to be marked. How they are marked now, their server says."""
        places, account_id, known = await self._places(ids)
        folders = {one.id: one for one in await self._kept.folders()}
        before: dict[MailPlace, Sequence[str]] = dict(zip(places, known, strict=True))
        async with self._opened(await self._kept.account(account_id)) as connection:
            for folder_id in {one.folder_id for one in places}:
                own = {one.uid: one for one in places if one.folder_id == folder_id}
                folder = folders[folder_id]
                await connection.do(Imap.looking, folder.path, folder.uidvalidity)
                there = await connection.do(Imap.flags, list(own))
                before |= {own[uid]: [one for one in flags if one in MARKS] for uid, flags in there.items()}
        return MailChange(
            kind="mark",
            account_id=account_id,
            places=places,
            before=[before[one] for one in places],
            marks=marks,
            unmarks=unmarks,
        )

    async def write(self, change: MailChange) -> str:
        """Do it, once however often it is called; what is needed to take it back."""
        return await self._change(change, "")

    async def put_back(self, change: MailChange, done: str) -> str:
        """Have it as it was; what is needed to do it again."""
        return await self._change(change, done)

    async def _change(self, change: MailChange, done: str) -> str:
        account = await self._kept.account(change.account_id)
        async with self._opened(account) as connection:
            folders = {one.id: one for one in await self._kept.of_account(account.id)}
            changes = MailChanges(connection=connection, folders=folders)
            told = await (changes.put_back(change, done) if done else changes.write(change))
            touched = {change.folder_id, *(one.folder_id for one in change.places)}
            meant = [folders[id] for id in touched if id in folders]
            is_seen = await self.sync.look_again(account, connection, meant)
        if not is_seen:  # it is done; the index follows soon
            with contextlib.suppress(NotFound):
                await self._kept.set_account(account.id, next_at=self.clock())
            self.mail.changed()
        return told

    async def _places(self, ids: Sequence[str]) -> tuple[Sequence[MailPlace], str, Sequence[Sequence[str]]]:
        """Where these mails lie, in which account, and their marks."""
        folders = {one.id: one for one in await self._kept.folders()}
        rows = [await self._mails.get(id) for id in dict.fromkeys(ids[: CHANGED_MOST + 1])]
        if any(row.folder_id not in folders for row in rows):
            raise NotFound(NO_MAIL)
        accounts = {folders[row.folder_id].account_id for row in rows}
        if len(accounts) > 1:
            raise ToolFailed("Mails of one account are changed at once, not of several.")
        places = [
            MailPlace(
                folder_id=row.folder_id,
                uidvalidity=folders[row.folder_id].uidvalidity,
                uid=row.uid,
                message_id=row.message_id,
            )
            for row in rows
        ]
        return checked(places, CHANGED_MOST), next(iter(accounts)), [_marks(row) for row in rows]

    async def _fetched(self, id: str) -> tuple[MailRow, MailFolderRow, bytes]:
        row = await self._mails.get(id)
        folder = await self._kept.folder(row.folder_id)
        account = await self._kept.account(folder.account_id)

        async with self._opened(account) as connection:
            try:
                return row, folder, await connection.do(_message, folder, row.uid, within_s=LONG_S)
            except NotFound:
                await self.sync.look_again(account, connection, [folder])
                raise

    async def _said(self, account: MailAccountRow | None, folder: MailFolderRow, row: MailRow) -> HeadRead:
        """Return what the head of a mail says, from its server."""
        own = account or await self._kept.account(folder.account_id)
        async with self._opened(own) as connection:
            await connection.do(Imap.looking, folder.path, folder.uidvalidity)
            raw = await connection.do(Imap.heads, [row.uid])
        said: Mapping[int, HeadRead] = await heads_of(self.foreign, raw)
        if row.uid not in said:
            raise NotFound("This mail is not there any more.")
        return said[row.uid]

    def _opened(self, account: MailAccountRow) -> AbstractAsyncContextManager[MailConnection]:
        return self.mail.opened(account)


def _no_account() -> MailAccountRow:
    raise UserError("No mail account is connected.")


def _searched(imap: Imap, folder: MailFolderRow, words: Sequence[str]) -> TextHits:
    imap.looking(folder.path, folder.uidvalidity)
    return imap.search(words)


def _message(imap: Imap, folder: MailFolderRow, uid: int) -> bytes:
    imap.looking(folder.path, folder.uidvalidity)
    return imap.message(uid, MAIL_BYTES)


def _is_meant(folder: MailFolderRow, wanted: MailWanted) -> bool:
    """Tell whether a folder is to be looked through, if it is read."""
    if wanted.folder_id:
        return folder.id == wanted.folder_id
    return wanted.role in ("", folder.role) and wanted.account_id in ("", folder.account_id)


def _names_one(wanted: MailWanted) -> bool:
    """Tell whether some folder is asked for by itself: of all, those that are not read are not missed."""
    return bool(wanted.folder_id or wanted.role)


def _shown(folder: MailFolderRow) -> MailFolder:
    return MailFolder(
        id=folder.id, account_id=folder.account_id, name=folder.name, role=folder.role, is_read=folder.is_read
    )


def _marks(row: MailRow) -> Sequence[str]:
    return [name for name in ("seen", "flagged", "answered") if getattr(row, f"is_{name}")]


def _head(row: MailRow, folder: MailFolderRow) -> MailHead:
    return MailHead(
        id=row.id,
        account_id=folder.account_id,
        folder=_shown(folder),
        sender=person([row.sender, row.sender_name]),
        to=[person(pair) for pair in json.loads(row.recipients)],
        subject=row.subject,
        at=row.at,
        size=row.size,
        thread=row.thread,
        is_seen=row.is_seen,
        is_flagged=row.is_flagged,
        is_answered=row.is_answered,
        is_draft=row.is_draft,
        has_files=row.has_files,
    )
