"""A conversation, and each message in it, may name the model that is asked first; "" leaves that to the role.

Reversible: `downgrade` leaves it to the role everywhere.
"""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    """The role says it, as before."""
    for table in ("conversations", "turns"):
        op.add_column(table, sa.Column("model", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    """Forget what was chosen."""
    for table in ("turns", "conversations"):
        op.drop_column(table, "model")
