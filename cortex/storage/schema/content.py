"""What is a person's: files, journals, tasks, and what Cortex remembers of them. Columns, keys and indexes only."""

from datetime import date, datetime

from sqlalchemy import BigInteger, ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from cortex.storage.table import Serial, Table, owner


class DocumentTable(Table):
    """A file of a person. `path` is below their `files/`; `state` is how far the reading of its text is.

    `is_found`: nobody gave it; a tool made it, or it was copied there. `changed_at`: of the file, when it was read.
    """

    __tablename__ = "documents"
    __table_args__ = (
        Index("ix_documents_owner_id_created_at", "owner_id", "created_at"),
        Index("ix_documents_owner_id_path", "owner_id", "path"),
        Index("ix_documents_state", "state"),
    )
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    path: Mapped[str]
    name: Mapped[str]
    media_type: Mapped[str]
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str]
    state: Mapped[str] = mapped_column(default="waiting")
    tries: Mapped[int] = mapped_column(default=0)
    claimed_until: Mapped[datetime | None]
    pages: Mapped[int] = mapped_column(default=0)
    characters: Mapped[int] = mapped_column(default=0)
    outline: Mapped[tuple[str, ...]] = mapped_column(default=tuple)
    opening: Mapped[str] = mapped_column(default="")
    note: Mapped[str] = mapped_column(default="")
    is_tainted: Mapped[bool]
    is_paged: Mapped[bool] = mapped_column(default=False)
    is_found: Mapped[bool] = mapped_column(default=False)
    changed_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    read_at: Mapped[datetime | None]
    deleted_at: Mapped[datetime | None]


class DocumentPageTable(Table):
    """The text of a page of a document; `words` is what the search index reads."""

    __tablename__ = "document_pages"
    __table_args__ = (UniqueConstraint("document_id", "number"),)
    position: Mapped[int] = mapped_column(Serial, primary_key=True, autoincrement=True)
    document_id: Mapped[str] = mapped_column(ForeignKey("documents.id", ondelete="CASCADE"))
    number: Mapped[int]
    owner_id: Mapped[str] = owner()
    title: Mapped[str]
    text: Mapped[str]
    words: Mapped[str]


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
    version: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    disabled_at: Mapped[datetime | None]
    disabled_by: Mapped[str] = mapped_column(default="")


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
    version: Mapped[int] = mapped_column(default=1)
    written_at: Mapped[datetime]
    changed_at: Mapped[datetime]
    changed_by: Mapped[str]
    disabled_at: Mapped[datetime | None]
    disabled_by: Mapped[str] = mapped_column(default="")


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


class TaskTable(Table):
    """A task of the user's lists. `added_by`, `done_by`: ids of people; `worded_by`: whose all its words are, if one's.

    Those three outlive an account: a task that somebody added stays on the list of its owner.
    """

    __tablename__ = "tasks"
    __table_args__ = (Index("ix_tasks_owner_id_list_name", "owner_id", "list_name"),)
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    list_name: Mapped[str]
    title: Mapped[str]
    notes: Mapped[str] = mapped_column(default="")
    due: Mapped[date | None]
    priority: Mapped[int] = mapped_column(default=0)
    position: Mapped[int]
    is_done: Mapped[bool] = mapped_column(default=False)
    done_at: Mapped[datetime | None]
    is_tainted: Mapped[bool]
    version: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    added_by: Mapped[str | None]
    done_by: Mapped[str | None]
    worded_by: Mapped[str | None]


class TaskListTable(Table):
    """A list that its owner shares: the tasks of this owner and list name. A list that is not shared has no row."""

    __tablename__ = "task_lists"
    __table_args__ = (UniqueConstraint("owner_id", "name"),)
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    name: Mapped[str]
    created_at: Mapped[datetime]


class TaskListMemberTable(Table):
    """Somebody with whom a list is shared; they see it once they accepted (`accepted_at`)."""

    __tablename__ = "task_list_members"
    __table_args__ = (Index("ix_task_list_members_member_id", "member_id"),)
    list_id: Mapped[str] = mapped_column(ForeignKey("task_lists.id", ondelete="CASCADE"), primary_key=True)
    member_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True)
    added_at: Mapped[datetime]
    accepted_at: Mapped[datetime | None]


_STANDS = text("state <> 'forgotten'")


class FactTable(Table):
    """A fact. `key`: equal for those that say the same, of which one stands. Its turn may be gone before it is."""

    __tablename__ = "facts"
    __table_args__ = (
        Index("ix_facts_owner_id_state", "owner_id", "state"),
        Index("uq_facts_owner_id_key", "owner_id", "key", unique=True, sqlite_where=_STANDS, postgresql_where=_STANDS),
    )
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    text: Mapped[str]
    key: Mapped[str]
    source: Mapped[str]
    quote: Mapped[str]
    turn_id: Mapped[str]
    certainty: Mapped[str]
    state: Mapped[str]
    replaces: Mapped[str]
    is_tainted: Mapped[bool]
    is_seen: Mapped[bool]
    version: Mapped[int]
    changed_by: Mapped[str]
    at: Mapped[datetime]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    forgotten_at: Mapped[datetime | None]


class FactVersionTable(Table):
    """A fact as it stood at one of its earlier versions; `changed_by` had made it so."""

    __tablename__ = "fact_versions"
    fact_id: Mapped[str] = mapped_column(ForeignKey("facts.id", ondelete="CASCADE"), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    owner_id: Mapped[str] = owner()
    text: Mapped[str]
    certainty: Mapped[str]
    state: Mapped[str]
    is_tainted: Mapped[bool]
    changed_by: Mapped[str]
    updated_at: Mapped[datetime]


class DistillMarkTable(Table):
    """The point up to which a conversation was read for facts; until `claimed_until` somebody is at it."""

    __tablename__ = "distill_marks"
    conversation_id: Mapped[str] = mapped_column(ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True)
    owner_id: Mapped[str] = owner()
    upto_ordinal: Mapped[int]
    tries: Mapped[int]
    outcome: Mapped[str]
    claimed_until: Mapped[datetime | None]
    at: Mapped[datetime]
