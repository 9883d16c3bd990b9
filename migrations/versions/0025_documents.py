"""Files that people give, with the text that is read out of them.

Reversible: `downgrade` forgets the rows; the files stay in the folders of their people.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    """No file is known yet."""
    op.create_table(
        "documents",
        *map(_text, ("id", "owner_id", "path", "name", "media_type")),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        *map(_text, ("sha256", "state")),
        sa.Column("tries", sa.Integer(), nullable=False),
        _time("claimed_until", nullable=True),
        sa.Column("pages", sa.Integer(), nullable=False),
        sa.Column("characters", sa.Integer(), nullable=False),
        sa.Column("outline", sa.JSON(), nullable=False),
        *map(_text, ("opening", "note")),
        sa.Column("is_tainted", sa.Boolean(), nullable=False),
        _time("created_at"),
        _time("read_at", nullable=True),
        _time("deleted_at", nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_documents"),
        _foreign("documents", "owner_id", "accounts"),
        sa.Index("ix_documents_owner_id_created_at", "owner_id", "created_at"),
        sa.Index("ix_documents_owner_id_path", "owner_id", "path"),
        sa.Index("ix_documents_state", "state"),
    )
    serial = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "document_pages",
        sa.Column("position", serial, autoincrement=True, nullable=False),
        _text("document_id"),
        sa.Column("number", sa.Integer(), nullable=False),
        *map(_text, ("owner_id", "text", "words")),
        sa.PrimaryKeyConstraint("position", name="pk_document_pages"),
        _foreign("document_pages", "document_id", "documents"),
        _foreign("document_pages", "owner_id", "accounts"),
        sa.UniqueConstraint("document_id", "number", name="uq_document_pages_document_id_number"),
    )


def downgrade() -> None:
    """Forget them."""
    op.drop_table("document_pages")
    op.drop_table("documents")


def _text(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=False)


def _time(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _foreign(table: str, column: str, other: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{other}.id"], name=f"fk_{table}_{column}_{other}", ondelete="CASCADE")
