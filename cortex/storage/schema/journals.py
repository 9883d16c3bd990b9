"""Journals with their entries, and what the entries were before. Columns, keys and indexes only."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from cortex.storage.table import Serial, Table, owner

_IN_USE = text("disabled_at IS NULL")


class JournalTable(Table):
    """A journal. `name_key` is its folded name: of those in use each has its own."""

    __tablename__ = "journals"
    __table_args__ = (
        Index(
            "uq_journals_owner_id_name_key",
            "owner_id",
            "name_key",
            unique=True,
            sqlite_where=_IN_USE,
            postgresql_where=_IN_USE,
        ),
    )
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    name: Mapped[str]
    name_key: Mapped[str]
    is_tainted: Mapped[bool]
    version: Mapped[int]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    disabled_at: Mapped[datetime | None]
    disabled_by: Mapped[str]


class JournalEntryTable(Table):
    """An entry of a journal as it stands; `words` is what the search index reads."""

    __tablename__ = "journal_entries"
    __table_args__ = (
        Index("ix_journal_entries_owner_id_written_at", "owner_id", "written_at"),
        Index("ix_journal_entries_journal_id_written_at", "journal_id", "written_at"),
    )
    position: Mapped[int] = mapped_column(Serial, primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(unique=True)
    owner_id: Mapped[str] = owner()
    journal_id: Mapped[str] = mapped_column(ForeignKey("journals.id", ondelete="CASCADE"))
    title: Mapped[str]
    text: Mapped[str]
    words: Mapped[str]
    is_tainted: Mapped[bool]
    version: Mapped[int]
    written_at: Mapped[datetime]
    changed_at: Mapped[datetime]
    changed_by: Mapped[str]
    disabled_at: Mapped[datetime | None]
    disabled_by: Mapped[str]


class EntryVersionTable(Table):
    """An entry as it was before a change."""

    __tablename__ = "journal_versions"
    entry_id: Mapped[str] = mapped_column(ForeignKey("journal_entries.id", ondelete="CASCADE"), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    owner_id: Mapped[str] = owner()
    title: Mapped[str]
    text: Mapped[str]
    is_tainted: Mapped[bool]
    is_enabled: Mapped[bool]
    changed_at: Mapped[datetime]
    changed_by: Mapped[str]
