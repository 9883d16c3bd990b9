"""The user's task lists. Columns, keys and indexes only."""

from datetime import date, datetime

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from cortex.storage.table import Table, owner


class TaskTable(Table):
    """A task of the user's lists."""

    __tablename__ = "tasks"
    __table_args__ = (Index("ix_tasks_owner_id_list_name", "owner_id", "list_name"),)
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    list_name: Mapped[str]
    title: Mapped[str]
    notes: Mapped[str]
    due: Mapped[date | None]
    priority: Mapped[int]
    position: Mapped[int]
    is_done: Mapped[bool]
    done_at: Mapped[datetime | None]
    is_tainted: Mapped[bool]
    version: Mapped[int]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
