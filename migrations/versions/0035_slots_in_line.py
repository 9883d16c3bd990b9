"""A slot that waits in line for a free place says since when: it is late, not missed.

Reversible: `downgrade` forgets it; what waits is then judged by its job's rule for late runs, as before.
"""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    """Of those that wait now it is not known: they join the line at the next look."""
    op.add_column("slots", sa.Column("in_line_at", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Forget it."""
    op.drop_column("slots", "in_line_at")
