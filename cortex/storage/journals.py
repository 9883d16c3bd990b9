"""The user's journals, their entries and what the entries were before; entries are found by their words.

A version on each journal and entry guards against lost updates; nothing is deleted, only taken away and brought back.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, Select, and_, func, or_, select, text
from sqlalchemy.exc import IntegrityError

from cortex.base.errors import Conflict, NotFound
from cortex.base.journal_rules import name_key
from cortex.base.record import field_names
from cortex.ports.aether import EntryChange, Journal, JournalEntry
from cortex.ports.journals import EntryVersion
from cortex.storage.repository import Repository, reading
from cortex.storage.schema import EntryVersionTable, JournalEntryTable, JournalTable
from cortex.storage.words import indexed, terms

_MATCHES = {
    "sqlite": "journal_entries.position IN (SELECT rowid FROM journal_index WHERE journal_index MATCH :needle)",
    "postgresql": "array_to_tsvector(string_to_array(journal_entries.words, ' ')) @@ CAST(:needle AS tsquery)",
}


class EntryFilter(Struct, frozen=True, kw_only=True):
    """A choice of entries; `since`: the first moment, `until`: the first too late, `after`: the last one seen."""

    journal_id: str | None = None
    query: str = ""
    since: datetime | None = None
    until: datetime | None = None
    after: str = ""
    is_enabled: bool = True


class JournalsRepository(Repository):
    """One user's journals."""

    @reading
    async def list(self, *, is_enabled: bool = True) -> Sequence[Journal]:
        """The journals by name: those in use, or those taken away."""
        wanted = JournalTable.disabled_at.is_(None) if is_enabled else JournalTable.disabled_at.is_not(None)
        return sorted(await self._found(wanted), key=lambda one: (one.name.casefold(), one.id))

    @reading
    async def get(self, id: str) -> Journal:
        """The journal, also one that is taken away; NotFound when it is absent or another user's."""
        found = await self._found(JournalTable.id == id)
        if not found:
            raise NotFound("This journal does not exist.")
        return found[0]

    @reading
    async def named(self, name: str) -> Journal | None:
        """The journal in use of this name, whatever its case."""
        is_it = and_(JournalTable.name_key == name_key(name), JournalTable.disabled_at.is_(None))
        return next(iter(await self._found(is_it)), None)

    async def add(self, id: str, name: str, *, is_tainted: bool) -> Journal:
        """A new journal; one that stands under this id, or in use under this name, is handed back."""
        at = self.clock()
        values = {
            "id": id,
            "name": name,
            "name_key": name_key(name),
            "is_tainted": is_tainted,
            "created_at": at,
            "updated_at": at,
        }
        if await self._is_new(JournalTable, values):
            return await self.get(id)
        return await self.named(name) or await self.get(id)

    async def change(
        self, id: str, expected_version: int, by: str, *, name: str | None = None, is_enabled: bool | None = None
    ) -> Journal:
        """Rename it, take it away or bring it back. A name that a person gives is no longer from outside.

        Conflict when it no longer stands at that version, or another journal in use has the name.
        """
        before = await self.get(id)
        at = self.clock()
        values: dict[str, Any] = {"version": JournalTable.version + 1, "updated_at": at}
        if name is not None:
            values |= {"name": name, "name_key": name_key(name), "is_tainted": False}
        if is_enabled is not None:
            values |= {"disabled_at": None if is_enabled else at, "disabled_by": "" if is_enabled else by}
        change = self._change(JournalTable).where(JournalTable.id == id, JournalTable.version == expected_version)
        try:
            async with self.session.begin_nested():
                touched = await self._touched(change.values(**values), JournalTable.id)
        except IntegrityError as error:
            raise Conflict(f"There is a journal named {name or before.name!r} already.") from error
        if not touched:
            raise Conflict(f"The journal {before.name!r} was changed in the meantime. Check it again.")
        return await self.get(id)

    async def _found(self, which: ColumnElement[bool]) -> Sequence[Journal]:
        """The journals with what their entries say: a journal changes with them."""
        of_it = JournalEntryTable.journal_id == JournalTable.id
        held = select(func.count()).where(of_it, JournalEntryTable.disabled_at.is_(None)).scalar_subquery()
        changed = select(func.max(JournalEntryTable.changed_at)).where(of_it).scalar_subquery().label("entries_at")
        columns = (held.label("entries"), changed, JournalTable.updated_at)
        statement = self._mine(Journal, JournalTable, *columns).where(which)
        rows = [dict(row) for row in (await self.session.execute(statement)).mappings()]
        return [
            Journal(changed_at=max(filter(None, (row.pop("updated_at"), row.pop("entries_at")))), **row) for row in rows
        ]


class JournalEntriesRepository(Repository):
    """One user's entries. An entry of a journal that is taken away is taken away with it."""

    @reading
    async def list(self, wanted: EntryFilter, most: int) -> Sequence[JournalEntry]:
        """The newest entries first; for each word of the query an entry has one that begins with it."""
        entry, is_used = JournalEntryTable, JournalEntryTable.disabled_at.is_(None)
        statement = self._entries().where(is_used if wanted.is_enabled else ~is_used)
        statement = statement.where(JournalTable.disabled_at.is_(None))
        if wanted.journal_id is not None:
            statement = statement.where(entry.journal_id == wanted.journal_id)
        if wanted.since is not None:
            statement = statement.where(entry.written_at >= wanted.since)
        if wanted.until is not None:
            statement = statement.where(entry.written_at < wanted.until)
        if wanted.query.strip():
            if not (words := terms(wanted.query)):
                return []
            statement = statement.where(self._has(words))
        if wanted.after:
            statement = statement.where(await self._is_behind(wanted.after))
        order = (entry.written_at.desc(), entry.position.desc())
        return await self._all(JournalEntry, statement.order_by(*order).limit(most))

    @reading
    async def get(self, id: str, *, is_enabled: bool | None = None) -> JournalEntry:
        """The entry; with `is_enabled` only one that can be read. NotFound when it is absent or another user's."""
        statement = self._entries().where(JournalEntryTable.id == id)
        if is_enabled:
            statement = statement.where(JournalEntryTable.disabled_at.is_(None), JournalTable.disabled_at.is_(None))
        return await self._one(JournalEntry, statement, "This entry does not exist.")

    @reading
    async def find(self, id: str) -> JournalEntry | None:
        """The entry, also one that is taken away; None when it is absent or another user's."""
        return await self._first(JournalEntry, self._entries().where(JournalEntryTable.id == id))

    async def add(self, id: str, journal_id: str, title: str, text: str, by: str, *, is_tainted: bool) -> JournalEntry:
        """A new entry; one that stands already is handed back."""
        await self._must_own(JournalTable, journal_id, "journal")
        at = self.clock()
        values = {
            "id": id,
            "journal_id": journal_id,
            "title": title,
            "text": text,
            "words": indexed(f"{title}\n{text}"),
            "is_tainted": is_tainted,
            "written_at": at,
            "changed_at": at,
            "changed_by": by,
        }
        await self._is_new(JournalEntryTable, values)
        return await self.get(id)

    async def change(self, id: str, expected_version: int, by: str, change: EntryChange) -> JournalEntry:
        """Change what is given and keep what stood there; a mark stays. Conflict when it stands at another version."""
        before = await self.get(id)
        at = self.clock()
        title = before.title if change.title is None else change.title
        words = before.text if change.text is None else change.text
        values: dict[str, Any] = {
            "title": title,
            "text": words,
            "is_tainted": before.is_tainted or change.is_tainted,
            "version": before.version + 1,
            "changed_at": at,
            "changed_by": by,
        }
        if (title, words) != (before.title, before.text):
            values["words"] = indexed(f"{title}\n{words}")
        if change.is_enabled is not None:
            is_on = change.is_enabled
            values |= {"disabled_at": None if is_on else at, "disabled_by": "" if is_on else by}
        its = (JournalEntryTable.id == id, JournalEntryTable.version == expected_version)
        is_touched = before.version == expected_version and await self._touched(
            self._change(JournalEntryTable).where(*its).values(**values), JournalEntryTable.id
        )
        if not is_touched:
            raise Conflict(f"The entry {before.title!r} was changed in the meantime. Check it again.")
        await self._keep(before)
        return await self.get(id)

    @reading
    async def versions(self, id: str, most: int) -> Sequence[EntryVersion]:
        """The entry as it stands and as it stood, the newest first; NotFound."""
        now = _version(await self.get(id))
        row = EntryVersionTable
        statement = self._mine(EntryVersion, row, row.changed_at.label("at"), row.changed_by.label("by"))
        statement = statement.where(row.entry_id == id).order_by(row.version.desc()).limit(most - 1)
        return [now, *await self._all(EntryVersion, statement)]

    async def _keep(self, before: JournalEntry) -> None:
        """Keep the entry as it stood."""
        was = _version(before)
        values = {
            **{name: getattr(was, name) for name in ("version", "title", "text", "is_tainted", "is_enabled")},
            "entry_id": before.id,
            "changed_at": was.at,
            "changed_by": was.by,
        }
        await self.session.execute(self._insert(EntryVersionTable, values))

    def _entries(self) -> Select[Any]:
        """An entry shows its journal's name, so the mark of that is its own too."""
        row = JournalEntryTable
        plain = [getattr(row, name) for name in field_names(JournalEntry) if name not in ("journal", "is_tainted")]
        is_tainted = or_(row.is_tainted, JournalTable.is_tainted).label("is_tainted")
        statement = select(*plain, JournalTable.name.label("journal"), is_tainted)
        return statement.join(JournalTable, JournalTable.id == row.journal_id).where(row.owner_id == self.owner_id)

    async def _is_behind(self, id: str) -> ColumnElement[bool]:
        """Tell whether a row comes after the entry of this id, in the order of the list."""
        entry = JournalEntryTable
        place = select(entry.written_at, entry.position).where(entry.owner_id == self.owner_id, entry.id == id)
        last = (await self.session.execute(place)).first()
        if last is None:
            raise NotFound("This page of entries no longer exists. Start with the newest.")
        is_later = and_(entry.written_at == last.written_at, entry.position < last.position)
        return or_(entry.written_at < last.written_at, is_later)

    def _has(self, wanted: Sequence[str]) -> ColumnElement[bool]:
        # A term is letters and digits only (storage/words.py), so quoting it is all the escaping either language needs.
        if self._is_postgresql:
            needle = " & ".join(f"'{term}':*" for term in wanted)
        else:
            needle = " AND ".join(f'"{term}"*' for term in wanted)
        match = _MATCHES["postgresql" if self._is_postgresql else "sqlite"]
        return text(match).bindparams(needle=needle)  # type: ignore[return-value] # a condition, written out


def _version(row: JournalEntry) -> EntryVersion:
    return EntryVersion(
        version=row.version,
        title=row.title,
        text=row.text,
        is_tainted=row.is_tainted,
        is_enabled=row.disabled_at is None,
        at=row.changed_at or row.written_at,
        by=row.changed_by,
    )
