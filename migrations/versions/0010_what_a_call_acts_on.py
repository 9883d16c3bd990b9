"""What a call that may be run again acts on: found once, and kept with its intent until it has ended.

Reversible: `downgrade` forgets it; a call that is in the middle of its work then looks its target up anew.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """No call has any yet."""
    op.add_column("calls", sa.Column("acts_on", sa.JSON()))


def downgrade() -> None:
    """Take it away again."""
    op.drop_column("calls", "acts_on")
