"""What the server changes about its tools, for everybody. Columns, keys and indexes only."""

from datetime import datetime

from sqlalchemy import UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from cortex.storage.table import Table


class CounterTable(Table):
    """A number that grows with each change of something kept in memory: a process that knows it reads nothing else."""

    __tablename__ = "counters"
    name: Mapped[str] = mapped_column(primary_key=True)
    number: Mapped[int]


class ToolSettingTable(Table):
    """What was set for one tool; NULL = as it ships."""

    __tablename__ = "tool_settings"
    tool: Mapped[str] = mapped_column(primary_key=True)
    is_on: Mapped[bool | None]
    sending: Mapped[str | None]
    asks_first: Mapped[bool | None]
    description: Mapped[str | None]
    changed_by: Mapped[str]
    changed_at: Mapped[datetime]


class ToolWordTable(Table):
    """A phrase or an example that was added to a category, or an example that ships and was left out."""

    __tablename__ = "tool_words"
    __table_args__ = (UniqueConstraint("category", "kind", "text_key", "is_left_out"),)
    id: Mapped[str] = mapped_column(primary_key=True)
    category: Mapped[str]
    kind: Mapped[str]
    text: Mapped[str]
    text_key: Mapped[str]
    tools: Mapped[tuple[str, ...]]
    is_left_out: Mapped[bool]
    added_by: Mapped[str]
    added_at: Mapped[datetime]


class ToolCaseTable(Table):
    """A message with the tools that it must be given: the admin's own check of what was tuned."""

    __tablename__ = "tool_cases"
    id: Mapped[str] = mapped_column(primary_key=True)
    text: Mapped[str]
    role: Mapped[str]
    rank: Mapped[str]
    tools: Mapped[tuple[str, ...]]
    added_by: Mapped[str]
    added_at: Mapped[datetime]
