"""Task lists, and with whom they are shared. Columns, keys and indexes only."""

from datetime import date, datetime

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from cortex.storage.table import Table, owner


class TaskTable(Table):
    """A task of the user's lists. `added_by`, `done_by`: ids of people; `worded_by`: whose all its words are, if one's.

    Those three outlive an account: a task that somebody added stays on the list of its owner.
    """

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
    added_by: Mapped[str | None]
    done_by: Mapped[str | None]
    worded_by: Mapped[str | None]


class TaskListTable(Table):
    """A list that its owner shares: the tasks of this owner and list name. A list that is not shared has no row."""

    __tablename__ = "task_lists"
    __table_args__ = (UniqueConstraint("owner_id", "name"),)
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    name: Mapped[str]
    created_at: Mapped[datetime]


class TaskListMemberTable(Table):
    """Somebody with whom a list is shared; they see it once they accepted (`accepted_at`)."""

    __tablename__ = "task_list_members"
    __table_args__ = (Index("ix_task_list_members_member_id", "member_id"),)
    list_id: Mapped[str] = mapped_column(ForeignKey("task_lists.id", ondelete="CASCADE"), primary_key=True)
    member_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"), primary_key=True)
    added_at: Mapped[datetime]
    accepted_at: Mapped[datetime | None]
