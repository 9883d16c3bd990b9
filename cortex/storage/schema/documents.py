"""Files that people gave, and the text that was read out of them. Columns, keys and indexes only."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, UniqueConstraint
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
    state: Mapped[str]
    tries: Mapped[int]
    claimed_until: Mapped[datetime | None]
    pages: Mapped[int]
    characters: Mapped[int]
    outline: Mapped[tuple[str, ...]]
    opening: Mapped[str]
    note: Mapped[str]
    is_tainted: Mapped[bool]
    is_paged: Mapped[bool]
    is_found: Mapped[bool]
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
