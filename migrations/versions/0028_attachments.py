"""What a person attached to a message stands with its turn.

Reversible: `downgrade` forgets which files came with which message; the files and the log stay.
"""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    """Nothing was attached to what was said before."""
    op.add_column("turns", sa.Column("attachments", sa.JSON(), nullable=False, server_default="[]"))


def downgrade() -> None:
    """Forget it."""
    op.drop_column("turns", "attachments")
