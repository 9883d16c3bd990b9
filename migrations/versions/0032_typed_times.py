"""A job keeps its repeating time as its person wrote it, for the form.

Reversible: `downgrade` forgets it; the form then shows the cron line, as before.
"""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    """Of the jobs that are there it is not known."""
    op.add_column("jobs", sa.Column("typed", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    """Forget it."""
    op.drop_column("jobs", "typed")
