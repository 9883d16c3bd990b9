"""Settings of the server are changed on a page; the coding agent's repositories are one list.

Reversible: `downgrade` forgets the settings with what was sealed for them; the environment is as it was.
"""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"

NAMED = ("cortex", "aether_api", "aether_frontend", "aether_container")  # each had a field of its own


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
    _rewrite(_joined)


def downgrade() -> None:
    """Forget them and what was sealed for them."""
    _rewrite(_apart)
    op.drop_table("server_settings")
    op.execute("DELETE FROM house_secrets WHERE name LIKE 'setting:%'")


def _rewrite(change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Change what is set of the coding agent, where an admin set it up."""
    table = sa.table("integrations", sa.column("kind"), sa.column("name"), sa.column("settings", sa.JSON()))
    rows = op.get_bind().execute(sa.select(table.c.name, table.c.settings).where(table.c.kind == "coding")).all()
    for name, settings in rows:
        where = (table.c.kind == "coding", table.c.name == name)
        op.execute(sa.update(table).where(*where).values(settings=change(settings)))


def _joined(settings: dict[str, Any]) -> dict[str, Any]:
    own = [f"{name}={settings[name]}" for name in NAMED if settings.get(name)]
    kept = {name: value for name, value in settings.items() if name not in (*NAMED, "others")}
    return {**kept, "repositories": [*own, *settings.get("others", ())]}


def _apart(settings: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in settings.items() if name != "repositories"}
    return {**kept, "others": list(settings.get("repositories", ()))}
