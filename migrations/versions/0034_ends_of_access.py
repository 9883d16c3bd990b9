"""What a program sends counts as external content unless its token says otherwise; a notice before a token ends.

Tokens of today become those of programs that send external content, and their people are told once on the page.

Reversible: `downgrade` forgets all of it; tokens keep their end.
"""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"

TOLD = "tokens.became_outside"
TOKENS = sa.table("api_tokens", sa.column("owner_id", sa.Text()))
PREFERENCES = sa.table(
    "preferences",
    sa.column("owner_id", sa.Text()),
    sa.column("key", sa.Text()),
    sa.column("value", sa.JSON()),
    sa.column("updated_at", sa.DateTime(timezone=True)),
)


def upgrade() -> None:
    """No token of today says that what its program sends is its person's own."""
    op.add_column("api_tokens", sa.Column("is_own_words", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("api_tokens", sa.Column("warned_at", sa.DateTime(timezone=True), nullable=True))
    owners = sa.select(TOKENS.c.owner_id).distinct().subquery()
    value = sa.literal({"value": True}, sa.JSON())
    told = sa.select(owners.c.owner_id, sa.literal(TOLD), value, sa.func.now())
    op.execute(sa.insert(PREFERENCES).from_select(["owner_id", "key", "value", "updated_at"], told))


def downgrade() -> None:
    """Forget it."""
    op.execute(sa.delete(PREFERENCES).where(PREFERENCES.c.key == TOLD))
    op.drop_column("api_tokens", "warned_at")
    op.drop_column("api_tokens", "is_own_words")
