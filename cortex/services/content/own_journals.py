"""One user's journals in Cortex's own tables. Nothing has to be set up for them. Rows: `storage/journals.py`."""

from collections.abc import Sequence
from datetime import date, datetime

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.ids import derived_id
from cortex.base.journal_rules import JOURNALS_MAX, checked_name, checked_text, checked_title, full, taken
from cortex.base.zone import day_begins, day_ends
from cortex.ports.aether import EntryChange, Journal, JournalEntry
from cortex.ports.journals import EntryPage, EntryVersion, JournalChange
from cortex.storage.accounts import AccountsRepository
from cortex.storage.db import Database
from cortex.storage.journals import EntryFilter, JournalEntriesRepository, JournalsRepository


class OwnJournals(Struct, frozen=True, kw_only=True):
    """Implements `JournalBook` for one user; `by` is who acts: the person on a page, or the assistant."""

    db: Database
    user_id: str
    by: str

    async def list(self) -> Sequence[Journal]:
        """The journals in use, by name."""
        return await self._journals.list()

    async def entries(
        self, journal_id: str | None, query: str, since: date | None, until: date | None, most: int
    ) -> Sequence[JournalEntry]:
        """The newest entries first; the days are those of the user's time zone."""
        first, end = await self._moments(since, until)
        wanted = EntryFilter(journal_id=journal_id, query=query, since=first, until=end)
        return await self._entries.list(wanted, most)

    async def entry(self, id: str) -> JournalEntry:
        """The entry, when it can be read; NotFound."""
        return await self._entries.get(id, is_enabled=True)

    async def write(self, id: str, journal: str, title: str, text: str, is_tainted: bool) -> JournalEntry:
        """A new entry, and its journal where there is none of that name; one that stands already is handed back."""
        name, head, words = checked_name(journal), checked_title(title), checked_text(text)
        async with self.db.transaction(self.user_id) as repository:
            journals, entries = repository(JournalsRepository), repository(JournalEntriesRepository)
            if (found := await entries.find(id)) is not None:
                return found
            kept = await journals.named(name)
            if kept is None:
                await _make_room(journals)
                kept = await journals.add(derived_id(id, "journal"), name, is_tainted=is_tainted)
            return await entries.add(id, kept.id, head, words, self.by, is_tainted=is_tainted)

    async def change(self, id: str, expected_version: int, change: EntryChange) -> JournalEntry:
        """Change an entry, also one that is taken away; what stood there is kept. Conflict."""
        title = None if change.title is None else checked_title(change.title)
        text = None if change.text is None else checked_text(change.text)
        return await self._entries.change(id, expected_version, self.by, replace(change, title=title, text=text))

    async def shelf(self, *, is_enabled: bool) -> Sequence[Journal]:
        """The journals in use, or those taken away."""
        return await self._journals.list(is_enabled=is_enabled)

    async def journal(self, id: str) -> Journal:
        """The journal, also one that is taken away; NotFound."""
        return await self._journals.get(id)

    async def create(self, id: str, name: str) -> Journal:
        """A new journal; UserError when the name is taken or there are too many."""
        words = checked_name(name)
        async with self.db.transaction(self.user_id) as repository:
            journals = repository(JournalsRepository)
            await _make_room(journals)
            made = await journals.add(id, words, is_tainted=False)
        if made.id != id:
            raise taken(made.name)
        return made

    async def change_journal(self, id: str, expected_version: int, change: JournalChange) -> Journal:
        """Rename it, take it away or bring it back; Conflict, UserError when the name is taken."""
        name = None if change.name is None else checked_name(change.name)
        async with self.db.transaction(self.user_id) as repository:
            journals = repository(JournalsRepository)
            before = await journals.get(id)
            will_be_used = before.disabled_at is None if change.is_enabled is None else change.is_enabled
            other = await journals.named(name or before.name)
            if will_be_used and other is not None and other.id != id:
                raise taken(other.name)
            return await journals.change(id, expected_version, self.by, name=name, is_enabled=change.is_enabled)

    async def page(
        self, journal_id: str | None, query: str, after: str, most: int, *, is_enabled: bool = True
    ) -> EntryPage:
        """A page of entries, the newest first."""
        wanted = EntryFilter(journal_id=journal_id, query=query, after=after, is_enabled=is_enabled)
        rows = await self._entries.list(wanted, most + 1)
        return EntryPage(entries=rows[:most], after=rows[most - 1].id if len(rows) > most else "")

    async def look(self, id: str) -> JournalEntry:
        """The entry, also one that is taken away; NotFound."""
        return await self._entries.get(id)

    async def versions(self, id: str, most: int) -> Sequence[EntryVersion]:
        """The entry as it stands and as it stood, the newest first; NotFound."""
        return await self._entries.versions(id, most)

    @property
    def _journals(self) -> JournalsRepository:
        return self.db.repository(JournalsRepository, self.user_id)

    @property
    def _entries(self) -> JournalEntriesRepository:
        return self.db.repository(JournalEntriesRepository, self.user_id)

    async def _moments(self, since: date | None, until: date | None) -> tuple[datetime | None, datetime | None]:
        if since is None and until is None:
            return None, None
        account = await self.db.repository(AccountsRepository).get(self.user_id)
        return day_begins(since, account.time_zone), day_ends(until, account.time_zone)


async def _make_room(journals: JournalsRepository) -> None:
    if len(await journals.list()) >= JOURNALS_MAX:
        raise full()
