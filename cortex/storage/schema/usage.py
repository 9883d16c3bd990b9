"""What model calls took, what may be spent, which models are given to whom. Columns, keys and indexes only."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from cortex.storage.table import Table, owner


class RoundTable(Table):
    """One model call. It names its turn without hanging on it: what was spent stays when a conversation goes.

    Narrow on purpose, with the receipt in another table: sums over 100,000 rounds read every row. `paid_by`: the admin
    whose shared model it was, "" for the person's own.
    """

    __tablename__ = "rounds"
    __table_args__ = (
        Index("ix_rounds_owner_id_created_at", "owner_id", "created_at"),
        Index("ix_rounds_created_at", "created_at"),
        Index("ix_rounds_conversation_id_created_at", "conversation_id", "created_at"),
        Index("ix_rounds_owner_id_endpoint_created_at", "owner_id", "endpoint", "created_at"),
    )
    turn_id: Mapped[str] = mapped_column(primary_key=True)
    round: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    owner_id: Mapped[str] = owner()
    conversation_id: Mapped[str]
    created_at: Mapped[datetime]
    state: Mapped[str]
    role: Mapped[str]
    channel: Mapped[str]
    job_id: Mapped[str]
    model: Mapped[str]
    endpoint: Mapped[str]
    paid_by: Mapped[str]
    total_tokens: Mapped[int]
    sent_tokens: Mapped[int]
    extra_tokens: Mapped[int]
    cut_role: Mapped[int]
    cut_mode: Mapped[int]
    cut_choice: Mapped[int]
    cut_budget: Mapped[int]
    cut_form: Mapped[int]
    request_tokens: Mapped[int]
    input_tokens: Mapped[int]
    output_tokens: Mapped[int]
    cached_tokens: Mapped[int]
    written_tokens: Mapped[int]
    cost_usd: Mapped[float | None]
    ms: Mapped[int | None]
    cache: Mapped[str]
    idle_s: Mapped[float | None]
    kept_tokens: Mapped[int]
    held_tokens: Mapped[int]
    held_usd: Mapped[float]
    held_until: Mapped[datetime | None]
    tools_digest: Mapped[str]
    system_digest: Mapped[str]
    history: Mapped[str]
    sent: Mapped[dict[str, Any]]


class BudgetTable(Table):
    """The limits of a day for a person, a role, a job or the whole server, and what happens then."""

    __tablename__ = "budgets"
    __table_args__ = (UniqueConstraint("kind", "subject"),)
    id: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str]
    subject: Mapped[str]
    limit_tokens: Mapped[int | None]
    limit_usd: Mapped[float | None]
    at_limit: Mapped[str]
    model: Mapped[str]
    changed_by: Mapped[str]
    changed_at: Mapped[datetime]


class TextTable(Table):
    """A text that went out with requests, kept once: system prompts, tool lists, names."""

    __tablename__ = "texts"
    owner_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True)
    digest: Mapped[str] = mapped_column(primary_key=True)
    text: Mapped[str]


class SharedModelTable(Table):
    """One model of an admin's, by its name there, given to one person, or to everybody with `person_id` "".

    The limits are for a day: of that person, or of each person who has no row of their own.
    """

    __tablename__ = "shared_models"
    owner_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True)
    model: Mapped[str] = mapped_column(primary_key=True)
    person_id: Mapped[str] = mapped_column(primary_key=True)
    limit_tokens: Mapped[int | None]
    limit_usd: Mapped[float | None]
    changed_at: Mapped[datetime]
