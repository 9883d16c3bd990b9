"""Web addresses that start jobs, and what came by them. Columns, keys and indexes only; the secrets are sealed rows."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from cortex.storage.table import Table, owner


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
    """What came by an address and began a slot. Its id is derived from the sender's own for it, where it gave one."""

    __tablename__ = "hook_deliveries"
    __table_args__ = (Index("ix_hook_deliveries_job_id_at", "job_id", "at"),)
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    slot_id: Mapped[str] = mapped_column(ForeignKey("slots.id", ondelete="CASCADE"), unique=True)
    text: Mapped[str]
    at: Mapped[datetime]
