"""Chats archived, deleted, pinned or exported, several at once. What one press did, one press takes back.

All that one press archives or deletes bears the same moment: that moment is what its undo names, and no list of ids.
"""

import asyncio
import io
import zipfile
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct

from cortex.base.clock import Clock, now
from cortex.base.errors import NotFound, UserError
from cortex.base.user import User
from cortex.ports.engine import Hub
from cortex.services.chat.conversations import ConversationsService, Deleted, file_words
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Database
from cortex.storage.several_chats import SeveralChatsRepository

MOST = 200  # of one press; a page shows fewer

Undoable = Literal["archive", "delete"]


class Done(Struct, frozen=True, kw_only=True):
    """The count of chats that changed, of those left as an answer is being written there, and when: the undo's name."""

    count: int
    left: int
    at: datetime


class SeveralChats(Struct, frozen=True, kw_only=True):
    """Every method takes the user first; ids of anybody else's chats are passed over.

    `deleted`: called with the user's and the conversation's id of each that was deleted.
    """

    db: Database
    hub: Hub
    conversations: ConversationsService
    clock: Clock = now
    deleted: Sequence[Deleted] = ()

    async def archive(self, user: User, ids: Sequence[str]) -> Done:
        """Take them out of the list. They are still found, and a new message puts them back."""
        at = self.clock()
        moved = await self._repository(user).archive(_checked(ids), at)
        return Done(count=len(moved), left=0, at=at)

    async def unarchive(self, user: User, ids: Sequence[str]) -> int:
        """Put them back into the list; how many were archived."""
        return len(await self._repository(user).unarchive(_checked(ids)))

    async def pin(self, user: User, ids: Sequence[str]) -> int:
        """Keep them at the top of the list; how many there are."""
        return await self._repository(user).pin_all(_checked(ids))

    async def delete(self, user: User, ids: Sequence[str]) -> Done:
        """Hide them everywhere, except where an answer is being written."""
        at = self.clock()
        wanted = await self._standing(user, ids)
        gone = await self._repository(user).delete_idle(sorted(wanted), at)
        for id in gone:
            self.hub.announce(id)
            for listener in self.deleted:
                await listener(user.id, id)
        return Done(count=len(gone), left=len(wanted) - len(gone), at=at)

    async def undo(self, user: User, what: Undoable, at: datetime) -> int:
        """Put back what was archived or deleted at this moment; how many that are. UserError for none."""
        repository = self._repository(user)
        back = await (repository.unarchive_of(at) if what == "archive" else repository.restore_of(at))
        for id in back:
            self.hub.announce(id)
        if not back:
            raise UserError("There is nothing left to undo here.")
        return len(back)

    async def export(self, user: User, ids: Sequence[str]) -> bytes:
        """A ZIP archive with each of them as Markdown, named after its title. NotFound when none is the user's."""
        wanted = sorted(await self._standing(user, ids))
        files: dict[str, str] = {}
        for id in wanted:
            title = (await self.conversations.get(user, id)).title
            files[_unused(title, files)] = await self.conversations.export_markdown(user, id)
        if not files:
            raise NotFound("None of these chats exists.")
        return await asyncio.to_thread(_packed, files)

    def _repository(self, user: User) -> SeveralChatsRepository:
        return self.db.repository(SeveralChatsRepository, user.id)

    async def _standing(self, user: User, ids: Sequence[str]) -> frozenset[str]:
        return await self.db.repository(ConversationsRepository, user.id).standing(_checked(ids))


def _checked(ids: Sequence[str]) -> list[str]:
    unique = list(dict.fromkeys(ids))
    if not unique:
        raise UserError("Select at least one chat first.")
    if len(unique) > MOST:
        raise UserError(f"Select at most {MOST} chats at a time.")
    return unique


def _unused(title: str, taken: dict[str, str]) -> str:
    """A file's name made of the title, with a number where another chat has it."""
    words = file_words(title)
    name, number = f"{words}.md", 1
    while name in taken:
        number += 1
        name = f"{words} ({number}).md"
    return name


def _packed(files: dict[str, str]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return made.getvalue()
