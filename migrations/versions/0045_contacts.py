"""Address books of people's accounts, and the local copy of what is in them.

Reversible: `downgrade` forgets them; what stands on their servers stays there.
"""

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0044"


def upgrade() -> None:
    """Begin with none."""
    op.create_table(
        "address_books",
        sa.Column("id", sa.Text(), primary_key=True),
        _of("owner_id", "accounts.id"),
        _of("account_id", "calendar_accounts.id"),
        *(_text(name) for name in ("url", "name")),
        sa.Column("can_write", sa.Boolean(), nullable=False),
        _text("access"),
        sa.Column("is_shared", sa.Boolean(), nullable=False),
        _text("token"),
        sa.Column("worked_at", sa.DateTime(timezone=True)),
        sa.UniqueConstraint("account_id", "url", name="uq_address_books_account_id_url"),
        sa.Index("ix_address_books_owner_id", "owner_id"),
    )
    op.create_table(
        "contacts",
        sa.Column("id", sa.Text(), primary_key=True),
        _of("owner_id", "accounts.id"),
        _of("book_id", "address_books.id"),
        *(_text(name) for name in ("href", "etag", "uid", "name", "key", "words", "birthday", "rest")),
        sa.UniqueConstraint("book_id", "href", name="uq_contacts_book_id_href"),
        sa.Index("ix_contacts_book_id_key", "book_id", "key"),
    )
    # Accounts that stand are asked again for all that they have, so their address books come by themselves.
    op.execute("UPDATE calendar_accounts SET worked_at = NULL WHERE kind = 'caldav'")


def downgrade() -> None:
    """Forget them."""
    for name in ("contacts", "address_books"):
        op.drop_table(name)


def _of(name: str, target: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), sa.ForeignKey(target, ondelete="CASCADE"), nullable=False)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False)
