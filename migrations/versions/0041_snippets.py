"""Snippets, for oneself or for everybody here; and which chats people let each other read.

Reversible: `downgrade` forgets them.
"""

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"


def upgrade() -> None:
    """Begin with none."""
    op.create_table(
        "snippets",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("owner_id", sa.Text(), sa.ForeignKey("accounts.id", ondelete="CASCADE"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("is_shared", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.UniqueConstraint("owner_id", "name", name="uq_snippets_owner_id_name"),
    )
    op.create_table(
        "chat_shares",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("owner_id", sa.Text(), sa.ForeignKey("accounts.id", ondelete="CASCADE"), nullable=False),
        sa.Column("conversation_id", sa.Text(), sa.ForeignKey("conversations.id", ondelete="CASCADE"), nullable=False),
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("upto_ordinal", sa.Integer(), nullable=False),
        sa.Column("reader_id", sa.Text(), sa.ForeignKey("accounts.id", ondelete="CASCADE"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.UniqueConstraint(
            "conversation_id", "turn_id", "reader_id", name="uq_chat_shares_conversation_id_turn_id_reader_id"
        ),
        sa.Index("ix_chat_shares_reader_id", "reader_id"),
    )


def downgrade() -> None:
    """Forget them."""
    op.drop_table("chat_shares")
    op.drop_table("snippets")
