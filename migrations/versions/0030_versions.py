"""A new try and an edit keep what they replace: turns form a tree, and each place in it has versions.

`parent_id` is the turn before in the same branch, "" for the first. Of a place's versions one is chosen; a turn is
dropped where it, or one before it in its branch, is not. Reversible: what was out of view stays hidden.
"""

from collections import defaultdict
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"

_events = sa.table(
    "events",
    *(sa.column(name, sa.Text()) for name in ("conversation_id", "kind", "turn_id")),
    sa.column("seq", sa.Integer()),
    sa.column("payload", sa.JSON()),
)
_turns = sa.table(
    "turns",
    *(sa.column(name, sa.Text()) for name in ("id", "conversation_id", "parent_id")),
    sa.column("ordinal", sa.Integer()),
    *(sa.column(name, sa.Boolean()) for name in ("is_dropped", "is_chosen")),
)


def upgrade() -> None:
    """Each turn follows the one before it; where turns were set aside, as the log says."""
    op.add_column("turns", sa.Column("parent_id", sa.Text(), nullable=False, server_default=""))
    op.add_column("turns", sa.Column("is_chosen", sa.Boolean(), nullable=False, server_default=sa.true()))
    op.execute(
        "UPDATE turns SET parent_id = COALESCE((SELECT p.id FROM turns AS p WHERE p.conversation_id = "
        "turns.conversation_id AND p.ordinal < turns.ordinal ORDER BY p.ordinal DESC LIMIT 1), '')"
    )
    connection = op.get_bind()
    found = connection.execute(sa.select(_turns.c.conversation_id).where(_turns.c.is_dropped).distinct())
    for conversation_id in [*found.scalars()]:
        _branch(connection, conversation_id)


def _branch(connection: sa.Connection, conversation_id: str) -> None:
    """Lay out one conversation as its log says; a turn that is hidden and not in the log stays hidden."""
    rows = connection.execute(
        sa.select(_turns.c.id, _turns.c.is_dropped)
        .where(_turns.c.conversation_id == conversation_id)
        .order_by(_turns.c.ordinal)
    ).all()
    dropped_ahead_of, aside = _drops(connection, conversation_id)
    path: list[str] = []
    in_view: dict[str, bool] = {"": True}
    for row in rows:
        path = [id for id in path if id not in dropped_ahead_of[row.id]]
        before = path if row.is_dropped else [id for id in path if in_view[id]]
        parent = before[-1] if before else ""
        is_chosen = not row.is_dropped or (row.id not in aside and not in_view[parent])
        in_view[row.id] = is_chosen and in_view[parent]
        path.append(row.id)
        connection.execute(_turns.update().where(_turns.c.id == row.id).values(parent_id=parent, is_chosen=is_chosen))


def _drops(connection: sa.Connection, conversation_id: str) -> tuple[dict[str, set[str]], set[str]]:
    """The turns that were set aside before each message, by the turn of that message; and those that were replaced."""
    events: sa.Select[Any] = (
        sa.select(_events.c.kind, _events.c.turn_id, _events.c.payload)
        .where(_events.c.conversation_id == conversation_id, _events.c.kind.in_(("message", "turn.drop")))
        .order_by(_events.c.seq)
    )
    gone: set[str] = set()
    ahead_of: dict[str, set[str]] = defaultdict(set)
    aside: set[str] = set()
    for event in connection.execute(events):
        if event.kind == "message":
            ahead_of[event.turn_id] = gone.copy()
        elif event.payload["turns"]:
            gone |= {*event.payload["turns"]}
            aside.add(event.payload["turns"][0])
    return ahead_of, aside


def downgrade() -> None:
    """Forget which version is which."""
    op.drop_column("turns", "is_chosen")
    op.drop_column("turns", "parent_id")
