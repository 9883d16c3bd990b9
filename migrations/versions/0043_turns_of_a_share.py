"""A share names the turns that its reader sees: up to a place, another version of a message would be among them.

Reversible: `downgrade` shares up to the last of them again.
"""

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"

SHARES = sa.table(
    "chat_shares",
    *map(sa.column, ("id", "conversation_id", "turn_id", "upto_ordinal")),
    sa.column("turn_ids", sa.JSON()),
)
TURNS = sa.table(
    "turns",
    *map(sa.column, ("id", "conversation_id", "ordinal", "ended_at")),
    sa.column("is_dropped", sa.Boolean()),
)


def upgrade() -> None:
    """Those that can be read today."""
    op.add_column("chat_shares", sa.Column("turn_ids", sa.JSON(), nullable=False, server_default="[]"))
    bind = op.get_bind()
    shares = sa.select(SHARES.c.id, SHARES.c.conversation_id, SHARES.c.turn_id, SHARES.c.upto_ordinal)
    for share in bind.execute(shares).all():
        of_share = (TURNS.c.conversation_id == share.conversation_id, TURNS.c.ordinal <= share.upto_ordinal)
        seen = sa.select(TURNS.c.id).where(*of_share, ~TURNS.c.is_dropped, TURNS.c.ended_at.is_not(None))
        ids = bind.execute(seen.order_by(TURNS.c.ordinal)).scalars().all()
        kept = [id for id in ids if share.turn_id in ("", id)]
        op.execute(sa.update(SHARES).where(SHARES.c.id == share.id).values(turn_ids=kept))
    op.drop_column("chat_shares", "upto_ordinal")


def downgrade() -> None:
    """Up to the last of them."""
    op.add_column("chat_shares", sa.Column("upto_ordinal", sa.Integer(), nullable=False, server_default="0"))
    bind = op.get_bind()
    for share in bind.execute(sa.select(SHARES.c.id, SHARES.c.turn_ids)).all():
        last = sa.select(sa.func.coalesce(sa.func.max(TURNS.c.ordinal), 0)).where(TURNS.c.id.in_(share.turn_ids))
        op.execute(sa.update(SHARES).where(SHARES.c.id == share.id).values(upto_ordinal=last.scalar_subquery()))
    op.drop_column("chat_shares", "turn_ids")
