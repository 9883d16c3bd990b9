"""Runs the Alembic migrations of `migrations/` on an open connection. Loaded late: only when tables may move."""

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text

from cortex.storage.audit_head import AuditHead
from cortex.storage.revisions import FOLDER, current

_LOCK = 0x0C07_7E30  # any number: two processes that start at once migrate one after the other


def move_to(connection: Connection, revision: str, audit_head: AuditHead | None = None) -> str:
    """Migrate up or down to `revision` inside the connection's transaction; what then stands ("" = nothing).

    audit_head: the key of the audit log and where its head is kept, for the migration that keys the log.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    before = current(connection)
    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["audit_head"] = audit_head
    is_downward = revision == "base" or (revision.isdigit() and revision < before)
    (command.downgrade if is_downward else command.upgrade)(config, revision)
    return current(connection)
