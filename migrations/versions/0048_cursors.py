"""Messengers that say by a word of their own up to where they told: it stands beside the position.

Reversible: `downgrade` forgets the words; whoever is asked begins with what comes then.
"""

import sqlalchemy as sa
from alembic import op

revision = "0048"
down_revision = "0047"


def upgrade() -> None:
    """Begin without one."""
    op.add_column("messenger_places", sa.Column("cursor", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    """Forget them."""
    op.drop_column("messenger_places", "cursor")
