"""The audit log's chain is keyed: every row that holds is hashed again, with the key that the secret key makes.

From the first that does not hold all stay as they are: `cortex audit verify` names it. The new head is kept before the
commit, so a kill in between is made good by the next start. Where one is kept already it stays, and nothing past it is
keyed: who can write to the database could say that its log had no key yet. `downgrade` forgets key and head.
"""

import hashlib
import hmac
import json
from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import context, op

from cortex.storage.audit_head import BEGINNING, Head

revision = "0012"
down_revision = "0011"

STRIDE = 1000
REFUSED = "BEGIN SELECT RAISE(ABORT, 'audit rows are never changed or deleted'); END"


def upgrade() -> None:
    """Key what holds."""
    head = context.config.attributes.get("audit_head")
    kept = head.read() if head else None
    last = _rehash(None, head.key if head else b"", upto=kept)
    if head is not None and kept is None:
        head.start(last)


def downgrade() -> None:
    """Take the key away."""
    head = context.config.attributes.get("audit_head")
    _rehash(head.key if head else b"", None)
    if head is not None:
        head.forget()


def _rehash(old: bytes | None, new: bytes | None, *, upto: Head | None = None) -> Head:
    """Put the hashes of one key (None: of none) in the place of another's, row by row; the last row that was."""
    audit = sa.table("audit", *map(sa.column, ("number", "at", "actor", "action", "subject", "detail")))
    audit.append_column(sa.column("previous_hash"))
    audit.append_column(sa.column("hash"))
    audit.c.at.type = sa.DateTime(timezone=True)
    connection, before, after = op.get_bind(), BEGINNING, BEGINNING
    _allow_changes()
    while True:
        rows = connection.execute(
            sa.select(audit).where(audit.c.number > before.number).order_by(audit.c.number).limit(STRIDE)
        ).all()
        for row in rows:
            said = [row.number, _moment(row.at), row.actor, row.action, row.subject, row.detail]
            is_whole = (row.number, row.previous_hash) == (before.number + 1, before.hash)
            is_past = upto is not None and row.number > upto.number
            if is_past or not is_whole or row.hash != _hash(old, before.hash, said):
                _refuse_changes()
                return after
            fresh = _hash(new, after.hash, said)
            change = audit.update().where(audit.c.number == row.number)
            connection.execute(change.values(previous_hash=after.hash, hash=fresh))
            before, after = Head(number=row.number, hash=row.hash), Head(number=row.number, hash=fresh)
        if len(rows) < STRIDE:
            _refuse_changes()
            return after


def _hash(key: bytes | None, previous: str, said: list[object]) -> str:
    text = json.dumps([previous, *said]).encode()
    return hashlib.sha256(text).hexdigest() if key is None else hmac.new(key, text, "sha256").hexdigest()


def _moment(at: datetime) -> str:
    return (at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)).isoformat()


def _allow_changes() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE audit DISABLE TRIGGER USER")
        return
    for change in ("update", "delete"):
        op.execute(f"DROP TRIGGER IF EXISTS audit_no_{change}")


def _refuse_changes() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE audit ENABLE TRIGGER USER")
        return
    for change in ("UPDATE", "DELETE"):
        op.execute(f"CREATE TRIGGER audit_no_{change.lower()} BEFORE {change} ON audit {REFUSED}")
