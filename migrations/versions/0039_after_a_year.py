"""Indexes of the few rows that pages look for among very many: turns that live, chats that are pinned or deleted.

The two over the states of all turns go. No row is written; making the one of roles reads every turn once.
"""

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"


def upgrade() -> None:
    """Make the narrow ones and drop the wide ones."""
    living, deleted = sa.text("state IN ('queued', 'running', 'waiting')"), sa.text("deleted_at IS NOT NULL")
    op.create_index(
        "ix_turns_living", "turns", ["conversation_id", "state"], sqlite_where=living, postgresql_where=living
    )
    op.create_index("ix_turns_role_owner_id", "turns", ["role", "owner_id"])
    op.create_index(
        "ix_conversations_pinned",
        "conversations",
        ["owner_id", "updated_at"],
        sqlite_where=sa.text("is_pinned = 1"),
        postgresql_where=sa.text("is_pinned"),
    )
    op.create_index(
        "ix_conversations_deleted",
        "conversations",
        ["owner_id", "deleted_at"],
        sqlite_where=deleted,
        postgresql_where=deleted,
    )
    op.drop_index("ix_turns_state", "turns")
    op.drop_index("ix_turns_conversation_id_state", "turns")


def downgrade() -> None:
    """Make the wide ones again."""
    op.create_index("ix_turns_state", "turns", ["state"])
    op.create_index("ix_turns_conversation_id_state", "turns", ["conversation_id", "state"])
    op.drop_index("ix_conversations_deleted", "conversations")
    op.drop_index("ix_conversations_pinned", "conversations")
    op.drop_index("ix_turns_role_owner_id", "turns")
    op.drop_index("ix_turns_living", "turns")
