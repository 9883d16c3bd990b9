"""An admin's model can be given to everybody or to named people, and the ledger says whose key paid for a call.

Reversible: `downgrade` forgets who was given what, and whose key paid; what was spent stays.
"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Nothing is shared yet, and everybody paid for their own calls."""
    op.create_table(
        "shared_models",
        sa.Column("owner_id", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("limit_tokens", sa.Integer(), nullable=True),
        sa.Column("limit_usd", sa.Double(), nullable=True),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["owner_id"], ["accounts.id"], name="fk_shared_models_owner_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("owner_id", "model", "person_id", name="pk_shared_models"),
    )
    op.add_column("rounds", sa.Column("paid_by", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    """Forget the gifts, and whose key paid."""
    op.drop_table("shared_models")
    op.drop_column("rounds", "paid_by")
