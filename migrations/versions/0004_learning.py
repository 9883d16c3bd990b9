"""What use teaches: how a call's tool came, cases of what a message needed, the admins' answers, refits.

Reversible: `downgrade` forgets all of it; calls stay.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the tables; calls of before say nothing of how their tool came."""
    op.add_column("calls", _text("came", server_default=""))
    op.create_table(
        "learning_cases",
        _text("id", primary_key=True),
        _foreign("owner_id", "accounts.id"),
        _foreign("turn_id", "turns.id"),
        _text("role"),
        sa.Column("needed", sa.JSON(), nullable=False),
        sa.Column("called", sa.JSON(), nullable=False),
        sa.Column("unused", sa.JSON(), nullable=False),
        _text("text_hash"),
        sa.Column("text", sa.Text()),
        _time("created_at"),
        sa.UniqueConstraint("turn_id"),
    )
    op.create_index("ix_learning_cases_created_at", "learning_cases", ["created_at"])
    op.create_index("ix_learning_cases_owner_id", "learning_cases", ["owner_id"])
    op.create_table(
        "learning_answers",
        _text("id", primary_key=True),
        _text("tool"),
        _text("text_hash"),
        _text("kind"),
        _text("category"),
        _text("text"),
        _text("answered_by"),
        _time("answered_at"),
        sa.UniqueConstraint("tool", "text_hash"),
    )
    op.create_table(
        "refits",
        sa.Column("number", sa.Integer(), primary_key=True),
        _text("base"),
        _text("digest"),
        sa.Column("weights", sa.LargeBinary(), nullable=False),
        sa.Column("report", sa.JSON(), nullable=False),
        sa.Column("is_in_force", sa.Boolean(), nullable=False),
        _text("made_by"),
        _time("made_at"),
    )


def downgrade() -> None:
    """Take it all away again."""
    for name in ("refits", "learning_answers", "learning_cases"):
        op.drop_table(name)
    op.drop_column("calls", "came")


def _text(name: str, **rest: Any) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), **{"nullable": False, **rest})


def _foreign(name: str, key: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), sa.ForeignKey(key, ondelete="CASCADE"), nullable=False)


def _time(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)
