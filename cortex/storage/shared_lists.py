"""Which task lists are shared, and with whom. A list is the tasks of one owner under one name (`storage/tasks.py`).

Whoever is given a list sees nothing of it before they accept it. What is written there until then they will read all
the same, so the gate counts them (`SharedListRow.readers`), and accepting asks nobody anew.
"""

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from msgspec import Struct, field
from sqlalchemy import ColumnElement, Select, and_, delete, exists, func, or_, select, update

from cortex.base.errors import Conflict, NotFound
from cortex.base.ids import new_id
from cortex.storage.repository import Repository, reading
from cortex.storage.schema import AccountTable, TaskListMemberTable, TaskListTable, TaskTable


class SharedListRow(Struct, frozen=True, kw_only=True):
    """A shared list as one person sees it. `owner`: its owner's name, "" for the reader's own; `people`: id -> name.

    `people` are all who see it besides the reader: its owner first, then the members by name; closed accounts are not
    among them. `later`: those who will see it once they accept it, or once their account is open again.
    """

    id: str
    owner_id: str
    owner: str
    name: str
    people: dict[str, str]
    later: dict[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Return what the reader calls it: its name, and whose it is."""
        return labelled(self.name, self.owner)

    @property
    def with_whom(self) -> tuple[str, ...]:
        """Names of all who see it besides the reader."""
        return tuple(self.people.values())

    @property
    def readers(self) -> str:
        """A key of this list with exactly those who read it, now or later; "" where nobody else does."""
        everybody = sorted({*self.people, *self.later})
        return f"list:{self.id}:{sha256(' '.join(everybody).encode()).hexdigest()[:16]}" if everybody else ""

    @property
    def read_by(self) -> str:
        """Its name and all of those, for the person who is asked about them."""
        return f"{self.label}, shared with {', '.join([*self.people.values(), *self.later.values()])}"


class InvitationRow(Struct, frozen=True, kw_only=True):
    """A list that somebody shares with a person who has not answered yet. `owner`: that somebody's name."""

    id: str
    owner_id: str
    owner: str
    name: str
    added_at: datetime


def labelled(name: str, owner: str) -> str:
    """A list's name as it is shown; `owner`: "" for the reader's own."""
    return f"{name} ({owner})" if owner else name


class SharedListsRepository(Repository):
    """The shared lists that one person owns or sees."""

    @reading
    async def list(self) -> Sequence[SharedListRow]:
        """All of them, by name."""
        found = (await self.session.execute(self._visible().order_by(TaskListTable.name, AccountTable.name))).all()
        members = await self._members([row.id for row in found])
        return [
            SharedListRow(
                id=row.id,
                owner_id=row.owner_id,
                owner="" if row.owner_id == self.owner_id else row.owner,
                name=row.name,
                people=self._besides(
                    {**({row.owner_id: row.owner} if row.is_active else {}), **members.get((row.id, True), {})}
                ),
                later=self._besides(
                    {**({} if row.is_active else {row.owner_id: row.owner}), **members.get((row.id, False), {})}
                ),
            )
            for row in found
        ]

    @reading
    async def readers(self, owner_id: str, name: str) -> Sequence[str]:
        """Ids of all who see this list, its owner and this person among them; nobody else's where it is not shared."""
        row = next((one for one in await self.list() if (one.owner_id, one.name) == (owner_id, name)), None)
        return sorted({self.owner_id, *(row.people if row else ())})

    @reading
    async def invitations(self) -> Sequence[InvitationRow]:
        """The lists that this person was given and has neither accepted nor declined, the oldest first."""
        columns: list[Any] = [TaskListTable.id, TaskListTable.owner_id, AccountTable.name.label("owner")]
        statement = (
            select(*columns, TaskListTable.name, TaskListMemberTable.added_at)
            .join(AccountTable, AccountTable.id == TaskListTable.owner_id)
            .join(TaskListMemberTable, TaskListMemberTable.list_id == TaskListTable.id)
            .where(*self._is_invited(), AccountTable.is_active)
        )
        return await self._all(InvitationRow, statement.order_by(TaskListMemberTable.added_at, TaskListTable.id))

    @reading
    async def invited(self, name: str) -> Sequence[str]:
        """Ids of those whom the person gave their own list and who have not answered yet."""
        statement = (
            select(TaskListMemberTable.member_id)
            .join(TaskListTable, TaskListTable.id == TaskListMemberTable.list_id)
            .where(self._reach(TaskListTable), TaskListTable.name == name, TaskListMemberTable.accepted_at.is_(None))
        )
        return (await self.session.execute(statement)).scalars().all()

    async def accept(self, list_id: str) -> SharedListRow:
        """See the list from now on; one that was accepted before stays. NotFound for one that is not offered."""
        change = update(TaskListMemberTable).where(TaskListMemberTable.list_id == list_id, *self._is_invited())
        await self.session.execute(change.values(accepted_at=self.clock()))
        row = next((one for one in await self.list() if one.id == list_id and one.owner), None)
        if row is None:
            raise NotFound("This list is not shared with you any more.")
        return row

    async def decline(self, list_id: str) -> None:
        """Refuse it; its owner can offer it again. NotFound for one that is not offered."""
        gone = delete(TaskListMemberTable).where(TaskListMemberTable.list_id == list_id, *self._is_invited())
        await self._must_touch(gone, TaskListMemberTable.list_id, "This list is not offered to you any more.")

    def _is_invited(self) -> tuple[ColumnElement[bool], ...]:
        return TaskListMemberTable.member_id == self.owner_id, TaskListMemberTable.accepted_at.is_(None)

    async def share(self, name: str, member_ids: Sequence[str]) -> Sequence[str]:
        """Offer the person's own list to these people, and to nobody else; ids of those who had it not before.

        They see it once they accept it.
        Nobody: sharing ends, and the tasks stay with the owner. NotFound for a list or an account that is not there.
        """
        await self._must_be_own(name)
        wanted = sorted(set(member_ids) - {self.owner_id})
        known = select(AccountTable.id).where(AccountTable.id.in_(wanted), AccountTable.is_active)
        if set((await self.session.execute(known)).scalars()) != set(wanted):
            raise NotFound("This account does not exist, or it is closed.")
        if not wanted:
            await self.session.execute(self._remove(TaskListTable).where(TaskListTable.name == name))
            return []
        values = {"id": new_id(self.clock), "name": name, "created_at": self.clock()}
        await self.session.execute(self._insert(TaskListTable, values).on_conflict_do_nothing())
        own = select(TaskListTable.id).where(self._reach(TaskListTable), TaskListTable.name == name)
        list_id = (await self.session.execute(own.with_for_update())).scalar_one()
        gone = delete(TaskListMemberTable).where(
            TaskListMemberTable.list_id == list_id, TaskListMemberTable.member_id.not_in(wanted)
        )
        await self.session.execute(gone)
        rows = [{"list_id": list_id, "member_id": one, "added_at": self.clock()} for one in wanted]
        added = self._upsert(TaskListMemberTable, *rows).on_conflict_do_nothing()
        return (await self.session.execute(added.returning(TaskListMemberTable.member_id))).scalars().all()

    async def rename(self, name: str, new: str) -> None:
        """Call the person's own list otherwise, for all who see it. Conflict when they have a list of that name."""
        await self._must_be_own(name)
        if name == new:
            return
        if await self._is_own(new):
            raise Conflict(f"You have a list {new!r} already; move its tasks, or choose another name.")
        # The list first: who adds to it meanwhile holds its row, and the tasks are taken along when they are done.
        await self.session.execute(self._change(TaskListTable).where(TaskListTable.name == name).values(name=new))
        values = {"list_name": new, "version": TaskTable.version + 1, "updated_at": self.clock()}
        await self.session.execute(self._change(TaskTable).where(TaskTable.list_name == name).values(**values))

    async def leave(self, list_id: str) -> SharedListRow:
        """See it no longer; what it was. NotFound for a list that is not shared with this person, their own too."""
        row = next((one for one in await self.list() if one.id == list_id and one.owner), None)
        own = delete(TaskListMemberTable).where(
            TaskListMemberTable.list_id == list_id, TaskListMemberTable.member_id == self.owner_id
        )
        if row is None or not await self._touched(own, TaskListMemberTable.list_id):
            raise NotFound("This list is not shared with you.")
        return row

    async def hold(self, list_id: str) -> str:
        """Keep the list, and the person's place in it, as they are until this transaction ends; its name as it is now.

        NotFound when it is not shared with them any more.
        """
        statement = (
            select(TaskListTable.name)
            .join(TaskListMemberTable, TaskListMemberTable.list_id == TaskListTable.id)
            .where(TaskListTable.id == list_id, *_has_accepted(self.owner_id))
        )
        name = (await self.session.execute(statement.with_for_update(read=True))).scalar_one_or_none()
        if name is None:
            raise NotFound("This list is not shared with you any more.")
        return name

    async def _members(self, list_ids: Sequence[str]) -> dict[tuple[str, bool], dict[str, str]]:
        """List's id and whether they see it now (accepted, account open) -> id -> name of the members, by name."""
        if not list_ids:
            return {}
        sees = and_(AccountTable.is_active, TaskListMemberTable.accepted_at.is_not(None))
        statement = (
            select(TaskListMemberTable.list_id, sees, AccountTable.id, AccountTable.name)
            .join(AccountTable, AccountTable.id == TaskListMemberTable.member_id)
            .where(TaskListMemberTable.list_id.in_(list_ids))
            .order_by(AccountTable.name_key)
        )
        found: dict[tuple[str, bool], dict[str, str]] = {}
        for list_id, is_now, id, name in (await self.session.execute(statement)).all():
            found.setdefault((list_id, bool(is_now)), {})[id] = name
        return found

    def _besides(self, people: dict[str, str]) -> dict[str, str]:
        return {id: name for id, name in people.items() if id != self.owner_id}

    def _visible(self) -> Select[str, str, str, str, bool]:
        mine = exists().where(TaskListMemberTable.list_id == TaskListTable.id, *_has_accepted(self.owner_id))
        columns = (TaskListTable.id, TaskListTable.owner_id, TaskListTable.name)
        return (
            select(*columns, AccountTable.name.label("owner"), AccountTable.is_active)
            .join(AccountTable, AccountTable.id == TaskListTable.owner_id)
            .where(or_(self._reach(TaskListTable), mine))
        )

    async def _must_be_own(self, name: str) -> None:
        if not await self._is_own(name):
            raise NotFound("You have no such list; only its owner can share or rename a list.")

    async def _is_own(self, name: str) -> bool:
        """Tell whether the person has a list of exactly this name, shared or not."""
        named = (
            exists().where(self._reach(TaskTable), TaskTable.list_name == name),
            exists().where(self._reach(TaskListTable), TaskListTable.name == name),
        )
        return bool((await self.session.execute(select(or_(*named)))).scalar_one())


def is_shared_with(reader_id: str) -> ColumnElement[bool]:
    """Tell whether a row of tasks stands on a list shared with this person: the membership every query joins."""
    return exists().where(
        TaskListTable.owner_id == TaskTable.owner_id,
        TaskListTable.name == TaskTable.list_name,
        TaskListMemberTable.list_id == TaskListTable.id,
        *_has_accepted(reader_id),
    )


def _has_accepted(person_id: str) -> tuple[ColumnElement[bool], ...]:
    return TaskListMemberTable.member_id == person_id, TaskListMemberTable.accepted_at.is_not(None)


def has_name(wanted: str) -> ColumnElement[bool]:
    """Tell whether a row of tasks stands on a list of this name, in any case."""
    return func.lower(TaskTable.list_name) == wanted.lower()
