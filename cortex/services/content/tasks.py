"""To-do lists for the page: show, add, change, tick off, order, delete with a way back. Rows: `storage/tasks.py`.

Each change is told to the open pages of all who see the list (`UserListSignal`). Sharing one: `shared_lists.py`.
"""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

from msgspec import Struct

from cortex.base import portable
from cortex.base.errors import NotFound, UserError
from cortex.base.form_words import one_line
from cortex.base.user import User
from cortex.ports.engine import Hub
from cortex.storage.db import Database
from cortex.storage.preferences import PreferencesRepository
from cortex.storage.shared_lists import SharedListsRepository
from cortex.storage.tasks import INBOX as INBOX
from cortex.storage.tasks import TaskFields as TaskFields
from cortex.storage.tasks import TaskListRow as TaskListRow
from cortex.storage.tasks import TaskRow as TaskRow
from cortex.storage.tasks import TasksRepository

TITLE_CHARS_MAX = 300
LIST_CHARS_MAX = 80
LABEL_CHARS_MAX = LIST_CHARS_MAX + 63  # of somebody else's list, which is called "name (person)"
NOTES_CHARS_MAX = 8_000
PRIORITY_MAX = 3
REMOVED = "tasks.removed"  # the last few deleted tasks, so that the page can offer them back
REMOVED_KEPT = 20


def lists_of(user_id: str) -> str:
    """The key of the hub under which the lists that a person sees are announced."""
    return f"lists:{user_id}"


def announce_lists(hub: Hub, user_ids: Iterable[str]) -> None:
    """Let the open pages of these people look at their lists again."""
    for user_id in user_ids:
        hub.announce(lists_of(user_id))


class UserListSignal(Struct, frozen=True, kw_only=True):
    """The signal as one user gives it."""

    db: Database
    hub: Hub
    user_id: str

    async def tell_readers(self, *places: tuple[str, str], is_shared: bool = True) -> None:
        """Tell all who see these lists, the user's own other pages too; not `is_shared`: those alone."""
        lists = self.db.repository(SharedListsRepository, self.user_id)
        may_be_shared = {place for place in places if is_shared and place[1] != INBOX}  # nobody shares an inbox
        readers = await asyncio.gather(*(lists.readers(*place) for place in may_be_shared))
        announce_lists(self.hub, {self.user_id, *(id for ids in readers for id in ids)})


class TasksService(Struct, frozen=True):
    """One person's tasks at a time; every method takes whose."""

    db: Database
    hub: Hub

    async def list(
        self, user: User, *, list_name: str = "", is_done: bool = False, query: str = "", most: int | None = None
    ) -> Sequence[TaskRow]:
        """The open (or done) tasks of one list, or of all, in their order; `query`: words they hold."""
        return await self._of(user).list(list_name or None, is_done, query, limit=most)

    async def lists(self, user: User) -> Sequence[TaskListRow]:
        """The lists that have tasks, with how many are open and done."""
        return await self._of(user).lists()

    async def get(self, user: User, task_id: str) -> TaskRow:
        """One task; NotFound."""
        return await self._of(user).get(task_id)

    async def create(
        self,
        user: User,
        title: str,
        *,
        list_name: str = INBOX,
        due: date | None = None,
        priority: int = 0,
        notes: str = "",
    ) -> TaskRow:
        """A new task at the end of its list."""
        fields = _checked({"title": title, "list_name": list_name or INBOX, "priority": priority, "notes": notes})
        task = await self._of(user).create(
            None,
            fields["title"],
            fields["list_name"],
            due=due,
            priority=fields["priority"],
            notes=fields["notes"],
            is_tainted=False,
        )
        return await self._announced(user, task)

    async def update(self, user: User, task_id: str, version: int, fields: TaskFields) -> TaskRow:
        """Change the fields given, if the task still stands at `version`; Conflict otherwise."""
        async with self.db.transaction(user.id) as repository:
            was = await repository(TasksRepository).get(task_id)
            task = await repository(TasksRepository).update(task_id, version, **_checked(fields))
        return await self._announced(user, task, was)

    async def complete(self, user: User, task_id: str) -> TaskRow:
        """Tick it off."""
        return await self._announced(user, await self._of(user).complete(task_id))

    async def reopen(self, user: User, task_id: str) -> TaskRow:
        """Untick it."""
        return await self._announced(user, await self._of(user).reopen(task_id))

    async def move(self, user: User, task_id: str, by: int) -> None:
        """So many places up (below 0) or down within its list; at an end it stays."""
        async with self.db.transaction(user.id) as repository:
            tasks = repository(TasksRepository)
            task = await tasks.get(task_id)
            row = [other.id for other in await tasks.list(task.list_label, task.is_done)]
            await tasks.move(task_id, max(0, row.index(task_id) + by))
        await self._announced(user, task)

    async def delete(self, user: User, task_id: str, version: int | None = None) -> TaskRow:
        """Delete it, if it still stands at `version`; `restore` brings the last few back."""
        async with self.db.transaction(user.id) as repository:
            task = await repository(TasksRepository).remove(task_id, version)
            kept = await repository(PreferencesRepository).get(REMOVED, [])
            await repository(PreferencesRepository).set(REMOVED, [*kept, portable.plain(task)][-REMOVED_KEPT:])
        return await self._announced(user, task)

    async def restore(self, user: User, task_id: str) -> TaskRow:
        """A task that was deleted lately, as it was; NotFound when it is not among the last few."""
        async with self.db.transaction(user.id) as repository:
            kept: list[dict[str, Any]] = await repository(PreferencesRepository).get(REMOVED, [])
            found = next((one for one in kept if one["id"] == task_id), None)
            if found is None:
                raise NotFound("This task cannot be restored. Only the last few deleted tasks can.")
            await repository(PreferencesRepository).set(REMOVED, [one for one in kept if one["id"] != task_id])
            task = await repository(TasksRepository).put(portable.read(TaskRow, found))
        return await self._announced(user, task)

    async def _announced(self, user: User, *tasks: TaskRow) -> TaskRow:
        """The first task, once the open pages of all who see their lists are told."""
        signal = UserListSignal(db=self.db, hub=self.hub, user_id=user.id)
        await signal.tell_readers(*((task.owner_id, task.list_name) for task in tasks))
        return tasks[0]

    def _of(self, user: User) -> TasksRepository:
        return self.db.repository(TasksRepository, user.id)


def _checked(fields: TaskFields) -> TaskFields:
    cleaned = fields.copy()
    if "title" in fields:
        cleaned["title"] = one_line(fields["title"], TITLE_CHARS_MAX, "title", "Enter a task.")
    if "list_name" in fields:
        cleaned["list_name"] = one_line(fields["list_name"], LABEL_CHARS_MAX, "list_name", "Enter a list.")
    if len(fields.get("notes", "")) > NOTES_CHARS_MAX:
        raise UserError(f"Notes can have at most {NOTES_CHARS_MAX:,} characters.", field="notes")
    if not 0 <= fields.get("priority", 0) <= PRIORITY_MAX:
        raise UserError(f"Priority must be 0 to {PRIORITY_MAX}.", field="priority")
    return cleaned
