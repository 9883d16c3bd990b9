"""A conversation says whether what Cortex remembers of its person is used in it.

Reversible: `downgrade` forgets where it was switched off; what stood there is marked as read first, so that an older
version learns nothing from it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """It is used everywhere, as before."""
    op.add_column("conversations", sa.Column("uses_memory", sa.Boolean(), nullable=False, server_default=sa.true()))


def downgrade() -> None:
    """Use it everywhere, for what is said from now on."""
    op.execute(
        "UPDATE distill_marks SET upto_ordinal = (SELECT turn_count FROM conversations "
        "WHERE conversations.id = distill_marks.conversation_id) "
        "WHERE conversation_id IN (SELECT id FROM conversations WHERE NOT uses_memory)"
    )
    op.execute(
        "INSERT INTO distill_marks (conversation_id, owner_id, upto_ordinal, tries, outcome, claimed_until, at) "
        "SELECT id, owner_id, turn_count, 0, '', NULL, updated_at FROM conversations WHERE NOT uses_memory "
        "AND id NOT IN (SELECT conversation_id FROM distill_marks)"
    )
    op.drop_column("conversations", "uses_memory")
