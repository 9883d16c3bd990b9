"""The Aether board over Cortex's own tasks: a list is a column, what was finished lately is the last one.

Moving a card is moving the task to another list. Serves `tools/ae_tasks.py` while no Aether server is configured.
"""

from collections.abc import Sequence
from datetime import timedelta

from msgspec import Struct

from cortex.base.clock import Clock
from cortex.ports.aether import BoardColumn, Card
from cortex.storage.db import Database
from cortex.storage.tasks import TaskRow, TasksRepository

DONE = "done"
DONE_FOR = timedelta(days=14)


class TaskBoard(Struct, frozen=True, kw_only=True):
    """Implements the `Board` port for one user."""

    db: Database
    user_id: str
    clock: Clock

    async def columns(self, query: str, most: int) -> Sequence[BoardColumn]:
        """The user's lists by name, empty ones too while a task of theirs is done; then what was finished lately."""
        tasks = self.db.repository(TasksRepository, self.user_id)
        lists = await tasks.lists()
        rows = await tasks.list(query=query)
        since = self.clock() - DONE_FOR
        finished = [row for row in rows if row.is_done and row.done_at is not None and row.done_at >= since]
        finished.sort(key=lambda row: (row.done_at, row.id), reverse=True)
        open_ones = [row for row in rows if not row.is_done]
        columns = [
            _column(
                one.label, [row for row in open_ones if row.list_label == one.label], most, is_tainted=one.is_tainted
            )
            for one in lists
        ]
        return [*columns, _column(DONE, finished, most)] if lists else []


def _column(name: str, rows: Sequence[TaskRow], most: int, *, is_tainted: bool = False) -> BoardColumn:
    cards = tuple(
        Card(id=row.id, title=row.title, due=row.due, priority=row.priority, is_tainted=row.is_tainted)
        for row in rows[:most]
    )
    return BoardColumn(name=name, cards=cards, total=len(rows), is_tainted=is_tainted)
