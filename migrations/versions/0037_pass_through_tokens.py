"""A token can pass a program's requests through to the models; a request keeps what tunes its answer.

Reversible: `downgrade` forgets both. Pass-through tokens end then: in the version before they would reach tools.
"""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"

TOKENS = sa.table(
    "api_tokens",
    sa.column("is_pass_through", sa.Boolean()),
    sa.column("made_at", sa.DateTime(timezone=True)),
    sa.column("expires_at", sa.DateTime(timezone=True)),
)


def upgrade() -> None:
    """Tokens and requests of today are without."""
    op.add_column("api_tokens", sa.Column("is_pass_through", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("api_requests", sa.Column("parameters", sa.JSON(), nullable=False, server_default="{}"))


def downgrade() -> None:
    """Forget both."""
    op.execute(sa.update(TOKENS).where(TOKENS.c.is_pass_through).values(expires_at=TOKENS.c.made_at))
    op.drop_column("api_requests", "parameters")
    op.drop_column("api_tokens", "is_pass_through")
