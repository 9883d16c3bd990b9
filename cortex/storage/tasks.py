"""The tasks that a person sees: their own, and those of lists that others share with them.

A version number on each task guards against lost updates. Who shares what stands in `storage/shared_lists.py`.
"""

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Required, TypedDict, Unpack

from msgspec import Struct
from sqlalchemy import ColumnElement, Select, and_, case, exists, func, or_, select
from sqlalchemy.orm import aliased

from cortex.base.errors import Conflict, NotFound, UserError
from cortex.base.ids import new_id
from cortex.storage.accounts import name_key
from cortex.storage.repository import Repository, reading
from cortex.storage.schema import AccountTable, TaskTable
from cortex.storage.shared_lists import SharedListRow, SharedListsRepository, has_name, is_shared_with, labelled
from cortex.storage.table import each_word

INBOX = "inbox"


class TaskRow(Struct, frozen=True, kw_only=True):
    """A task as its reader sees it. `priority` 0 is none, higher is more; `position` orders a list.

    is_tainted: it holds words that the reader did not write: `is_from_outside` (a page, a mail), or another person's.
    owner: whose list it stands on, "" for the reader's own. adder, doer: who added it and who ticked it off, "" for
    the reader; `added_by`, `done_by`, `worded_by` are their ids.
    """

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
    owner_id: str = ""
    owner: str = ""
    added_by: str | None = None
    adder: str = ""
    done_by: str | None = None
    doer: str = ""
    worded_by: str | None = None
    is_from_outside: bool = False

    @property
    def list_label(self) -> str:
        """Return what the reader calls its list."""
        return labelled(self.list_name, self.owner)


class TaskListRow(Struct, frozen=True, kw_only=True):
    """A list by its name, with how many tasks are open and done. `is_tainted`: its name may be from outside.

    owner: whose it is, "" for the reader's own. shared: with whom, None where it is not.
    """

    name: str
    open: int
    done: int
    is_tainted: bool = False
    owner: str = ""
    shared: SharedListRow | None = None

    @property
    def label(self) -> str:
        """Return what the reader calls it."""
        return labelled(self.name, self.owner)

    @property
    def with_whom(self) -> tuple[str, ...]:
        """Names of the others who see it."""
        return self.shared.with_whom if self.shared else ()


class TaskPlace(Struct, frozen=True, kw_only=True):
    """The list on which tasks stand: whose, and its name as the owner wrote it."""

    owner_id: str
    name: str


class NewTask(TypedDict, total=False):
    """The values of a new task, beside its title and its list."""

    notes: str
    due: date | None
    priority: int
    is_tainted: Required[bool]


class TaskFields(TypedDict, total=False):
    """The fields of a task that may change."""

    title: str
    notes: str
    list_name: str
    due: date | None
    priority: int
    is_done: bool
    is_tainted: bool


class TasksRepository(Repository):
    """The tasks that one user sees. A list is named by its label, or by its name where that can mean one alone."""

    @reading
    async def list(
        self, list_name: str | None = None, is_done: bool | None = None, query: str = "", *, limit: int | None = None
    ) -> Sequence[TaskRow]:
        """The tasks list by list, in their order; `query`: words of title or notes, all of them; case is ignored."""
        statement = self._tasks().where(*each_word(query, TaskTable.title, TaskTable.notes))
        if list_name is not None:
            shared = await self._of_another(list_name)
            at = _stands_at(shared) if shared else and_(TaskTable.owner_id == self.owner_id, has_name(list_name))
            statement = statement.where(at)
        if is_done is not None:
            statement = statement.where(TaskTable.is_done == is_done)
        order = (TaskTable.list_name, TaskTable.owner_id != self.owner_id, TaskTable.owner_id)
        statement = statement.order_by(*order, TaskTable.position, TaskTable.id)
        return await self._all(TaskRow, statement.limit(limit))

    @reading
    async def get(self, id: str) -> TaskRow:
        """The task; NotFound when it is absent, or on no list that this user sees."""
        return await self._one(TaskRow, self._tasks().where(TaskTable.id == id), "This task does not exist.")

    @reading
    async def place(self, list_name: str) -> TaskPlace:
        """The list that is meant: the user's own first, unless only somebody else's has the name."""
        shared = await self._of_another(list_name)
        return TaskPlace(owner_id=shared.owner_id, name=shared.name) if shared else self._own(list_name)

    async def create(
        self,
        id: str | None,
        title: str,
        list_name: str = INBOX,
        **said: Unpack[NewTask],
    ) -> TaskRow:
        """A new task at the end of its list (`id` None: a fresh one); one that stands already is handed back."""
        at = self.clock()
        task_id = id or new_id(self.clock)
        place = await self._held(list_name)
        values = {
            "id": task_id,
            "list_name": place.name,
            "title": title,
            "position": await self._end_of(place),
            "created_at": at,
            "updated_at": at,
            "added_by": self.owner_id,
            "worded_by": self.owner_id,
            **said,
        }
        await self._lay_down(place, values)
        return await self.get(task_id)

    async def update(self, id: str, expected_version: int | None = None, **fields: Unpack[TaskFields]) -> TaskRow:
        """Change the fields given; the task as it then stands. On another list it belongs to that one's owner.

        Conflict when it no longer stands at `expected_version`: nothing was changed.
        """
        before = await self.get(id)
        at = self.clock()
        values: dict[str, Any] = {**fields, "version": TaskTable.version + 1, "updated_at": at}
        if "is_done" in fields and fields["is_done"] != before.is_done:
            values |= self._ticked(is_done=fields["is_done"])
        values.pop("list_name", None)
        if fields.get("list_name", before.list_label) != before.list_label:
            place = await self._held(fields["list_name"])
            if place != TaskPlace(owner_id=before.owner_id, name=before.list_name):
                values |= {"list_name": place.name, "owner_id": place.owner_id, "position": await self._end_of(place)}
        if "title" in fields or "notes" in fields:
            values["worded_by"] = self._wording(fields)
        change = self._change(TaskTable).where(TaskTable.id == id)
        if expected_version is not None:
            change = change.where(TaskTable.version == expected_version)
        if not await self._touched(change.values(**values), TaskTable.id):
            raise Conflict(f"The task {before.title!r} was changed in the meantime. Check it again.")
        return await self.get(id)

    async def complete(self, id: str, expected_version: int | None = None) -> TaskRow:
        """Tick it off; one that is done already, by whomever, stays as it is."""
        return await self._tick(id, expected_version, is_done=True)

    async def reopen(self, id: str, expected_version: int | None = None) -> TaskRow:
        """Untick it; one that is open already stays as it is."""
        return await self._tick(id, expected_version, is_done=False)

    async def remove(self, id: str, expected_version: int | None = None) -> TaskRow:
        """Delete it; what it was, for `put`. Conflict when it no longer stands at `expected_version`."""
        task = await self.get(id)
        removal = self._remove(TaskTable).where(TaskTable.id == id)
        if expected_version is not None:
            removal = removal.where(TaskTable.version == expected_version)
        if not await self._touched(removal, TaskTable.id):
            raise Conflict(f"The task {task.title!r} was changed in the meantime, so it was not deleted.")
        return task

    async def put(self, task: TaskRow) -> TaskRow:
        """Lay a removed task down again, at its next version; one that stands already is left as it is.

        NotFound when it stood on a list that is not shared with this user any more.
        """
        place = self._own(task.list_name)
        if task.owner_id not in ("", self.owner_id):
            lists = await SharedListsRepository(self.session, self.owner_id, self.clock).list()
            where = (task.owner_id, task.list_name)
            place = await self._hold(next((one for one in lists if (one.owner_id, one.name) == where), None))
        values = {name: getattr(task, name) for name in TaskRow.__struct_fields__ if hasattr(TaskTable, name)}
        values |= {"version": task.version + 1, "updated_at": self.clock()}
        if task.owner_id:
            values["is_tainted"] = task.is_from_outside
        else:  # kept when no list was shared
            values |= {"added_by": self.owner_id, "worded_by": self.owner_id}
        await self._lay_down(place, values)
        return await self.get(task.id)

    async def move(self, id: str, to_index: int) -> None:
        """Put it at this place (from 0) among the tasks of its list that are as open or done as it is."""
        task = await self.get(id)
        others = [other for other in await self.list(task.list_label, task.is_done) if other.id != id]
        others.insert(max(0, to_index), task)
        for position, other in enumerate(others, start=1):
            if other.position != position:
                change = self._change(TaskTable).where(TaskTable.id == other.id)
                await self.session.execute(change.values(position=position))

    @reading
    async def lists(self) -> Sequence[TaskListRow]:
        """The lists that have tasks, and all that are shared, by name."""
        flags = (TaskTable.is_done, self._is_tainted())
        statement = (
            select(TaskTable.owner_id, TaskTable.list_name, func.count())
            .add_columns(*(func.sum(case((flag, 1), else_=0)) for flag in flags))
            .where(self._reach(TaskTable))
            .group_by(TaskTable.owner_id, TaskTable.list_name)
        )
        counts = {(row[0], row[1]): row[2:] for row in (await self.session.execute(statement)).all()}
        known = await SharedListsRepository(self.session, self.owner_id, self.clock).list()
        shared = {(one.owner_id, one.name): one for one in known}
        lists = [
            self._list_row(name, counts.get((owner_id, name)), shared.get((owner_id, name)))
            for owner_id, name in counts.keys() | shared.keys()
        ]
        return sorted(lists, key=lambda one: (one.name.casefold(), one.name, one.owner))

    def _list_row(self, name: str, counted: Any, shared: SharedListRow | None) -> TaskListRow:
        count, done, tainted = counted or (0, 0, 0)
        owner = shared.owner if shared else ""
        is_tainted = bool(tainted or owner)
        return TaskListRow(
            name=name, open=count - int(done), done=int(done), is_tainted=is_tainted, owner=owner, shared=shared
        )

    # --- what is reached, and how it is shown

    def _reach(self, table: type[Any]) -> ColumnElement[bool]:
        """The user's own tasks, and those of the lists that are shared with them now."""
        own = super()._reach(table)
        return or_(own, is_shared_with(self.owner_id)) if table is TaskTable else own

    def _tasks(self) -> Select[Any]:
        """The tasks that the user sees, as `TaskRow` has them."""
        people = {name: aliased(AccountTable) for name in ("owner_id", "added_by", "done_by")}
        shown = {"owner_id": "owner", "added_by": "adder", "done_by": "doer"}
        columns = [getattr(TaskTable, name) for name in TaskRow.__struct_fields__ if hasattr(TaskTable, name)]
        statement = select(
            *(column for column in columns if column.key != "is_tainted"),
            self._is_tainted().label("is_tainted"),
            TaskTable.is_tainted.label("is_from_outside"),
            *(self._name_of(name, people[name]).label(shown[name]) for name in people),
        )
        for name, person in people.items():
            statement = statement.outerjoin(person, person.id == getattr(TaskTable, name))
        return statement.where(self._reach(TaskTable))

    def _name_of(self, column: str, person: Any) -> ColumnElement[str]:
        """Return who it is, "" for the reader and for an account that is gone."""
        return case((getattr(TaskTable, column) == self.owner_id, ""), else_=func.coalesce(person.name, ""))

    def _is_tainted(self) -> ColumnElement[bool]:
        """Tell whether a task holds words that are not its reader's; its list's name counts, which is its owner's."""
        return or_(
            TaskTable.is_tainted,
            TaskTable.owner_id != self.owner_id,
            TaskTable.worded_by.is_distinct_from(self.owner_id),
        )

    def _wording(self, fields: TaskFields) -> ColumnElement[str | None]:
        """Return whose all its words are after this change, None when they are several people's."""
        same = [getattr(TaskTable, name) == value for name, value in fields.items() if name in ("title", "notes")]
        is_kept = or_(and_(*same), TaskTable.worded_by == self.owner_id)
        return case((is_kept, TaskTable.worded_by), else_=None)

    # --- which list is meant

    async def _of_another(self, wanted: str) -> SharedListRow | None:
        """Somebody else's list that these words mean, None where they mean one of the user's own."""
        everybodys = await SharedListsRepository(self.session, self.owner_id, self.clock).list()
        key = wanted.casefold()
        others = [one for one in everybodys if one.owner and key in (one.label.casefold(), one.name.casefold())]
        if not others:
            return None
        own = exists().where(TaskTable.owner_id == self.owner_id, has_name(wanted))
        has_own = any(not one.owner and one.name.casefold() == key for one in everybodys)
        if has_own or (await self.session.execute(select(own))).scalar_one():
            return None
        called = [one for one in others if one.label.casefold() == key]
        if key == INBOX and not called:
            return None  # where a task goes that names no list: never to somebody else
        meant = [one for one in called or others if wanted in (one.label, one.name)] or called or others
        if len(meant) > 1:
            raise UserError(f"Several lists have this name: {', '.join(one.label for one in meant)}. Choose one.")
        return meant[0]

    async def _held(self, wanted: str) -> TaskPlace:
        """The list on which a task is to be put; somebody else's stays shared until this is written."""
        shared = await self._of_another(wanted)
        if shared is not None:
            return await self._hold(shared)
        gone = re.fullmatch(r".+ \((.+)\)", wanted)
        if gone:
            person = exists().where(AccountTable.name_key == name_key(gone[1]), AccountTable.id != self.owner_id)
            own = exists().where(TaskTable.owner_id == self.owner_id, has_name(wanted))
            if (await self.session.execute(select(and_(person, ~own)))).scalar_one():
                raise UserError(f"{gone[1]} shares no such list with you now. Choose another list.", field="list_name")
        return self._own(wanted)

    async def _hold(self, shared: SharedListRow | None) -> TaskPlace:
        if shared is None:
            raise NotFound("This list is not shared with you any more.")
        name = await SharedListsRepository(self.session, self.owner_id, self.clock).hold(shared.id)
        return TaskPlace(owner_id=shared.owner_id, name=name)

    def _own(self, name: str) -> TaskPlace:
        return TaskPlace(owner_id=self.owner_id, name=name)

    async def _lay_down(self, place: TaskPlace, values: dict[str, Any]) -> None:
        """Insert a task on a list that `_held` or `_hold` found, unless its id stands already."""
        row = {**values, "owner_id": place.owner_id, "list_name": place.name}
        await self.session.execute(self._upsert(TaskTable, row).on_conflict_do_nothing())

    async def _end_of(self, place: TaskPlace) -> int:
        statement = select(func.coalesce(func.max(TaskTable.position), 0) + 1).where(_stands_at(place))
        return int((await self.session.execute(statement)).scalar_one())

    # --- ticking

    async def _tick(self, id: str, expected_version: int | None, *, is_done: bool) -> TaskRow:
        """Of two who do it at once, one has done it."""
        task = await self.get(id)
        if task.is_done == is_done:
            return task
        change = self._change(TaskTable).where(TaskTable.id == id, TaskTable.is_done != is_done)
        if expected_version is not None:
            change = change.where(TaskTable.version == expected_version)
        values = {"is_done": is_done, "version": TaskTable.version + 1, "updated_at": self.clock()}
        touched = await self._touched(change.values(**values, **self._ticked(is_done=is_done)), TaskTable.id)
        now = await self.get(id)
        if not touched and now.is_done != is_done:
            raise Conflict(f"The task {task.title!r} was changed in the meantime. Check it again.")
        return now

    def _ticked(self, *, is_done: bool) -> dict[str, Any]:
        return {"done_at": self.clock() if is_done else None, "done_by": self.owner_id if is_done else None}


def _stands_at(place: TaskPlace | SharedListRow) -> ColumnElement[bool]:
    return and_(TaskTable.owner_id == place.owner_id, TaskTable.list_name == place.name)
