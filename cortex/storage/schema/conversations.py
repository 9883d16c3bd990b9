"""Conversations with their log, turns, messages, plans and summaries. Columns, keys and indexes only."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from cortex.base.attachments import Attachment
from cortex.storage.table import Serial, Table, in_conversation, owner


class ConversationTable(Table):
    """A conversation; `seq` and `turn_count` are the counters that number its events and turns without gaps.

    `title_words`: its title as it is searched, with a blank before each word.
    """

    __tablename__ = "conversations"
    __table_args__ = (
        Index("ix_conversations_owner_id_updated_at", "owner_id", "updated_at"),
        Index(
            "ix_conversations_pinned",
            "owner_id",
            "updated_at",
            sqlite_where=text("is_pinned = 1"),
            postgresql_where=text("is_pinned"),
        ),
        Index(
            "ix_conversations_deleted",
            "owner_id",
            "deleted_at",
            sqlite_where=text("deleted_at IS NOT NULL"),
            postgresql_where=text("deleted_at IS NOT NULL"),
        ),
    )
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    title: Mapped[str]
    title_words: Mapped[str]
    is_title_auto: Mapped[bool]
    is_title_tainted: Mapped[bool]
    role: Mapped[str]
    mode: Mapped[str]
    recipe: Mapped[str] = mapped_column(default="")
    model: Mapped[str] = mapped_column(default="")
    max_rounds: Mapped[int | None]
    is_pinned: Mapped[bool] = mapped_column(default=False)
    uses_memory: Mapped[bool] = mapped_column(default=True)
    tool_choices: Mapped[dict[str, Any]] = mapped_column(default=dict)
    source: Mapped[str] = mapped_column(default="chat")
    parent_id: Mapped[str | None]
    seq: Mapped[int] = mapped_column(default=0)
    turn_count: Mapped[int] = mapped_column(default=0)
    selection_state: Mapped[dict[str, Any]] = mapped_column(default=dict)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    archived_at: Mapped[datetime | None]
    deleted_at: Mapped[datetime | None]


class EventTable(Table):
    """A row of a conversation's log."""

    __tablename__ = "events"
    __table_args__ = (
        # One event of each turn, from which the others are found: an index of all of them takes a sixth of the log.
        Index(
            "ix_events_turn_id",
            "turn_id",
            sqlite_where=text("kind = 'message'"),
            postgresql_where=text("kind = 'message'"),
        ),
    )
    conversation_id: Mapped[str] = mapped_column(ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    owner_id: Mapped[str] = owner()
    kind: Mapped[str]
    payload: Mapped[dict[str, Any]]
    turn_id: Mapped[str | None]
    at: Mapped[datetime]


class TurnTable(Table):
    """A user's message until its answer."""

    __tablename__ = "turns"
    __table_args__ = (
        UniqueConstraint("conversation_id", "ordinal"),
        # Of the few that live: who looks for those says `LIVING_HERE`, which is this condition to the letter.
        Index(
            "ix_turns_living",
            "conversation_id",
            "state",
            sqlite_where=text("state IN ('queued', 'running', 'waiting')"),
            postgresql_where=text("state IN ('queued', 'running', 'waiting')"),
        ),
        Index("ix_turns_role_owner_id", "role", "owner_id"),
        Index("ix_turns_owner_id_created_at", "owner_id", "created_at"),
        Index("ix_turns_created_at", "created_at"),
    )
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    conversation_id: Mapped[str] = in_conversation()
    ordinal: Mapped[int]
    parent_id: Mapped[str]
    is_chosen: Mapped[bool] = mapped_column(default=True)
    state: Mapped[str] = mapped_column(default="queued")
    text: Mapped[str]
    mode: Mapped[str]
    max_rounds: Mapped[int | None]
    role: Mapped[str]
    channel: Mapped[str] = mapped_column(default="chat")
    job_id: Mapped[str] = mapped_column(default="")
    model: Mapped[str] = mapped_column(default="")
    models: Mapped[tuple[str, ...]] = mapped_column(default=tuple)
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    rounds: Mapped[int] = mapped_column(default=0)
    error: Mapped[str] = mapped_column(default="")
    is_dropped: Mapped[bool] = mapped_column(default=False)
    taken_by: Mapped[str | None]
    taken_round: Mapped[int | None]
    is_tainted: Mapped[bool]
    has_read_outside: Mapped[bool]
    has_read_private: Mapped[bool]
    stop_asked_at: Mapped[datetime | None]
    attachments: Mapped[tuple[Attachment, ...]] = mapped_column(default=tuple, server_default="[]")


class MessageTable(Table):
    """A finished message of a turn, in the order of `position`; `words` is what the search index reads."""

    __tablename__ = "messages"
    __table_args__ = (Index("ix_messages_conversation_id_position", "conversation_id", "position"),)
    position: Mapped[int] = mapped_column(Serial, primary_key=True, autoincrement=True)
    id: Mapped[str] = mapped_column(unique=True)
    owner_id: Mapped[str] = owner()
    conversation_id: Mapped[str] = in_conversation()
    turn_id: Mapped[str] = mapped_column(ForeignKey("turns.id", ondelete="CASCADE"), index=True)
    round: Mapped[int]
    speaker: Mapped[str]
    body: Mapped[dict[str, Any]]
    words: Mapped[str]
    is_tainted: Mapped[bool]
    created_at: Mapped[datetime]


class PlanTable(Table):
    """The content of one round: its receipt, and what its plan was made from (`services/tools/replays.py`).

    `packed`: both, as `storage/packing.py` has them; the two columns hold them in rows of an earlier version alone.
    """

    __tablename__ = "plans"
    turn_id: Mapped[str] = mapped_column(ForeignKey("turns.id", ondelete="CASCADE"), primary_key=True)
    round: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    owner_id: Mapped[str] = owner()
    receipt: Mapped[dict[str, Any]]
    given: Mapped[dict[str, Any]]
    packed: Mapped[bytes | None]
    created_at: Mapped[datetime]


class SummaryTable(Table):
    """The summary that stands for the turns up to `upto_ordinal` in the model's view, unless it was undone."""

    __tablename__ = "summaries"
    __table_args__ = (Index("ix_summaries_conversation_id", "conversation_id"),)
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    conversation_id: Mapped[str] = in_conversation()
    upto_ordinal: Mapped[int]
    text: Mapped[str]
    is_tainted: Mapped[bool]
    created_at: Mapped[datetime]
    undone_at: Mapped[datetime | None]
