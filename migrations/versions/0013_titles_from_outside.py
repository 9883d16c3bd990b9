"""Titles of conversations say whether they were made of words from outside, for who lists them.

Reversible: `downgrade` forgets it. Of those from before, what a model may have named counts so: jobs' and agents'
conversations and branches.
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Mark what a model may have named."""
    op.add_column(
        "conversations", sa.Column("is_title_tainted", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    rows = sa.table(
        "conversations", *map(sa.column, ("source", "parent_id")), sa.column("is_title_tainted", sa.Boolean())
    )
    named = rows.c.source.in_(("job", "agent")) | rows.c.parent_id.is_not(None)
    op.execute(rows.update().where(named).values(is_title_tainted=True))


def downgrade() -> None:
    """Take it away again."""
    op.drop_column("conversations", "is_title_tainted")
