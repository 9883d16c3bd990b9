"""Turns say when somebody asked for them to be stopped, so that a stop outlives whoever was about to carry it out.

Reversible: `downgrade` forgets it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Nobody has asked yet."""
    op.add_column("turns", sa.Column("stop_asked_at", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Take it away again."""
    op.drop_column("turns", "stop_asked_at")
