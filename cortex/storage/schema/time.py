"""Jobs with their slots, reminders, and web addresses that start jobs. Columns, keys and indexes only."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from cortex.storage.table import Names, Table, owner


class JobTable(Table):
    """The jobs. `version` counts the changes by people and tools, `failures` those in a row."""

    __tablename__ = "jobs"
    __table_args__ = (Index("ix_jobs_owner_id", "owner_id"), Index("ix_jobs_next_at", "next_at"))
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    name: Mapped[str]
    kind: Mapped[str]
    prompt: Mapped[str]
    tool: Mapped[str]
    arguments: Mapped[dict[str, Any] | None]
    timing_kind: Mapped[str]
    expression: Mapped[str]
    time_zone: Mapped[str]
    words: Mapped[str]
    typed: Mapped[str]
    role: Mapped[str]
    model: Mapped[str]
    tools: Mapped[tuple[str, ...] | None] = mapped_column(Names(none_as_null=True))
    mode: Mapped[str]
    max_rounds: Mapped[int | None]
    budget_tokens: Mapped[int | None]
    budget_usd: Mapped[float | None]
    conversation_id: Mapped[str | None]
    deliver_to: Mapped[tuple[str, ...]]
    notify_on: Mapped[str]
    on_miss: Mapped[str]
    fire_within_s: Mapped[int]
    overlap: Mapped[str]
    retries: Mapped[int]
    timeout_s: Mapped[int]
    keeps_quiet_hours: Mapped[bool]
    pause_after: Mapped[int]
    may_make_jobs: Mapped[bool]
    is_tainted: Mapped[bool]
    is_private: Mapped[bool]
    planned: Mapped[tuple[str, ...] | None] = mapped_column(Names(none_as_null=True))
    planned_for: Mapped[str] = mapped_column(default="")
    is_enabled: Mapped[bool]
    paused_because: Mapped[str] = mapped_column(default="")
    failures: Mapped[int] = mapped_column(default=0)
    version: Mapped[int] = mapped_column(default=1)
    next_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]


class SlotTable(Table):
    """One due time of a job, and how it ended. `ready_at`: a planned one may not start sooner.

    `in_line_at`: since when it waits for a free place alone.
    """

    __tablename__ = "slots"
    __table_args__ = (UniqueConstraint("job_id", "due_at"), Index("ix_slots_state_due_at", "state", "due_at"))
    id: Mapped[str] = mapped_column(primary_key=True)
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    owner_id: Mapped[str] = owner()
    due_at: Mapped[datetime]
    state: Mapped[str]
    why: Mapped[str]
    is_by_hand: Mapped[bool] = mapped_column(default=False)
    attempt: Mapped[int] = mapped_column(default=0)
    ready_at: Mapped[datetime | None]
    in_line_at: Mapped[datetime | None]
    turn_id: Mapped[str | None]
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    result: Mapped[str] = mapped_column(default="")
    result_hash: Mapped[str] = mapped_column(default="")
    cost_usd: Mapped[float | None]
    tokens: Mapped[int] = mapped_column(default=0)


class ReminderTable(Table):
    """A text that is sent when due. `next_at`: of its rhythm; `again_at`: of the one sent, snoozed or repeated."""

    __tablename__ = "reminders"
    __table_args__ = (
        Index("ix_reminders_owner_id_state", "owner_id", "state"),
        Index("ix_reminders_next_at", "next_at"),
        Index("ix_reminders_again_at", "again_at"),
    )
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    text: Mapped[str]
    timing_kind: Mapped[str]
    expression: Mapped[str]
    time_zone: Mapped[str]
    words: Mapped[str]
    state: Mapped[str] = mapped_column(default="planned")
    next_at: Mapped[datetime | None]
    due_at: Mapped[datetime | None]
    again_at: Mapped[datetime | None]
    told_at: Mapped[datetime | None]
    told_count: Mapped[int] = mapped_column(default=0)
    repeat_s: Mapped[int | None]
    is_tainted: Mapped[bool]
    version: Mapped[int] = mapped_column(default=1)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]


class HookTable(Table):
    """The address of one job. `needs_secret`: off where the address alone lets a sender in.

    `refused`: how many requests were refused since it was made, the last one at `refused_at` and `because`.
    """

    __tablename__ = "hooks"
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    owner_id: Mapped[str] = owner()
    address: Mapped[str] = mapped_column(unique=True)
    needs_secret: Mapped[bool]
    made_at: Mapped[datetime]
    taken: Mapped[int]
    taken_at: Mapped[datetime | None]
    refused: Mapped[int]
    refused_at: Mapped[datetime | None]
    because: Mapped[str]


class HookDeliveryTable(Table):
    """A request that came by an address and began a slot. Its id comes from the sender's own, where it gave one."""

    __tablename__ = "hook_deliveries"
    __table_args__ = (Index("ix_hook_deliveries_job_id_at", "job_id", "at"),)
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    slot_id: Mapped[str] = mapped_column(ForeignKey("slots.id", ondelete="CASCADE"), unique=True)
    text: Mapped[str]
    at: Mapped[datetime]
