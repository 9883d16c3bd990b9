"""A request for approval knows when its person is to be notified, and the turn in which it went on after its own.

Reversible: `downgrade` forgets both; requests of turns that have ended can then not be answered any more.
"""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    """Of the requests that are there the person was notified, or had the chat open: nothing is sent anew."""
    op.add_column("approvals", sa.Column("notify_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("approvals", sa.Column("continued_by", sa.Text(), nullable=True))
    op.create_index("ix_approvals_state_expires_at", "approvals", ["state", "expires_at"])


def downgrade() -> None:
    """Forget both. What waits without a turn of its own is over."""
    op.execute(
        "UPDATE approvals SET state = 'expired' WHERE state = 'asked' AND turn_id IN "
        "(SELECT id FROM turns WHERE state NOT IN ('queued', 'running', 'waiting'))"
    )
    op.drop_index("ix_approvals_state_expires_at", "approvals")
    op.drop_column("approvals", "continued_by")
    op.drop_column("approvals", "notify_at")
