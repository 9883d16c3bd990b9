"""Settings of the server are changed on a page.

Reversible: `downgrade` forgets them with what was sealed for them; the environment is as it was.
"""

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"


def upgrade() -> None:
    """None is set there yet."""
    op.create_table(
        "server_settings",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=True),
        sa.Column("before", sa.Text(), nullable=True),
        sa.Column("set_by", sa.Text(), nullable=False),
        sa.Column("set_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("is_on_trial", sa.Boolean(), nullable=False),
        sa.Column("trial_ends_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("note", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_server_settings"),
    )


def downgrade() -> None:
    """Forget them and what was sealed for them."""
    op.drop_table("server_settings")
    op.execute("DELETE FROM house_secrets WHERE name LIKE 'setting:%'")
