"""What Cortex remembers of people: facts, their earlier versions, and how far conversations were read for them.

Reversible: `downgrade` forgets all of it.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Nothing is remembered yet."""
    op.create_table(
        "facts",
        _text("id"),
        _text("owner_id"),
        *map(_text, ("text", "key", "source", "quote", "turn_id", "certainty", "state", "replaces")),
        _flag("is_tainted"),
        _flag("is_seen"),
        sa.Column("version", sa.Integer(), nullable=False),
        _text("changed_by"),
        _time("at"),
        _time("created_at"),
        _time("updated_at"),
        _time("forgotten_at", nullable=True),
        _foreign("facts", "owner_id", "accounts"),
        sa.PrimaryKeyConstraint("id", name="pk_facts"),
    )
    op.create_index("ix_facts_owner_id_state", "facts", ["owner_id", "state"])
    stands = sa.text("state <> 'forgotten'")
    op.create_index(
        "uq_facts_owner_id_key",
        "facts",
        ["owner_id", "key"],
        unique=True,
        sqlite_where=stands,
        postgresql_where=stands,
    )
    op.create_table(
        "fact_versions",
        _text("fact_id"),
        sa.Column("version", sa.Integer(), nullable=False, autoincrement=False),
        _text("owner_id"),
        *map(_text, ("text", "certainty", "state")),
        _flag("is_tainted"),
        _text("changed_by"),
        _time("updated_at"),
        _foreign("fact_versions", "fact_id", "facts"),
        _foreign("fact_versions", "owner_id", "accounts"),
        sa.PrimaryKeyConstraint("fact_id", "version", name="pk_fact_versions"),
    )
    op.create_table(
        "distill_marks",
        _text("conversation_id"),
        _text("owner_id"),
        sa.Column("upto_ordinal", sa.Integer(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        _text("outcome"),
        _time("claimed_until", nullable=True),
        _time("at"),
        _foreign("distill_marks", "conversation_id", "conversations"),
        _foreign("distill_marks", "owner_id", "accounts"),
        sa.PrimaryKeyConstraint("conversation_id", name="pk_distill_marks"),
    )


def downgrade() -> None:
    """Take it all away again."""
    for table in ("distill_marks", "fact_versions", "facts"):
        op.drop_table(table)


def _text(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=False)


def _flag(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Boolean(), nullable=False)


def _time(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _foreign(table: str, column: str, other: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{other}.id"], name=f"fk_{table}_{column}_{other}", ondelete="CASCADE")
