"""Tokens that let other programs in, and what they asked. Columns, keys and indexes only."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from cortex.storage.table import Table, owner


class ApiTokenTable(Table):
    """One program's token: `digest` of the token, `hint` its last characters. `tools` null: all of the role's.

    `is_own_words`: what the program sends was typed by its person. `is_pass_through`: it reaches the models alone.
    `warned_at`: when they were told that it ends soon.
    """

    __tablename__ = "api_tokens"
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    name: Mapped[str]
    digest: Mapped[str] = mapped_column(unique=True)
    hint: Mapped[str]
    role: Mapped[str]
    tools: Mapped[tuple[str, ...] | None]
    limit_tokens: Mapped[int | None]
    limit_usd: Mapped[float | None]
    per_minute: Mapped[int]
    wait_s: Mapped[int]
    is_own_words: Mapped[bool]
    is_pass_through: Mapped[bool]
    made_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    warned_at: Mapped[datetime | None]
    used_at: Mapped[datetime | None]


class ApiRequestTable(Table):
    """One request of a program. It names turn and conversation without hanging on them: what was spent stays.

    `thread`: a digest of all that was said up to its answer, "" before that was given. `parameters`: what tunes the
    answer, by name, as JSON texts.
    """

    __tablename__ = "api_requests"
    __table_args__ = (
        Index("ix_api_requests_token_id_at", "token_id", "at"),
        Index("ix_api_requests_token_id_thread", "token_id", "thread"),
    )
    turn_id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    token_id: Mapped[str] = mapped_column(ForeignKey("api_tokens.id", ondelete="CASCADE"))
    conversation_id: Mapped[str]
    model: Mapped[str]
    thread: Mapped[str]
    parameters: Mapped[dict[str, Any]]
    at: Mapped[datetime]
