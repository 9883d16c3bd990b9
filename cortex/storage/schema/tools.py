"""What admins set of tools, and what use teaches of them. Columns, keys and indexes only."""

from datetime import datetime
from typing import Any

from sqlalchemy import Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from cortex.storage.table import Table, in_turn, owner


class CounterTable(Table):
    """A number that grows with each change of something kept in memory: a process that knows it reads nothing else."""

    __tablename__ = "counters"
    name: Mapped[str] = mapped_column(primary_key=True)
    number: Mapped[int]


class ToolSettingTable(Table):
    """The admin's settings of one tool; NULL = as it ships."""

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


class LearningCaseTable(Table):
    """A turn whose tools were not the ones that it needed. `text` stands here with its writer's consent alone.

    `unneeded`: tools that its person reported as not needed.
    """

    __tablename__ = "learning_cases"
    __table_args__ = (
        UniqueConstraint("turn_id"),
        Index("ix_learning_cases_created_at", "created_at"),
        Index("ix_learning_cases_owner_id", "owner_id"),
    )
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    turn_id: Mapped[str] = in_turn()
    role: Mapped[str]
    needed: Mapped[dict[str, Any]]
    called: Mapped[tuple[str, ...]]
    unused: Mapped[tuple[str, ...]]
    unneeded: Mapped[tuple[str, ...]] = mapped_column(default=tuple)
    text_hash: Mapped[str]
    text: Mapped[str | None]
    created_at: Mapped[datetime]


class LearningAnswerTable(Table):
    """An admin's answer to a wording: the word added to a tool, a report agreed to, or nothing (`kind` empty)."""

    __tablename__ = "learning_answers"
    __table_args__ = (UniqueConstraint("tool", "text_hash"),)
    id: Mapped[str] = mapped_column(primary_key=True)
    tool: Mapped[str]
    text_hash: Mapped[str]
    kind: Mapped[str]
    category: Mapped[str]
    text: Mapped[str]
    answered_by: Mapped[str]
    answered_at: Mapped[datetime]


class RefitTable(Table):
    """A fitted model of this server, with what it was made from and how it was judged."""

    __tablename__ = "refits"
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    base: Mapped[str]
    digest: Mapped[str]
    weights: Mapped[bytes]
    report: Mapped[dict[str, Any]]
    is_in_force: Mapped[bool]
    made_by: Mapped[str]
    made_at: Mapped[datetime]
