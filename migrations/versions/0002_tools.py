"""What a house changes about its tools: settings, words, cases to check; who was rescued, which recipe a chat uses.

Reversible: `downgrade` forgets all of it.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables of tools, and two columns that start with what held before."""
    op.create_table("counters", _text("name", primary_key=True), sa.Column("number", sa.Integer(), nullable=False))
    op.create_table(
        "tool_settings",
        _text("tool", primary_key=True),
        sa.Column("is_on", sa.Boolean()),
        sa.Column("sending", sa.Text()),
        sa.Column("asks_first", sa.Boolean()),
        _text("changed_by"),
        _time("changed_at"),
    )
    op.create_table(
        "tool_words",
        _text("id", primary_key=True),
        _text("category"),
        _text("kind"),
        _text("text"),
        _text("text_key"),
        sa.Column("tools", sa.JSON(), nullable=False),
        sa.Column("is_left_out", sa.Boolean(), nullable=False),
        _text("added_by"),
        _time("added_at"),
        sa.UniqueConstraint("category", "kind", "text_key", "is_left_out"),
    )
    op.create_table(
        "tool_cases",
        _text("id", primary_key=True),
        _text("text"),
        _text("role"),
        _text("rank"),
        sa.Column("tools", sa.JSON(), nullable=False),
        _text("added_by"),
        _time("added_at"),
    )
    op.add_column("calls", sa.Column("is_rescued", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_index("ix_calls_name_created_at", "calls", ["name", "created_at"])
    op.add_column("conversations", sa.Column("recipe", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    """Take them away again; calls and conversations stay."""
    op.drop_column("conversations", "recipe")
    op.drop_index("ix_calls_name_created_at", "calls")
    op.drop_column("calls", "is_rescued")
    for name in ("tool_cases", "tool_words", "tool_settings", "counters"):
        op.drop_table(name)


def _text(name: str, **rest: Any) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), **{"nullable": False, **rest})


def _time(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)
