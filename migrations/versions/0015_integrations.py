"""Outside systems are set up on a page: settings, who may use them, how the last calls went.

Reversible: `downgrade` forgets all of it; the sealed secrets of these systems are deleted with it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """None is set up yet."""
    op.create_table(
        "integrations",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("is_on", sa.Boolean(), nullable=False),
        sa.Column("roles", sa.JSON(), nullable=False),
        sa.Column("people", sa.JSON(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("changed_by", sa.Text(), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("worked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("failed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("failure", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "name", name="pk_integrations"),
    )


def downgrade() -> None:
    """Forget the systems and what was sealed for them."""
    op.drop_table("integrations")
    op.execute("DELETE FROM house_secrets WHERE name LIKE 'integration:%'")
