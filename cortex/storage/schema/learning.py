"""What use teaches: cases of what a message needed, the admins' answers to them, refitted models. Columns and keys."""

from datetime import datetime
from typing import Any

from sqlalchemy import Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from cortex.storage.table import Table, in_turn, owner


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
    unneeded: Mapped[tuple[str, ...]]
    text_hash: Mapped[str]
    text: Mapped[str | None]
    created_at: Mapped[datetime]


class LearningAnswerTable(Table):
    """What an admin made of a wording: the word added to a tool, a report agreed to, or nothing (`kind` empty)."""

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
