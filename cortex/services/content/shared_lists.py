"""Sharing a task list: its owner says with whom, renames it and ends it; who sees it may leave.

A person who begins to see a list is notified of it. Its tasks are `tasks.py`'s.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cortex.base.errors import NotFound, UserError
from cortex.base.ids import new_id
from cortex.base.user import User
from cortex.ports.engine import Hub
from cortex.services.content.list_bell import tell
from cortex.services.content.tasks import INBOX, LIST_CHARS_MAX, one_line
from cortex.services.notifier import Notifier
from cortex.storage.accounts import AccountsRepository
from cortex.storage.db import Database
from cortex.storage.notices import NoticeValues
from cortex.storage.shared_lists import SharedListRow as SharedListRow
from cortex.storage.shared_lists import SharedListsRepository
from cortex.storage.tasks import TaskListRow, TasksRepository


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody with whom a list can be shared. `is_in`: it is."""

    id: str
    name: str
    is_in: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSharing:
    """A list as its sharing page shows it. `people`: everybody else of the server, for its owner alone."""

    row: TaskListRow
    people: tuple[Person, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLists:
    """One person's lists at a time; every method takes whose."""

    db: Database
    hub: Hub
    notifier: Notifier

    async def sharing(self, user: User, label: str) -> ListSharing:
        """The list that the person calls so, and with whom it is and can be shared; NotFound."""
        lists = await self.db.repository(TasksRepository, user.id).lists()
        row = next((one for one in lists if one.label == label), None)
        if row is None:
            raise NotFound("You do not have this list.")
        if row.owner:
            return ListSharing(row=row)
        accounts = await self.db.repository(AccountsRepository).list()
        seen = row.shared.people if row.shared else {}
        others = (one for one in accounts if one.is_active and one.id != user.id)
        return ListSharing(
            row=row, people=tuple(Person(id=one.id, name=one.name, is_in=one.id in seen) for one in others)
        )

    async def share(self, user: User, name: str, people: Sequence[str]) -> Sequence[str]:
        """Let exactly these people see the person's own list; their names. Nobody: sharing ends.

        NotFound for a list that is not theirs, and for an account that is not there.
        """
        if name.casefold() == INBOX:
            raise UserError("The inbox cannot be shared, because tasks without a list go there. Share another list.")
        async with self.db.transaction(user.id) as repository:
            lists = repository(SharedListsRepository)
            before = await lists.readers(user.id, name)
            added = await lists.share(name, people)
            after = await lists.readers(user.id, name)
            row = next((one for one in await lists.list() if not one.owner and one.name == name), None)
        tell(self.hub, {*before, *after})
        for one in added:
            await self._notify(user, one, name)
        return row.with_whom if row else ()

    async def rename(self, user: User, name: str, new: str) -> str:
        """Call the person's own list otherwise, for all who see it; the new name. Conflict when they have one so."""
        if INBOX in (name.casefold(), new.strip().casefold()):
            raise UserError("The inbox cannot be renamed, and no other list can be called inbox.", field="new_name")
        words = one_line(new, LIST_CHARS_MAX, "new_name", "Enter a name for the list.")
        async with self.db.transaction(user.id) as repository:
            await repository(SharedListsRepository).rename(name, words)
            readers = await repository(SharedListsRepository).readers(user.id, words)
        tell(self.hub, readers)
        return words

    async def leave(self, user: User, list_id: str) -> SharedListRow:
        """See somebody else's list no longer; what it was. What the person put on it stays there."""
        row = await self.db.repository(SharedListsRepository, user.id).leave(list_id)
        tell(self.hub, {user.id, *row.people})
        return row

    async def _notify(self, user: User, member_id: str, name: str) -> None:
        values = NoticeValues(
            kind="message",
            title=f"{user.name} shared a list with you: {name}"[:200],
            text="You can add, change and complete its tasks. You can leave it on the list's page.",
            path="/tasks",
            is_tainted=True,  # a list's name is its owner's words
        )
        draft = await self.notifier.draft(member_id, f"list:{new_id(self.db.clock)}", values)
        async with self.db.transaction(member_id) as repository:
            await draft.write(repository)
        self.notifier.wake(member_id)
