"""The sockets of the Aether tools: journals with entries, the board of tasks, the read-only database."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Protocol

from msgspec import Struct


class Journal(Struct, frozen=True, kw_only=True):
    """A journal of the user with the number of its entries. `is_tainted`: its name holds words from outside.

    `version` guards against lost updates; `disabled_at`, `disabled_by`: since when and by whom it is taken away.
    """

    id: str
    name: str
    entries: int
    changed_at: datetime
    is_tainted: bool
    version: int = 1
    disabled_at: datetime | None = None
    disabled_by: str = ""


class JournalEntry(Struct, frozen=True, kw_only=True):
    """An entry of a journal. `is_tainted`: it holds words from outside; `version` guards against lost updates.

    `changed_at`, `changed_by`: its last change; `disabled_at`, `disabled_by`: since when and by whom it is taken away.
    """

    id: str
    journal_id: str
    journal: str
    title: str
    text: str
    written_at: datetime
    is_tainted: bool
    version: int
    changed_at: datetime | None = None
    changed_by: str = ""
    disabled_at: datetime | None = None
    disabled_by: str = ""


class EntryChange(Struct, frozen=True, kw_only=True):
    """The changes of an entry; None leaves a field as it is. `is_tainted` can only be set."""

    title: str | None = None
    text: str | None = None
    is_enabled: bool | None = None
    is_tainted: bool = False


class Journals(Protocol):
    """One user's journals: Cortex's own tables, or an Aether server when one is configured."""

    async def list(self) -> Sequence[Journal]:
        """All journals, by name."""
        ...

    async def entries(
        self, journal_id: str | None, query: str, since: date | None, until: date | None, most: int
    ) -> Sequence[JournalEntry]:
        """Enabled entries, the newest first, of one journal or all; `query`: words, all of them in title or text."""
        ...

    async def entry(self, id: str) -> JournalEntry:
        """The entry; NotFound when it is absent, disabled or another user's."""
        ...

    async def write(self, id: str, journal: str, title: str, text: str, is_tainted: bool) -> JournalEntry:
        """A new entry (and journal, if there is none of that name); one that stands already is handed back."""
        ...

    async def change(self, id: str, expected_version: int, change: EntryChange) -> JournalEntry:
        """Change an entry, also a disabled one; Conflict when it no longer stands at that version."""
        ...


class JournalPlace(Protocol):
    """Where one user's journals are kept."""

    async def server(self) -> str:
        """The host of the server that keeps them, which others run and can read; "" where Cortex itself does."""
        ...


class Card(Struct, frozen=True, kw_only=True):
    """A task on the board."""

    id: str
    title: str
    due: date | None
    priority: int
    is_tainted: bool


class BoardColumn(Struct, frozen=True, kw_only=True):
    """A column of the board with its cards in order; `total` may be more than are handed over.

    `is_tainted`: its name may hold words from outside.
    """

    name: str
    cards: tuple[Card, ...]
    total: int
    is_tainted: bool


class Board(Protocol):
    """One user's Aether board; over Cortex's own tasks unless an Aether server is configured."""

    async def columns(self, query: str, most: int) -> Sequence[BoardColumn]:
        """All columns in order, each with at most `most` cards that hold the words; `total` counts those that do."""
        ...


class Rows(Struct, frozen=True, kw_only=True):
    """A result table, values as text. `is_cut`: there was more than the limit."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    is_cut: bool
    took_ms: int


class TableFacts(Struct, frozen=True, kw_only=True):
    """A table or view. Of a single one also `columns` as "name type", `indexes`, and `keys` to other tables."""

    name: str
    kind: str
    rows: int | None = None
    comment: str = ""
    columns: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


class ViewFacts(Struct, frozen=True, kw_only=True):
    """The statement that defines a view, and its first rows where some were asked for."""

    definition: str
    rows: Rows | None = None


class AetherDatabase(Protocol):
    """The user's MariaDB or MySQL databases, read only three times over.

    database: which one, by its name; "" = the only one. role: in which it is asked for, "" = in any. ToolFailed for
    whatever is refused, unknown or too slow.
    """

    async def check(self, *, sql: str = "", table: str = "", database: str = "", role: str = "") -> None:
        """ToolFailed for what is refused without asking the server: the database, a statement, a table's name."""
        ...

    async def query(self, sql: str, most: int, *, database: str = "", role: str = "") -> Rows:
        """The rows of one reading statement; the guard's and the server's word is passed on when it is refused."""
        ...

    async def tables(self, words: str, *, database: str = "", role: str = "") -> Sequence[TableFacts]:
        """Tables and views of the schemas that an admin opened, whose names or comments hold the words."""
        ...

    async def table(self, name: str, *, database: str = "", role: str = "") -> TableFacts:
        """One table or view with its columns; ToolFailed with near names when there is none."""
        ...

    async def view(self, name: str, most: int, *, database: str = "", role: str = "") -> ViewFacts:
        """A view with at most this many of its rows, none for 0; ToolFailed when it is no view."""
        ...
