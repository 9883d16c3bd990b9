"""Mail accounts of people, their folders, the index of heads, and jobs that a mail begins.

Reversible: `downgrade` forgets them; what stands on their servers stays there.
"""

import sqlalchemy as sa
from alembic import op

revision = "0046"
down_revision = "0045"


def upgrade() -> None:
    """Begin with none."""
    op.create_table(
        "mail_accounts",
        sa.Column("id", sa.Text(), primary_key=True),
        _owner(),
        *(_text(name) for name in ("address", "host")),
        _number("port"),
        *(_text(name) for name in ("security", "username", "way")),
        _moment("created_at", nullable=False),
        _moment("next_at", nullable=False),
        _moment("worked_at"),
        _text("failure"),
        _number("failures"),
        sa.Index("ix_mail_accounts_next_at", "next_at"),
    )
    op.create_table(
        "mail_folders",
        sa.Column("id", sa.Text(), primary_key=True),
        _owner(),
        _of("account_id", "mail_accounts.id"),
        *(_text(name) for name in ("path", "name", "role")),
        _flag("is_read"),
        sa.Column("uidvalidity", sa.BigInteger(), nullable=False),
        _text("state"),
        _number("lacking"),
        _moment("read_at"),
        sa.UniqueConstraint("account_id", "path", name="uq_mail_folders_account_id_path"),
    )
    op.create_table(
        "mails",
        sa.Column("id", sa.Text(), primary_key=True),
        _owner(),
        _of("folder_id", "mail_folders.id"),
        sa.Column("uid", sa.BigInteger(), nullable=False),
        _moment("at", nullable=False),
        *(_text(name) for name in ("sender", "sender_name", "recipients", "subject", "message_id", "thread", "words")),
        sa.Column("size", sa.BigInteger(), nullable=False),
        *(_flag(name) for name in ("is_seen", "is_flagged", "is_answered", "is_draft", "has_files")),
        sa.UniqueConstraint("folder_id", "uid", name="uq_mails_folder_id_uid"),
        sa.Index("ix_mails_owner_id_at", "owner_id", "at"),
        sa.Index("ix_mails_owner_id_thread", "owner_id", "thread"),
        sa.Index("ix_mails_owner_id_message_id", "owner_id", "message_id"),
    )
    op.create_table(
        "mail_triggers",
        sa.Column("job_id", sa.Text(), sa.ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
        _owner(),
        *(_text(name) for name in ("account_id", "sender", "subject", "words")),
        _moment("since", nullable=False),
    )
    op.create_table(
        "mail_news",
        sa.Column("mail_id", sa.Text(), sa.ForeignKey("mails.id", ondelete="CASCADE"), primary_key=True),
        _owner(),
    )


def downgrade() -> None:
    """Forget them."""
    for name in ("mail_news", "mail_triggers", "mails", "mail_folders", "mail_accounts"):
        op.drop_table(name)


def _owner() -> sa.Column[str]:
    return _of("owner_id", "accounts.id")


def _of(name: str, target: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), sa.ForeignKey(target, ondelete="CASCADE"), nullable=False)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), nullable=False)


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean(), nullable=False)


def _moment(name: str, *, nullable: bool = True) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)
