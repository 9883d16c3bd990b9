"""Plans are packed with a dictionary, a tenth of what they took; events of a turn are found from its message.

The rows that are there stay as they are: new ones are written packed, and older ones are packed one after the other
while Cortex runs (`storage/plans.py: AllPlansRepository.pack_older`). Payloads of new events leave out their turn.
Reversible: `downgrade` writes all of them as the version before reads them, each row once, some at a time.
"""

import base64
import json
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

from cortex.storage.event_rows import at_length
from cortex.storage.packing import unpack

revision = "0038"
down_revision = "0037"

AT_ONCE = 500

PLANS = sa.table(
    "plans",
    sa.column("turn_id", sa.Text()),
    sa.column("round", sa.Integer()),
    sa.column("receipt", sa.JSON()),
    sa.column("given", sa.JSON()),
    sa.column("packed", sa.LargeBinary()),
)
EVENTS = sa.table(
    "events",
    sa.column("conversation_id", sa.Text()),
    sa.column("seq", sa.Integer()),
    sa.column("payload", sa.JSON()),
    sa.column("turn_id", sa.Text()),
)


def upgrade() -> None:
    """A column more, and a narrower index: no row is written."""
    op.add_column("plans", sa.Column("packed", sa.LargeBinary(), nullable=True))
    message = sa.text("kind = 'message'")
    op.create_index("ix_events_turn_id", "events", ["turn_id"], sqlite_where=message, postgresql_where=message)
    op.drop_index("ix_events_conversation_id_turn_id", "events")


def downgrade() -> None:
    """Unpack the plans and write the events at length; a plan that is damaged keeps an empty receipt."""
    for plans in _rows(PLANS, ("turn_id", "round"), ("", -1), PLANS.c.packed, PLANS.c.packed.is_not(None)):
        _write(PLANS, [_as_before(*row) for row in plans])
    for events in _rows(EVENTS, ("conversation_id", "seq"), ("", -1), EVENTS.c.payload, EVENTS.c.turn_id.is_not(None)):
        _write(EVENTS, [_at_length(*row) for row in events])
    op.create_index("ix_events_conversation_id_turn_id", "events", ["conversation_id", "turn_id"])
    op.drop_index("ix_events_turn_id", "events")
    op.drop_column("plans", "packed")


def _rows(
    table: sa.TableClause, names: Sequence[str], last: Sequence[Any], column: Any, kept: sa.ColumnElement[bool]
) -> Iterator[Sequence[Any]]:
    """Key, this column and, of events, their turn: in the order of the keys, from where the last ones ended."""
    key = [table.c[name] for name in names]
    more = [table.c.turn_id] if "turn_id" not in names else []
    while True:
        later = sa.tuple_(*key) > sa.tuple_(*(sa.literal(value) for value in last))
        some = sa.select(*key, column, *more).where(kept, later).order_by(*key).limit(AT_ONCE)
        rows = op.get_bind().execute(some).all()
        if not rows:
            return
        yield rows
        last = rows[-1][:2]


def _write(table: sa.TableClause, rows: list[dict[str, Any]]) -> None:
    key = [name for name in rows[0] if name.startswith("its_")]
    change = sa.update(table).where(*(table.c[name.removeprefix("its_")] == sa.bindparam(name) for name in key))
    op.get_bind().execute(change, rows)


def _at_length(conversation_id: str, seq: int, payload: dict[str, Any], turn_id: str) -> dict[str, Any]:
    return {"its_conversation_id": conversation_id, "its_seq": seq, "payload": at_length(payload, turn_id)}


def _as_before(turn_id: str, number: int, packed: bytes) -> dict[str, Any]:
    try:
        receipt, given = unpack(packed)
    except ValueError:
        receipt, given = {}, {}
    return {"its_turn_id": turn_id, "its_round": number, "receipt": _zlib(receipt), "given": _zlib(given)}


def _zlib(value: dict[str, Any]) -> dict[str, str]:
    return {"zlib": base64.b64encode(zlib.compress(json.dumps(value).encode())).decode()}
