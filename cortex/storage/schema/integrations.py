"""What admins set up of other systems, MCP tools, runs of coding agents. Secrets are sealed rows elsewhere."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKeyConstraint, Index
from sqlalchemy.orm import Mapped, mapped_column

from cortex.storage.table import Table, owner


class IntegrationTable(Table):
    """One system: its kind, and its name where there may be several of a kind ("" = the only one).

    `roles`, `people`: who may use it, () = every role, everybody. `version` grows with each change of what is set.
    """

    __tablename__ = "integrations"
    kind: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    settings: Mapped[dict[str, Any]]
    is_on: Mapped[bool]
    roles: Mapped[tuple[str, ...]]
    people: Mapped[tuple[str, ...]]
    version: Mapped[int]
    changed_by: Mapped[str]
    changed_at: Mapped[datetime]
    worked_at: Mapped[datetime | None]
    failed_at: Mapped[datetime | None]
    failure: Mapped[str]


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
    allowed_digest: Mapped[str] = mapped_column(default="")
    allowed_by: Mapped[str] = mapped_column(default="")
    allowed_at: Mapped[datetime | None]
    words: Mapped[str] = mapped_column(default="")


class CodingRunTable(Table):
    """A run. `base`: the commit at which it began; `made`: the newest one that it made, "" = none.

    `seen_at`: when the process that works on it said so last. `failure`: why it is no success; `said`: what the agent
    wrote, its end.
    """

    __tablename__ = "coding_runs"
    __table_args__ = (Index("ix_coding_runs_owner_id_started_at", "owner_id", "started_at"),)
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    repository: Mapped[str]
    folder: Mapped[str]
    message: Mapped[str]
    files: Mapped[tuple[str, ...]]
    is_told: Mapped[bool]
    state: Mapped[str] = mapped_column(default="running")
    base: Mapped[str]
    made: Mapped[str] = mapped_column(default="")
    diff: Mapped[str] = mapped_column(default="")
    diff_stat: Mapped[str] = mapped_column(default="")
    said: Mapped[str] = mapped_column(default="")
    failure: Mapped[str] = mapped_column(default="")
    started_at: Mapped[datetime]
    seen_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]


class CodingFolderTable(Table):
    """A folder in which coding agents may work, besides those of the card."""

    __tablename__ = "coding_folders"
    folder: Mapped[str] = mapped_column(primary_key=True)
    added_by: Mapped[str]
    added_at: Mapped[datetime]
