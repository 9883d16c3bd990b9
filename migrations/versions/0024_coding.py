"""A coding agent works in repositories, and admins say in which.

Reversible: `downgrade` forgets the runs and the folders; what was merged stays where it was merged.
"""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    """Nothing has run yet."""
    texts = ("made", "diff", "diff_stat", "said", "failure")
    op.create_table(
        "coding_runs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("files", sa.JSON(), nullable=False),
        sa.Column("is_told", sa.Boolean(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("base", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in texts),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_coding_runs"),
        sa.ForeignKeyConstraint(["owner_id"], ["accounts.id"], name="fk_coding_runs_owner_id", ondelete="CASCADE"),
        sa.Index("ix_coding_runs_owner_id_started_at", "owner_id", "started_at"),
    )
    op.create_table(
        "coding_folders",
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("added_by", sa.Text(), nullable=False),
        sa.Column("added_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("folder", name="pk_coding_folders"),
    )


def downgrade() -> None:
    """Forget them."""
    op.drop_table("coding_folders")
    op.drop_table("coding_runs")
