"""A tool's description as this house words it, and the order in which runs are listed.

Reversible: `downgrade` forgets the house's own descriptions.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Every tool keeps the words that it ships with."""
    op.add_column("tool_settings", sa.Column("description", sa.Text()))
    op.create_index("ix_turns_owner_id_created_at", "turns", ["owner_id", "created_at"])
    op.create_index("ix_turns_created_at", "turns", ["created_at"])


def downgrade() -> None:
    """Take it all away again."""
    op.drop_index("ix_turns_created_at", "turns")
    op.drop_index("ix_turns_owner_id_created_at", "turns")
    op.drop_column("tool_settings", "description")
