"""The tools that were chosen for a job's prompt, and for what they were chosen.

Reversible: `downgrade` forgets them; the next run of a job chooses anew.
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """No job has any yet; its next run chooses them."""
    op.add_column("jobs", sa.Column("planned", sa.JSON()))
    op.add_column("jobs", sa.Column("planned_for", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    """Take it all away again."""
    op.drop_column("jobs", "planned_for")
    op.drop_column("jobs", "planned")
