"""Other programs are let in by tokens.

Reversible: `downgrade` forgets the tokens and which request was whose; the conversations stay.
"""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """No token stands yet."""
    op.create_table(
        "api_tokens",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("hint", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("tools", sa.JSON(), nullable=True),
        sa.Column("limit_tokens", sa.Integer(), nullable=True),
        sa.Column("limit_usd", sa.Double(), nullable=True),
        sa.Column("per_minute", sa.Integer(), nullable=False),
        sa.Column("wait_s", sa.Integer(), nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_api_tokens"),
        sa.ForeignKeyConstraint(["owner_id"], ["accounts.id"], name="fk_api_tokens_owner_id", ondelete="CASCADE"),
        sa.UniqueConstraint("digest", name="uq_api_tokens_digest"),
    )
    op.create_table(
        "api_requests",
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("token_id", sa.Text(), nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("thread", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("turn_id", name="pk_api_requests"),
        sa.ForeignKeyConstraint(["owner_id"], ["accounts.id"], name="fk_api_requests_owner_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["token_id"], ["api_tokens.id"], name="fk_api_requests_token_id", ondelete="CASCADE"),
        sa.Index("ix_api_requests_token_id_at", "token_id", "at"),
        sa.Index("ix_api_requests_token_id_thread", "token_id", "thread"),
    )


def downgrade() -> None:
    """Forget the tokens."""
    op.drop_table("api_requests")
    op.drop_table("api_tokens")
