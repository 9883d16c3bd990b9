"""A job can be started by a web address.

Reversible: `downgrade` forgets the addresses and what came by them; the runs that they began stay.
"""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """No job has an address yet."""
    op.create_table(
        "hooks",
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("needs_secret", sa.Boolean(), nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("taken", sa.Integer(), nullable=False),
        sa.Column("taken_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("refused", sa.Integer(), nullable=False),
        sa.Column("refused_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("because", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", name="pk_hooks"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_hooks_job_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["owner_id"], ["accounts.id"], name="fk_hooks_owner_id", ondelete="CASCADE"),
        sa.UniqueConstraint("address", name="uq_hooks_address"),
    )
    op.create_table(
        "hook_deliveries",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("slot_id", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_hook_deliveries"),
        sa.ForeignKeyConstraint(["owner_id"], ["accounts.id"], name="fk_hook_deliveries_owner_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_hook_deliveries_job_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["slot_id"], ["slots.id"], name="fk_hook_deliveries_slot_id", ondelete="CASCADE"),
        sa.UniqueConstraint("slot_id", name="uq_hook_deliveries_slot_id"),
        sa.Index("ix_hook_deliveries_job_id_at", "job_id", "at"),
    )


def downgrade() -> None:
    """Forget the addresses; their secrets are sealed rows under names that nobody else has."""
    op.drop_table("hook_deliveries")
    op.drop_table("hooks")
    op.execute("DELETE FROM secrets WHERE name LIKE 'hook:%'")
