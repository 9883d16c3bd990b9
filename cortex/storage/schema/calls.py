"""Uses of tools, what waits for a yes, standing grants, and the way back. Columns, keys and indexes only."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from cortex.storage.table import Table, in_turn, owner


class CallTable(Table):
    """One use of a tool, from the gate's word to its result."""

    __tablename__ = "calls"
    __table_args__ = (Index("ix_calls_name_created_at", "name", "created_at"),)
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    conversation_id: Mapped[str] = mapped_column(ForeignKey("conversations.id", ondelete="CASCADE"), index=True)
    turn_id: Mapped[str] = mapped_column(ForeignKey("turns.id", ondelete="CASCADE"), index=True)
    round: Mapped[int]
    name: Mapped[str]
    arguments: Mapped[str]
    arguments_hash: Mapped[str]
    risk: Mapped[str]
    state: Mapped[str]
    text: Mapped[str]
    is_error: Mapped[bool]
    is_tainted: Mapped[bool]
    is_rescued: Mapped[bool]
    came: Mapped[str]
    ms: Mapped[int | None]
    spill: Mapped[str | None]
    acts_on: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    created_at: Mapped[datetime]


class ApprovalTable(Table):
    """A call that waits for a yes, bound to its exact arguments. `readers`: keys of who else will read it."""

    __tablename__ = "approvals"
    __table_args__ = (
        Index("ix_approvals_owner_id_state", "owner_id", "state"),
        Index("ix_approvals_state_expires_at", "state", "expires_at"),
    )
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    call_id: Mapped[str] = mapped_column(unique=True)
    turn_id: Mapped[str] = in_turn()
    tool: Mapped[str]
    arguments_hash: Mapped[str]
    destination: Mapped[str]
    verb: Mapped[str]
    detail: Mapped[str]
    readers: Mapped[str] = mapped_column(default="")
    why: Mapped[str]
    risk: Mapped[str]
    state: Mapped[str] = mapped_column(default="asked")
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    answered_at: Mapped[datetime | None]
    answered_by: Mapped[str | None]
    used_at: Mapped[datetime | None]
    notify_at: Mapped[datetime | None]  # None: the person was notified, or need not be
    continued_by: Mapped[str | None]  # the turn in which the call went on, or was asked for again


class GrantTable(Table):
    """A standing yes for one tool and one exact destination, everywhere, in one conversation or for one job.

    `readers`: "", or the key of those who will read what is written, with whatever tool.
    """

    __tablename__ = "grants"
    __table_args__ = (Index("ix_grants_owner_id_tool", "owner_id", "tool"),)
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    tool: Mapped[str]
    destination: Mapped[str]
    readers: Mapped[str] = mapped_column(default="")
    conversation_id: Mapped[str | None] = mapped_column(ForeignKey("conversations.id", ondelete="CASCADE"))
    job_id: Mapped[str | None]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]


class UndoTable(Table):
    """The way to take one call back, once."""

    __tablename__ = "undos"
    __table_args__ = (Index("ix_undos_owner_id_expires_at", "owner_id", "expires_at"),)
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    call_id: Mapped[str] = mapped_column(ForeignKey("calls.id", ondelete="CASCADE"), index=True)
    category: Mapped[str]
    target: Mapped[str]
    before: Mapped[dict[str, Any] | None]
    expected: Mapped[str]
    label: Mapped[str]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
