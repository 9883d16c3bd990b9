"""The tasks of a day, and what became of them: what is due, what was ticked off, and by whom.

Of the lists that the user sees, as in `tasks.py`, which changes them.
"""

from collections.abc import Sequence
from datetime import date, datetime

from sqlalchemy import func, select

from cortex.storage.repository import reading
from cortex.storage.schema import TaskTable
from cortex.storage.tasks import TaskRow, TasksRepository


class DueTasksRepository(TasksRepository):
    """The tasks that one user sees, by their days."""

    @reading
    async def due(self, day: date, limit: int) -> Sequence[TaskRow]:
        """The open tasks that are due on that day or were before, the oldest first."""
        statement = self._tasks().where(~TaskTable.is_done, TaskTable.due <= day)
        order = (TaskTable.due, TaskTable.priority.desc(), TaskTable.list_name, TaskTable.position, TaskTable.id)
        return await self._all(TaskRow, statement.order_by(*order).limit(limit))

    @reading
    async def count_done(self, day: date, since: datetime) -> int:
        """Return how many that were due by that day were ticked off since then."""
        statement = select(func.count()).where(self._reach(TaskTable), TaskTable.due <= day)
        statement = statement.where(TaskTable.is_done, TaskTable.done_at >= since)
        return (await self.session.execute(statement)).scalar_one()

    @reading
    async def ticked_by_others(self, since: datetime, limit: int) -> Sequence[TaskRow]:
        """Return what others ticked off since then on lists that the user shares, the newest first."""
        statement = self._tasks().where(TaskTable.is_done, TaskTable.done_at >= since)
        statement = statement.where(TaskTable.done_by != self.owner_id).order_by(TaskTable.done_at.desc(), TaskTable.id)
        return await self._all(TaskRow, statement.limit(limit))
