"""The user's task lists. A version number on each task guards against lost updates."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, TypedDict, Unpack

from sqlalchemy import case, func, select

from cortex.base.errors import Conflict, NotFound
from cortex.base.ids import new_id
from cortex.storage.repository import Repository, reading
from cortex.storage.schema import TaskTable
from cortex.storage.table import each_word


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """A task. `priority` 0 is none, higher is more; `position` orders a list; `is_tainted`: words from outside."""

    id: str
    list_name: str
    title: str
    notes: str
    due: date | None
    priority: int
    position: int
    is_done: bool
    done_at: datetime | None
    is_tainted: bool
    version: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskListRow:
    """A list by its name, with how many tasks are open and done. `is_tainted`: its name may be from outside."""

    name: str
    open: int
    done: int
    is_tainted: bool = False


class TaskFields(TypedDict, total=False):
    """What may be changed about a task."""

    title: str
    notes: str
    list_name: str
    due: date | None
    priority: int
    is_done: bool
    is_tainted: bool


class TasksRepository(Repository):
    """One user's tasks."""

    @reading
    async def list(
        self, list_name: str | None = None, is_done: bool | None = None, query: str = "", *, limit: int | None = None
    ) -> Sequence[TaskRow]:
        """The tasks list by list, in their order; `query`: words of title or notes, all of them; case is ignored."""
        statement = self._mine(TaskRow, TaskTable).where(*each_word(query, TaskTable.title, TaskTable.notes))
        if list_name is not None:
            statement = statement.where(func.lower(TaskTable.list_name) == list_name.lower())
        if is_done is not None:
            statement = statement.where(TaskTable.is_done == is_done)
        order = (TaskTable.list_name, TaskTable.position, TaskTable.id)
        return await self._all(TaskRow, statement.order_by(*order).limit(limit))

    @reading
    async def get(self, id: str) -> TaskRow:
        """The task; NotFound when it is absent or another user's."""
        found = await self._first(TaskRow, self._mine(TaskRow, TaskTable).where(TaskTable.id == id))
        if found is None:
            raise NotFound("There is no such task.")
        return found

    async def create(
        self,
        id: str | None,
        title: str,
        list_name: str = "inbox",
        due: date | None = None,
        priority: int = 0,
        notes: str = "",
        *,
        is_tainted: bool,
    ) -> TaskRow:
        """A new task at the end of its list (`id` None: a fresh one); one that stands already is handed back."""
        at = self.clock()
        task_id = id or new_id(self.clock)
        values = {
            "id": task_id,
            "list_name": list_name,
            "title": title,
            "notes": notes,
            "due": due,
            "priority": priority,
            "position": await self._end_of(list_name),
            "is_done": False,
            "done_at": None,
            "is_tainted": is_tainted,
            "version": 1,
            "created_at": at,
            "updated_at": at,
        }
        await self._is_new(TaskTable, values)
        return await self.get(task_id)

    async def update(self, id: str, expected_version: int | None = None, **fields: Unpack[TaskFields]) -> TaskRow:
        """Change the fields given; the task as it then stands.

        Conflict when it no longer stands at `expected_version`: nothing was changed.
        """
        before = await self.get(id)
        at = self.clock()
        values: dict[str, Any] = {**fields, "version": TaskTable.version + 1, "updated_at": at}
        if "is_done" in fields and fields["is_done"] != before.is_done:
            values["done_at"] = at if fields["is_done"] else None
        if fields.get("list_name", before.list_name) != before.list_name:
            values["position"] = await self._end_of(fields["list_name"])
        change = self._change(TaskTable).where(TaskTable.id == id)
        if expected_version is not None:
            change = change.where(TaskTable.version == expected_version)
        if not await self._touched(change.values(**values), TaskTable.id):
            raise Conflict(f"The task {before.title!r} was changed in between; look at it again.")
        return await self.get(id)

    async def complete(self, id: str, expected_version: int | None = None) -> TaskRow:
        """Tick it off; one that is done already stays as it is."""
        task = await self.get(id)
        return task if task.is_done else await self.update(id, expected_version, is_done=True)

    async def reopen(self, id: str, expected_version: int | None = None) -> TaskRow:
        """Untick it; one that is open already stays as it is."""
        task = await self.get(id)
        return await self.update(id, expected_version, is_done=False) if task.is_done else task

    async def remove(self, id: str, expected_version: int | None = None) -> TaskRow:
        """Delete it; what it was, for `put`. Conflict when it no longer stands at `expected_version`."""
        task = await self.get(id)
        removal = self._remove(TaskTable).where(TaskTable.id == id)
        if expected_version is not None:
            removal = removal.where(TaskTable.version == expected_version)
        if not await self._touched(removal, TaskTable.id):
            raise Conflict(f"The task {task.title!r} was changed in between; it was not deleted.")
        return task

    async def put(self, task: TaskRow) -> TaskRow:
        """Lay a removed task down again, at its next version; one that stands already is left as it is."""
        values = {name: getattr(task, name) for name in TaskRow.__dataclass_fields__}
        await self._is_new(TaskTable, {**values, "version": task.version + 1, "updated_at": self.clock()})
        return await self.get(task.id)

    async def move(self, id: str, to_index: int) -> None:
        """Put it at this place (from 0) among the tasks of its list that are as open or done as it is."""
        task = await self.get(id)
        others = [other for other in await self.list(task.list_name, task.is_done) if other.id != id]
        others.insert(max(0, to_index), task)
        for position, other in enumerate(others, start=1):
            if other.position != position:
                change = self._change(TaskTable).where(TaskTable.id == other.id)
                await self.session.execute(change.values(position=position))

    @reading
    async def lists(self) -> Sequence[TaskListRow]:
        """The lists that have tasks, by name."""
        done, tainted = (func.sum(case((flag, 1), else_=0)) for flag in (TaskTable.is_done, TaskTable.is_tainted))
        statement = (
            select(TaskTable.list_name, func.count(), done, tainted)
            .where(TaskTable.owner_id == self.owner_id)
            .group_by(TaskTable.list_name)
        )
        rows = (await self.session.execute(statement)).all()
        lists = [
            TaskListRow(name=name, open=count - int(ticked), done=int(ticked), is_tainted=bool(marked))
            for name, count, ticked, marked in rows
        ]
        return sorted(lists, key=lambda one: (one.name.casefold(), one.name))

    async def _end_of(self, list_name: str) -> int:
        statement = select(func.coalesce(func.max(TaskTable.position), 0) + 1).where(
            TaskTable.owner_id == self.owner_id, TaskTable.list_name == list_name
        )
        return int((await self.session.execute(statement)).scalar_one())
