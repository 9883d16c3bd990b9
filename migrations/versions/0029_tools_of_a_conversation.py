"""A person chooses tools for one conversation, and reports those that were not needed.

Reversible: `downgrade` forgets both.
"""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    """Nothing is chosen and nothing reported yet."""
    op.add_column("conversations", sa.Column("tool_choices", sa.JSON(), nullable=False, server_default="{}"))
    op.add_column("learning_cases", sa.Column("unneeded", sa.JSON(), nullable=False, server_default="[]"))


def downgrade() -> None:
    """Leave the choice to the planner, and what was reported out of the cases."""
    op.drop_column("learning_cases", "unneeded")
    op.drop_column("conversations", "tool_choices")
