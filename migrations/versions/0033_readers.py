"""Somebody who is given a task list accepts it first, and what others will read is asked about, or permitted to a job.

Reversible: `downgrade` makes every open invitation void and forgets the permissions for lists. Lists that are shared
today stay accepted.
"""

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    """Nobody who sees a list today is asked again."""
    op.add_column("task_list_members", sa.Column("accepted_at", sa.DateTime(timezone=True), nullable=True))
    op.execute("UPDATE task_list_members SET accepted_at = added_at")
    op.add_column("approvals", sa.Column("readers", sa.Text(), nullable=False, server_default=""))
    op.add_column("grants", sa.Column("readers", sa.Text(), nullable=False, server_default=""))
    op.add_column("grants", sa.Column("job_id", sa.Text(), nullable=True))


def downgrade() -> None:
    """An older version would take an invitation for a membership, and such a permission for one of its own."""
    op.execute("DELETE FROM task_list_members WHERE accepted_at IS NULL")
    op.drop_column("task_list_members", "accepted_at")
    op.execute("DELETE FROM grants WHERE readers <> ''")
    op.drop_column("grants", "job_id")
    op.drop_column("grants", "readers")
    op.drop_column("approvals", "readers")
