"""Runs of coding agents, and the folders in which they may work. Columns, keys and indexes only."""

from datetime import datetime

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from cortex.storage.table import Table, owner


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
    state: Mapped[str]
    base: Mapped[str]
    made: Mapped[str]
    diff: Mapped[str]
    diff_stat: Mapped[str]
    said: Mapped[str]
    failure: Mapped[str]
    started_at: Mapped[datetime]
    seen_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]


class CodingFolderTable(Table):
    """A folder in which coding agents may work, besides those of the card."""

    __tablename__ = "coding_folders"
    folder: Mapped[str] = mapped_column(primary_key=True)
    added_by: Mapped[str]
    added_at: Mapped[datetime]
