"""A one-time link may log another device in, and then sets no password.

Reversible: `downgrade` forgets what a link is for, and those for devices with it: in the version before they would
set passwords.
"""

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"

LINKS = sa.table("setup_links", sa.column("purpose", sa.Text()))


def upgrade() -> None:
    """Links of today set passwords."""
    op.add_column("setup_links", sa.Column("purpose", sa.Text(), nullable=False, server_default="password"))


def downgrade() -> None:
    """Let no link for a device become one that sets a password."""
    op.execute(sa.delete(LINKS).where(LINKS.c.purpose != "password"))
    op.drop_column("setup_links", "purpose")
