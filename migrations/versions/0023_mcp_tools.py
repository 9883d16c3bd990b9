"""Tools of MCP servers are seen and allowed.

Reversible: `downgrade` forgets which were allowed; the servers themselves stay among the integrations.
"""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """No tool was seen yet."""
    op.create_table(
        "mcp_tools",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("server", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("seen", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("seen_digest", sa.Text(), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("allowed", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("allowed_digest", sa.Text(), nullable=False),
        sa.Column("allowed_by", sa.Text(), nullable=False),
        sa.Column("allowed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("words", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "server", "name", name="pk_mcp_tools"),
        sa.ForeignKeyConstraint(
            ["kind", "server"],
            ["integrations.kind", "integrations.name"],
            name="fk_mcp_tools_kind_server",
            ondelete="CASCADE",
        ),
    )


def downgrade() -> None:
    """Forget them."""
    op.drop_table("mcp_tools")
