"""What is stopped until somebody lifts it: everybody's work, one person's, or the tools that reach outside.

Reversible: `downgrade` lifts all of it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Nothing is stopped yet."""
    op.create_table(
        "halts",
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("by_id", sa.Text(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("scope", name="pk_halts"),
    )


def downgrade() -> None:
    """Take it away again."""
    op.drop_table("halts")
