"""Sealed secrets of the house itself.

Reversible: `downgrade` forgets them; browsers then have to switch push on again.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """The house has none yet; the next start makes what it needs."""
    op.create_table(
        "house_secrets",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("ciphertext", sa.LargeBinary(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_house_secrets"),
    )


def downgrade() -> None:
    """Take it all away again."""
    op.drop_table("house_secrets")
