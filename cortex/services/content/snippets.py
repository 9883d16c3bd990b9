"""Snippets: words that a person writes often, called up by `/` and a name. Rows: `storage/snippets.py`.

What is in {braces} is filled in each time. Nothing is sent by itself: a snippet comes into the box, and its person
sends it.
"""

import re
from collections.abc import Awaitable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cortex.base import portable
from cortex.base.errors import Conflict, NotFound, UserError
from cortex.base.hidden import without_unseen
from cortex.base.ids import new_id
from cortex.base.user import User
from cortex.storage.db import Database
from cortex.storage.preferences import PreferencesRepository
from cortex.storage.snippets import SnippetRow as SnippetRow
from cortex.storage.snippets import SnippetsRepository
from cortex.storage.words import first_match, fold, terms

NAME_CHARS_MAX = 32
TEXT_CHARS_MAX = 4_000
OWN_MOST = 200
SHOWN_MOST = 8
REMOVED = "snippets.removed"  # the last few that were deleted, so that the page can offer them back
REMOVED_KEPT = 10
_NOT_IN_A_NAME = re.compile(r"[^\w-]+")


class SnippetsService(Struct, frozen=True):
    """One person's at a time; every method takes whose."""

    db: Database

    async def list(self, user: User) -> Sequence[SnippetRow]:
        """All that they may use, by name: their own, and what others let everybody use."""
        return await self.db.repository(SnippetsRepository, user.id).list()

    async def fitting(self, user: User, typed: str) -> Sequence[SnippetRow]:
        """Return what was begun to type behind the `/`: names that begin so, then names and texts with the words."""
        words, rows = typed.casefold(), await self.list(user)
        begin = [row for row in rows if row.name.startswith(words)]
        hold = [row for row in rows if row not in begin and words and _holds(row, words)]
        return [*begin, *hold][:SHOWN_MOST]

    async def get(self, user: User, id: str) -> SnippetRow:
        """One of their own to change; NotFound."""
        return await self.db.repository(SnippetsRepository, user.id).get(id)

    async def usable(self, user: User, id: str) -> SnippetRow:
        """One that they may use; NotFound."""
        found = next((row for row in await self.list(user) if row.id == id), None)
        if found is None:
            raise NotFound("This snippet does not exist.")
        return found

    async def add(self, user: User, name: str, text: str, *, is_shared: bool) -> str:
        """Keep a new one; its name. UserError at the field that is wrong."""
        named, words = _named(name), _worded(text)
        async with self.db.transaction(user.id) as repository:
            snippets = repository(SnippetsRepository)
            if sum(not row.by for row in await snippets.list()) >= OWN_MOST:
                raise UserError(f"You can keep {OWN_MOST} snippets. Delete one first.", field="name")
            now = self.db.clock()
            row = SnippetRow(
                id=new_id(self.db.clock),
                owner_id=user.id,
                name=named,
                text=words,
                is_shared=is_shared,
                created_at=now,
                updated_at=now,
            )
            await _at_name(snippets.put(row))
        return named

    async def change(self, user: User, id: str, name: str, text: str, *, is_shared: bool) -> None:
        """Say one of their own otherwise. NotFound; UserError at the field that is wrong."""
        named, words = _named(name), _worded(text)
        async with self.db.transaction(user.id) as repository:
            await _at_name(repository(SnippetsRepository).change(id, name=named, text=words, is_shared=is_shared))

    async def delete(self, user: User, id: str) -> SnippetRow:
        """Delete one of their own; `restore` brings the last few back. NotFound."""
        async with self.db.transaction(user.id) as repository:
            row = await repository(SnippetsRepository).get(id)
            await repository(SnippetsRepository).remove(id)
            kept = await repository(PreferencesRepository).get(REMOVED, [])
            await repository(PreferencesRepository).set(REMOVED, [*kept, portable.plain(row)][-REMOVED_KEPT:])
        return row

    async def restore(self, user: User, id: str) -> None:
        """Bring one back that was deleted lately; NotFound, Conflict where its name is taken meanwhile."""
        async with self.db.transaction(user.id) as repository:
            kept: list[dict[str, Any]] = await repository(PreferencesRepository).get(REMOVED, [])
            found = next((one for one in kept if one["id"] == id), None)
            if found is None:
                raise NotFound("This snippet cannot be restored any more.")
            row = replace(portable.read(SnippetRow, found), owner_id=user.id, by="")
            await repository(SnippetsRepository).put(row)
            await repository(PreferencesRepository).set(REMOVED, [one for one in kept if one["id"] != id])


def _holds(row: SnippetRow, words: str) -> bool:
    return first_match(fold(f"{row.name} {row.text}"), terms(words)) is not None


async def _at_name(writing: Awaitable[None]) -> None:
    """Wait for it; a name that is taken is the fault of its field."""
    try:
        await writing
    except Conflict as taken:
        raise UserError(taken.message, field="name") from None


def _named(name: str) -> str:
    """The name as it is typed behind the `/`: small letters, digits, hyphens."""
    words = _NOT_IN_A_NAME.sub("-", name.strip().removeprefix("/").casefold()).strip("-")
    if not words:
        raise UserError("Enter a short name, such as bins.", field="name")
    if len(words) > NAME_CHARS_MAX:
        raise UserError(f"The name may have at most {NAME_CHARS_MAX} characters.", field="name")
    return words


def _worded(text: str) -> str:
    words = without_unseen(text.replace("\r\n", "\n")).strip()
    if not words:
        raise UserError("Write what the snippet puts into the box.", field="text")
    if len(words) > TEXT_CHARS_MAX:
        raise UserError(f"That is too long: at most {TEXT_CHARS_MAX:,} characters.", field="text")
    return words
