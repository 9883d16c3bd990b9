"""Messengers: who is linked, what came in, how far each chat was told what.

Reversible: `downgrade` forgets the links; what was said stays in its conversations.
"""

import sqlalchemy as sa
from alembic import op

revision = "0047"
down_revision = "0046"


def upgrade() -> None:
    """Begin with nobody."""
    op.create_table(
        "messenger_places",
        sa.Column("messenger", sa.Text(), primary_key=True),
        sa.Column("account", sa.Text(), primary_key=True),
        sa.Column("position", sa.BigInteger(), nullable=False),
        _moment("moved_at"),
        _text("holder"),
        _moment("held_until"),
    )
    op.create_table(
        "messenger_guests",
        sa.Column("messenger", sa.Text(), primary_key=True),
        sa.Column("sender", sa.Text(), primary_key=True),
        *(_text(name) for name in ("chat", "name", "code")),
        _moment("code_until"),
        _moment("told_at", nullable=False),
        sa.Column("is_due", sa.Boolean(), nullable=False),
        sa.Index("ix_messenger_guests_code", "code"),
    )
    op.create_table(
        "messenger_links",
        sa.Column("id", sa.Text(), primary_key=True),
        _of("owner_id", "accounts.id"),
        *(_text(name) for name in ("messenger", "sender", "chat", "name")),
        _moment("created_at", nullable=False),
        sa.UniqueConstraint("messenger", "sender", name="uq_messenger_links_messenger_sender"),
        sa.UniqueConstraint("owner_id", "messenger", name="uq_messenger_links_owner_id_messenger"),
    )
    op.create_table(
        "messenger_chats",
        sa.Column(
            "conversation_id", sa.Text(), sa.ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True
        ),
        _of("owner_id", "accounts.id"),
        _of("link_id", "messenger_links.id"),
        _text("chat"),
        *(sa.Column(name, sa.Boolean(), nullable=False) for name in ("is_group", "is_current")),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in ("told_seq", "told_part")),
        sa.Column("is_sending", sa.Boolean(), nullable=False),
        sa.Index("ix_messenger_chats_link_id", "link_id"),
    )
    op.create_table(
        "messenger_inbox",
        sa.Column("id", sa.Text(), primary_key=True),
        _of("owner_id", "accounts.id"),
        _of("link_id", "messenger_links.id"),
        *(_text(name) for name in ("messenger", "account")),
        sa.Column("position", sa.BigInteger(), nullable=False),
        *(_text(name) for name in ("chat", "message", "state", "payload", "reply", "turn_id")),
        _moment("created_at", nullable=False),
        sa.UniqueConstraint("messenger", "account", "position", name="uq_messenger_inbox_messenger_account_position"),
        sa.Index("ix_messenger_inbox_link_id_message", "link_id", "message"),
        sa.Index("ix_messenger_inbox_state", "state"),
    )


def downgrade() -> None:
    """Forget them."""
    for kind in ("inbox", "chats", "links", "guests", "places"):
        op.drop_table(f"messenger_{kind}")


def _of(name: str, target: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), sa.ForeignKey(target, ondelete="CASCADE"), nullable=False)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)


def _moment(name: str, *, nullable: bool = True) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)
