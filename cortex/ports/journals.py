"""What the journal pages ask for beside `Journals` (`ports/aether.py`): all journals, pages of entries, history.

Implemented by Cortex's own tables and by the client of an Aether server, so that a page looks the same over both.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from cortex.ports.aether import Journal, JournalEntry, Journals

PERSON, ASSISTANT = "person", "assistant"  # who changed something: by hand on a page, or a tool


class EntryPage(Struct, frozen=True, kw_only=True):
    """Entries of one page, the newest first; `after`: what to ask the next one with, "" for none."""

    entries: Sequence[JournalEntry]
    after: str


class EntryVersion(Struct, frozen=True, kw_only=True):
    """An entry as it stood from `at` on, until the next version; `by`: who made it so."""

    version: int
    title: str
    text: str
    is_tainted: bool
    is_enabled: bool
    at: datetime
    by: str


class JournalChange(Struct, frozen=True, kw_only=True):
    """The changes of a journal; None leaves a field as it is."""

    name: str | None = None
    is_enabled: bool | None = None


class JournalShelf(Protocol):
    """One user's journals as such."""

    async def shelf(self, *, is_enabled: bool) -> Sequence[Journal]:
        """The journals by name: those in use, or those taken away."""
        ...

    async def journal(self, id: str) -> Journal:
        """The journal, also one that is taken away; NotFound when it is absent or another user's."""
        ...

    async def create(self, id: str, name: str) -> Journal:
        """A new journal; one that stands already under this id is handed back. UserError when the name is taken."""
        ...

    async def change_journal(self, id: str, expected_version: int, change: JournalChange) -> Journal:
        """Change a journal; Conflict when it no longer stands at that version, UserError when the name is taken."""
        ...


class EntryPages(Protocol):
    """One user's entries in pages, and what they were before."""

    async def page(
        self, journal_id: str | None, query: str, after: str, most: int, *, is_enabled: bool = True
    ) -> EntryPage:
        """A page of the entries of one journal or all; `is_enabled` False: those taken away."""
        ...

    async def look(self, id: str) -> JournalEntry:
        """The entry, also one that is taken away; NotFound when it is absent or another user's."""
        ...

    async def versions(self, id: str, most: int) -> Sequence[EntryVersion]:
        """The entry as it stands and as it stood, the newest first; NotFound."""
        ...


class JournalBook(Journals, JournalShelf, EntryPages, Protocol):
    """One user's journals with all that pages and tools ask for."""
