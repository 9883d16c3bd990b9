"""The tools of MCP servers, as they were seen and as they were allowed. Columns, keys and indexes only."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKeyConstraint
from sqlalchemy.orm import Mapped, mapped_column

from cortex.storage.table import Table


class McpToolTable(Table):
    """A tool of one server. `seen`: as the server listed it last, NULL = not any more.

    `allowed`: as it was when an admin allowed it, NULL = off. It is in force while both have the same digest. `words`:
    the admin's own in place of the server's description. `kind` is that of its row among the integrations.
    """

    __tablename__ = "mcp_tools"
    __table_args__ = (
        ForeignKeyConstraint(["kind", "server"], ["integrations.kind", "integrations.name"], ondelete="CASCADE"),
    )
    kind: Mapped[str] = mapped_column(primary_key=True)
    server: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    seen: Mapped[dict[str, Any] | None]
    seen_digest: Mapped[str]
    seen_at: Mapped[datetime]
    allowed: Mapped[dict[str, Any] | None]
    allowed_digest: Mapped[str]
    allowed_by: Mapped[str]
    allowed_at: Mapped[datetime | None]
    words: Mapped[str]
