"""What is changed in mailboxes: drafts laid down, mails moved and marked, and each taken back. Once, however often.

A mail is known by the count of its folder and, once it lies elsewhere, by its Message-ID.
"""

import json
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from cortex.base.errors import Conflict, NotFound, ToolFailed
from cortex.integrations.mail.client import MailConnection
from cortex.integrations.mail.imap import Imap
from cortex.integrations.mail.values import Placed, RawHead
from cortex.ports.mail import MailChange, MailPlace
from cortex.storage.mail import MailFolderRow

DONE, UNDONE = "done", "undone"
DRAFT_FLAGS = ("\\Draft", "\\Seen")
NOT_SURE = "Its server cannot move mails in one go, and this one bears no id by which its copy is known."
GONE = "It is not there any more: it was moved, sent or removed since."


class MailChanges(Struct, frozen=True, kw_only=True):
    """The changes of one account, over a connection. `folders`: of the account, by id."""

    connection: MailConnection
    folders: dict[str, MailFolderRow]

    async def write(self, change: MailChange) -> str:
        """Do it; what is needed to take it back."""
        return await self._done(change, change.places)

    async def put_back(self, change: MailChange, done: str) -> str:
        """Take it back, or where it was taken back do it again; what is needed for the other way."""
        told: dict[str, Any] = json.loads(done)
        places = [MailPlace(**one) for one in told["places"]]
        if told["is"] == UNDONE:
            return await self._done(change, places)
        if change.kind == "draft":
            await self._withdraw(change, places)
            return _token(UNDONE, ())
        if change.kind == "mark":
            await self._remark(change, places)
            return _token(UNDONE, places)
        return _token(UNDONE, await self._moved_back(change, places))

    async def _done(self, change: MailChange, places: Sequence[MailPlace]) -> str:
        if change.kind == "draft":
            return _token(DONE, [await self._laid_down(change)])
        if change.kind == "mark":
            await self._mark(places, change.marks, change.unmarks)
            return _token(DONE, places)
        return _token(DONE, await self._moved(places, change.folder_id))

    def _path(self, folder_id: str) -> str:
        if folder_id not in self.folders:
            raise NotFound("This folder is not there any more.")
        return self.folders[folder_id].path

    async def _laid_down(self, change: MailChange) -> MailPlace:
        path = self._path(change.folder_id)
        state = await self.connection.do(Imap.examine, path)
        known = await self.connection.do(Imap.with_id, change.message_id)
        if known:
            placed = Placed(uidvalidity=state.uidvalidity, uid=known[0])
        else:
            data = change.data.encode("ascii")
            placed = await self.connection.do(Imap.append, path, data, DRAFT_FLAGS)
            if not placed.uid:
                placed = await self._at(path, change.message_id)
        return _place(change.folder_id, placed, change.message_id)

    async def _at(self, path: str, message_id: str) -> Placed:
        """Where a mail of this id lies in a folder; 0 where none does."""
        state = await self.connection.do(Imap.examine, path)
        found = await self.connection.do(Imap.with_id, message_id)
        return Placed(uidvalidity=state.uidvalidity, uid=found[0] if found else 0)

    async def _withdraw(self, change: MailChange, places: Sequence[MailPlace]) -> None:
        path = self._path(change.folder_id)
        for one in places:
            await self.connection.do(Imap.changing, path, one.uidvalidity)
            if not await self.connection.do(Imap.flags, [one.uid]):
                raise Conflict(GONE)
            trash = next((folder.path for folder in self.folders.values() if folder.role == "trash"), "")
            if trash:
                await self._move(path, [one], trash)
            else:
                await self.connection.do(Imap.discard, [one.uid])

    async def _mark(self, places: Sequence[MailPlace], marks: Sequence[str], unmarks: Sequence[str]) -> None:
        for part in _by_folder(places):
            path, uids = self._path(part[0].folder_id), [one.uid for one in part]

            def work(imap: Imap, path: str = path, part: Sequence[MailPlace] = part, uids: list[int] = uids) -> None:
                imap.changing(path, part[0].uidvalidity)
                if len(imap.flags(uids)) < len(uids):
                    raise NotFound(GONE)
                imap.mark(uids, marks, is_set=True)
                imap.mark(uids, unmarks, is_set=False)

            await self.connection.do(work)

    async def _remark(self, change: MailChange, places: Sequence[MailPlace]) -> None:
        """Have each mail marked as it was, as far as this change went."""
        for one, before in zip(places, change.before, strict=True):
            marks = [mark for mark in change.unmarks if mark in before]
            unmarks = [mark for mark in change.marks if mark not in before]
            await self._mark([one], marks, unmarks)

    async def _moved_back(self, change: MailChange, places: Sequence[MailPlace]) -> Sequence[MailPlace]:
        made: list[MailPlace] = []
        for before, now in zip(change.places, places, strict=True):
            if not now.uid:
                raise Conflict(GONE)
            made += await self._moved([now], before.folder_id)
        return made

    async def _moved(self, places: Sequence[MailPlace], folder_id: str) -> Sequence[MailPlace]:
        """Move mails into a folder; where each lies then. What lies there already was moved before."""
        target = self._path(folder_id)
        made: dict[MailPlace, Placed] = {}
        for part in _by_folder(places):
            path, uids = self._path(part[0].folder_id), [one.uid for one in part]
            if path == target:
                made.update({one: Placed(uidvalidity=one.uidvalidity, uid=one.uid) for one in part})
                continue
            await self.connection.do(Imap.looking, path, part[0].uidvalidity)
            there = await self.connection.do(Imap.flags, uids)
            left = [one for one in part if one.uid in there]
            for one in part:
                if one.uid not in there:  # by us before a kill, or by somebody else
                    made[one] = await self._at(target, one.message_id)
                    if not made[one].uid:
                        raise NotFound(GONE)
            if left:
                made.update(await self._move(path, left, target))
        return [_place(folder_id, made[one], one.message_id) for one in places]

    async def _move(self, path: str, left: Sequence[MailPlace], target: str) -> dict[MailPlace, Placed]:
        if not self.connection.imap.can_move:
            return {one: await self._copied(path, one, target) for one in left}
        asked = sorted(one.uid for one in left)

        def work(imap: Imap) -> Sequence[Placed]:
            imap.changing(path, left[0].uidvalidity)
            return imap.move(asked, target)

        said = await self.connection.do(work)
        if len(said) == len(asked):
            return {one: said[asked.index(one.uid)] for one in left}
        return {one: await self._at(target, one.message_id) for one in left}

    async def _copied(self, path: str, one: MailPlace, target: str) -> Placed:
        """Copy a mail and take the first one away, on a server that does not move; only this, where its copy is there.

        A kill comes between the two, and a second copy would be another mail.
        """
        if not one.message_id:
            raise ToolFailed(NOT_SURE)
        await self.connection.do(Imap.looking, path, one.uidvalidity)
        (source,) = await self.connection.do(Imap.heads, [one.uid]) or _gone()
        state = await self.connection.do(Imap.examine, target)
        copies = await self.connection.do(Imap.heads, await self.connection.do(Imap.with_id, one.message_id))
        same = [copy for copy in copies if (copy.size, copy.headers) == (source.size, source.headers)]
        placed = Placed(uidvalidity=state.uidvalidity, uid=same[0].uid if same else 0)

        def work(imap: Imap) -> Placed:
            imap.changing(path, one.uidvalidity)
            made = placed if placed.uid else next(iter(imap.copy([one.uid], target)), placed)
            imap.discard([one.uid])
            return made

        made = await self.connection.do(work)
        return made if made.uid else await self._at(target, one.message_id)


def _gone() -> Sequence[RawHead]:
    raise NotFound(GONE)


def checked(places: Sequence[MailPlace], most: int) -> Sequence[MailPlace]:
    """These, unless there are none, or more than are changed at once."""
    if not places or len(places) > most:
        raise ToolFailed(f"Name 1 to {most} mails.")
    return places


def _by_folder(places: Sequence[MailPlace]) -> list[list[MailPlace]]:
    made: dict[tuple[str, int], list[MailPlace]] = {}
    for one in places:
        made.setdefault((one.folder_id, one.uidvalidity), []).append(one)
    return list(made.values())


def _place(folder_id: str, placed: Placed, message_id: str) -> MailPlace:
    return MailPlace(folder_id=folder_id, uidvalidity=placed.uidvalidity, uid=placed.uid, message_id=message_id)


def _token(state: str, places: Sequence[MailPlace]) -> str:
    rows = [
        {"folder_id": one.folder_id, "uidvalidity": one.uidvalidity, "uid": one.uid, "message_id": one.message_id}
        for one in places
    ]
    return json.dumps({"is": state, "places": rows})
