"""Journals for the page and the tools: Cortex's own tables, or the Aether server that an admin set up.

Which of them holds a person's journals is asked for at each call, so that a change of the setting holds at once.
"""

import asyncio
import difflib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import date
from typing import Literal

from msgspec import Struct

from cortex.base.clock import Clock
from cortex.base.errors import Conflict, NotFound, UserError
from cortex.base.ids import new_id
from cortex.base.journal_rules import checked_text, checked_title
from cortex.base.user import User
from cortex.base.zone import local
from cortex.ports.aether import EntryChange, Journal, JournalEntry
from cortex.ports.journals import ASSISTANT, PERSON, EntryPage, EntryVersion, JournalBook, JournalChange
from cortex.services.content.own_journals import OwnJournals
from cortex.storage.db import Database
from cortex.storage.words import pieces_of, snippet, terms

PAGE_ROWS = 25
VERSIONS_SHOWN = 100
EXPORT_ROWS = 100
COMPARED_LINES_MAX = 2_000
Piece = tuple[str, bool]  # a stretch of a text, and whether it was looked for
LineKind = Literal["same", "new", "old"]
Books = Callable[[str, str], AbstractAsyncContextManager[JournalBook | None]]  # (user's id, who acts) -> the server's


class EntryHit(Struct, frozen=True, kw_only=True):
    """An entry in a list, with how it begins or the words round the first hit."""

    entry: JournalEntry
    title: Sequence[Piece]
    snippet: Sequence[Piece]


class HitPage(Struct, frozen=True, kw_only=True):
    """A page of entries; `after`: what the next one is asked for with, "" for none."""

    hits: Sequence[EntryHit]
    after: str


class ComparedVersion(Struct, frozen=True, kw_only=True):
    """An earlier version, and how it differs from what stands now, line by line; None: too long to be compared."""

    version: EntryVersion
    now: EntryVersion
    lines: Sequence[tuple[LineKind, str]] | None


@asynccontextmanager
async def no_server(_user_id: str, _by: str) -> AsyncIterator[JournalBook | None]:
    """Nobody's journals are elsewhere."""
    yield None


class JournalsService(Struct, frozen=True):
    """Every method of a page takes whose; a version guards each change: Conflict when it was changed in between.

    `server` opens the journals of a user that an Aether server keeps; None for those kept here.
    """

    db: Database
    clock: Clock
    server: Books = no_server

    def for_tools(self, user_id: str) -> "ToolJournals":
        """Return what tools open."""
        return ToolJournals(lambda: self._book(user_id, ASSISTANT))

    async def shelf(self, user: User, *, is_enabled: bool = True) -> Sequence[Journal]:
        """The journals by name: those in use, or those taken away."""
        async with self._book(user.id) as book:
            return await book.shelf(is_enabled=is_enabled)

    async def journal(self, user: User, journal_id: str) -> Journal:
        """A journal, also one that is taken away; NotFound."""
        async with self._book(user.id) as book:
            return await book.journal(journal_id)

    async def create(self, user: User, name: str) -> Journal:
        """A new journal; UserError."""
        async with self._book(user.id) as book:
            return await book.create(new_id(self.clock), name)

    async def rename(self, user: User, journal_id: str, version: int, name: str) -> Journal:
        """Give it another name; UserError, Conflict."""
        async with self._book(user.id) as book:
            return await book.change_journal(journal_id, version, JournalChange(name=name))

    async def remove(self, user: User, journal_id: str, version: int) -> Journal:
        """Take a journal with its entries away; `bring_back` undoes it. Conflict."""
        async with self._book(user.id) as book:
            return await book.change_journal(journal_id, version, JournalChange(is_enabled=False))

    async def bring_back(self, user: User, journal_id: str) -> Journal:
        """The journal in use again; UserError when another one has its name by now."""
        async with self._book(user.id) as book:
            found = await book.journal(journal_id)
            if found.disabled_at is None:
                return found
            return await book.change_journal(journal_id, found.version, JournalChange(is_enabled=True))

    async def entries(
        self, user: User, journal_id: str | None, query: str = "", after: str = "", *, is_enabled: bool = True
    ) -> HitPage:
        """A page of entries of one journal or all, the newest first; those taken away where `is_enabled` is False."""
        async with self._book(user.id) as book:
            page = await book.page(journal_id, query, after, PAGE_ROWS, is_enabled=is_enabled)
        return await asyncio.to_thread(_hits, page, query)  # to look through long texts takes a while

    async def entry(self, user: User, entry_id: str) -> JournalEntry:
        """An entry, also one that is taken away; NotFound."""
        async with self._book(user.id) as book:
            return await book.look(entry_id)

    def new_key(self) -> str:
        """The id that a new entry will have, for the form it is written in: sent twice, it is written once."""
        return new_id(self.clock)

    async def write(self, user: User, key: str, journal_id: str, title: str, text: str) -> JournalEntry:
        """A new entry; without a title it bears the day. UserError."""
        if not (key.isascii() and key.isalnum() and len(key) <= 64):
            raise UserError("This form is damaged. Open it again and copy your text into it.")
        day = f"{local(self.clock(), user.time_zone):%Y-%m-%d}"
        head, words = checked_title(title if title.strip() else day), checked_text(text)
        async with self._book(user.id) as book:
            journal = await book.journal(journal_id)
            if journal.disabled_at is not None:
                raise Conflict(f"The journal {journal.name!r} was deleted. Restore it before you write in it.")
            return await book.write(key, journal.name, head, words, is_tainted=False)

    async def save(self, user: User, entry_id: str, version: int, title: str, text: str) -> JournalEntry:
        """Put title and text there; UserError, Conflict."""
        change = EntryChange(title=checked_title(title), text=checked_text(text))
        async with self._book(user.id) as book:
            before = await book.look(entry_id)
            if before.version == version and (before.title, before.text) == (change.title, change.text):
                return before
            return await book.change(entry_id, version, change)

    async def remove_entry(self, user: User, entry_id: str, version: int) -> JournalEntry:
        """Take an entry away; `bring_back_entry` undoes it. Conflict."""
        async with self._book(user.id) as book:
            return await book.change(entry_id, version, EntryChange(is_enabled=False))

    async def bring_back_entry(self, user: User, entry_id: str) -> JournalEntry:
        """The entry in use again."""
        async with self._book(user.id) as book:
            found = await book.look(entry_id)
            if found.disabled_at is None:
                return found
            return await book.change(entry_id, found.version, EntryChange(is_enabled=True))

    async def history(self, user: User, entry_id: str) -> Sequence[EntryVersion]:
        """The entry as it stands and as it stood, the newest first; NotFound."""
        async with self._book(user.id) as book:
            return await book.versions(entry_id, VERSIONS_SHOWN)

    async def compared(self, user: User, entry_id: str, number: int) -> ComparedVersion:
        """An earlier version beside what stands now; NotFound."""
        found = await self.history(user, entry_id)
        version = _numbered(found, number)
        lines = await asyncio.to_thread(_compare, version.text.split("\n"), found[0].text.split("\n"))
        return ComparedVersion(version=version, now=found[0], lines=lines)

    async def restore(self, user: User, entry_id: str, version: int, number: int) -> JournalEntry:
        """Let title and text be again what they were in the version of this number; NotFound, Conflict."""
        wanted = _numbered(await self.history(user, entry_id), number)
        change = EntryChange(title=wanted.title, text=wanted.text, is_enabled=True, is_tainted=wanted.is_tainted)
        async with self._book(user.id) as book:
            return await book.change(entry_id, version, change)

    async def export(self, user: User, journal_id: str) -> AsyncIterator[str]:
        """The journal as Markdown, in pieces: its entries in use, the newest first. NotFound."""
        journal, after, is_first = await self.journal(user, journal_id), "", True
        yield f"# {journal.name}\n"
        while is_first or after:
            async with self._book(user.id) as book:
                page = await book.page(journal_id, "", after, EXPORT_ROWS)
            for row in page.entries:
                yield f"\n## {row.title}\n\n{local(row.written_at, user.time_zone):%Y-%m-%d %H:%M}\n\n{row.text}\n"
            after, is_first = page.after, False

    @asynccontextmanager
    async def _book(self, user_id: str, by: str = PERSON) -> AsyncIterator[JournalBook]:
        async with self.server(user_id, by) as kept_elsewhere:
            if kept_elsewhere is not None:
                await self.db.end_view()  # a page that waits for a network holds no connection
            yield kept_elsewhere or OwnJournals(db=self.db, user_id=user_id, by=by)


class ToolJournals:
    """Implements the `Journals` port for one user, wherever the journals are kept."""

    def __init__(self, book: Callable[[], AbstractAsyncContextManager[JournalBook]]) -> None:
        self._book = book

    async def list(self) -> Sequence[Journal]:
        """The journals in use, by name."""
        async with self._book() as book:
            return await book.list()

    async def entries(
        self, journal_id: str | None, query: str, since: date | None, until: date | None, most: int
    ) -> Sequence[JournalEntry]:
        """The newest entries first."""
        async with self._book() as book:
            return await book.entries(journal_id, query, since, until, most)

    async def entry(self, id: str) -> JournalEntry:
        """The entry, when it can be read; NotFound."""
        async with self._book() as book:
            return await book.entry(id)

    async def write(self, id: str, journal: str, title: str, text: str, is_tainted: bool) -> JournalEntry:
        """A new entry, and its journal where there is none of that name."""
        async with self._book() as book:
            return await book.write(id, journal, title, text, is_tainted)

    async def change(self, id: str, expected_version: int, change: EntryChange) -> JournalEntry:
        """Change an entry; Conflict."""
        async with self._book() as book:
            return await book.change(id, expected_version, change)


def _hits(page: EntryPage, query: str) -> HitPage:
    wanted = terms(query)
    hits = tuple(
        EntryHit(
            entry=row,
            title=pieces_of(row.title, wanted),
            snippet=pieces_of(snippet(row.text, wanted), wanted),
        )
        for row in page.entries
    )
    return HitPage(hits=hits, after=page.after)


def _numbered(found: Sequence[EntryVersion], number: int) -> EntryVersion:
    version = next((one for one in found if one.version == number), None)
    if version is None:
        raise NotFound("This version of this entry does not exist.")
    return version


def _compare(old: Sequence[str], now: Sequence[str]) -> Sequence[tuple[LineKind, str]] | None:
    """The lines of both: the same in both, only in the old, only in what stands now."""
    if max(len(old), len(now)) > COMPARED_LINES_MAX:
        return None
    lines: list[tuple[LineKind, str]] = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, now, autojunk=True).get_opcodes():
        if tag == "equal":
            lines += [("same", line) for line in old[a:b]]
        else:
            lines += [("old", line) for line in old[a:b]] + [("new", line) for line in now[c:d]]
    return lines
