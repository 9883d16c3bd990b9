"""Notices, the outbox of their deliveries, people's devices, and links of buttons. Columns and keys only."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from cortex.storage.table import Table, owner


class NoticeTable(Table):
    """A notice for one person. `is_replaced`: a later one of the same tag stands in its place."""

    __tablename__ = "notices"
    __table_args__ = (
        Index("ix_notices_owner_id_created_at", "owner_id", "created_at"),
        Index("ix_notices_owner_id_read_at", "owner_id", "read_at"),
        Index("ix_notices_owner_id_tag", "owner_id", "tag"),
        Index("ix_notices_subject_id", "subject_id"),
    )
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    kind: Mapped[str]
    title: Mapped[str]
    text: Mapped[str]
    path: Mapped[str]
    tag: Mapped[str]
    urgency: Mapped[str]
    actions: Mapped[tuple[str, ...]]
    subject_id: Mapped[str]
    is_tainted: Mapped[bool]
    is_replaced: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]
    read_at: Mapped[datetime | None]
    acknowledged_at: Mapped[datetime | None]
    expires_at: Mapped[datetime | None]


class DeliveryTable(Table):
    """A notice on its way by one channel. `next_at`: not sooner; while one is at it, his until then; over: null."""

    __tablename__ = "deliveries"
    __table_args__ = (
        UniqueConstraint("notice_id", "channel", "device_id"),
        Index("ix_deliveries_next_at", "next_at"),
        Index("ix_deliveries_owner_id_created_at", "owner_id", "created_at"),
    )
    id: Mapped[str] = mapped_column(primary_key=True)
    notice_id: Mapped[str] = mapped_column(ForeignKey("notices.id", ondelete="CASCADE"))
    owner_id: Mapped[str] = owner()
    channel: Mapped[str]
    device_id: Mapped[str]
    state: Mapped[str] = mapped_column(default="pending")
    attempt: Mapped[int] = mapped_column(default=0)
    next_at: Mapped[datetime | None]
    error: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]


class PushDeviceTable(Table):
    """A browser that takes push messages; its id is derived from the endpoint, which so belongs to one person."""

    __tablename__ = "push_devices"
    __table_args__ = (Index("ix_push_devices_owner_id", "owner_id"), Index("ix_push_devices_login_id", "login_id"))
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    login_id: Mapped[str | None] = mapped_column(ForeignKey("logins.id", ondelete="SET NULL"))
    name: Mapped[str]
    agent: Mapped[str]
    endpoint: Mapped[str]
    p256dh: Mapped[str]
    auth: Mapped[str]
    signed_for: Mapped[str]
    error: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime]
    pushed_at: Mapped[datetime | None]
    shown_at: Mapped[datetime | None]


class ActionLinkTable(Table):
    """A button of a notification; the token itself is never stored."""

    __tablename__ = "action_links"
    __table_args__ = (
        Index("ix_action_links_notice_id", "notice_id"),
        Index("ix_action_links_expires_at", "expires_at"),
    )
    token_hash: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    notice_id: Mapped[str] = mapped_column(ForeignKey("notices.id", ondelete="CASCADE"))
    action: Mapped[str]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
