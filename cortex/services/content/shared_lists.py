"""Sharing a task list: its owner says with whom, renames it and ends it; who is given it accepts first, and may leave.

A person who is offered a list is notified of it once; before they accept, nothing of it reaches them or their
assistant. Its tasks are `tasks.py`'s.
"""

from collections.abc import Sequence

from msgspec import Struct

from cortex.base.errors import NotFound, UserError
from cortex.base.form_words import one_line
from cortex.base.ids import new_id
from cortex.base.user import User
from cortex.ports.engine import Hub
from cortex.services.content.tasks import INBOX, LIST_CHARS_MAX, announce_lists
from cortex.services.notifier import Notifier, notify
from cortex.storage.accounts import AccountsRepository
from cortex.storage.db import Database
from cortex.storage.notices import NoticesRepository, NoticeValues
from cortex.storage.shared_lists import InvitationRow as InvitationRow
from cortex.storage.shared_lists import SharedListRow as SharedListRow
from cortex.storage.shared_lists import SharedListsRepository
from cortex.storage.tasks import TaskListRow, TasksRepository


class ListPerson(Struct, frozen=True, kw_only=True):
    """Somebody with whom a list can be shared. `is_in`: it is; `is_invited`: it is offered to them."""

    id: str
    name: str
    is_in: bool
    is_invited: bool = False


class ListSharing(Struct, frozen=True, kw_only=True):
    """A list as its sharing page shows it. `people`: everybody else of the server, for its owner alone."""

    row: TaskListRow
    people: tuple[ListPerson, ...] = ()


class SharedLists(Struct, frozen=True, kw_only=True):
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
        invited = await self.db.repository(SharedListsRepository, user.id).invited(row.name)
        others = (one for one in accounts if one.is_active and one.id != user.id)
        return ListSharing(
            row=row,
            people=tuple(
                ListPerson(id=one.id, name=one.name, is_in=one.id in seen, is_invited=one.id in invited)
                for one in others
            ),
        )

    async def invitations(self, user: User) -> Sequence[InvitationRow]:
        """The lists that were offered to this person and wait for an answer, the oldest first."""
        return await self.db.repository(SharedListsRepository, user.id).invitations()

    async def accept(self, user: User, list_id: str) -> SharedListRow:
        """See an offered list from now on; NotFound."""
        async with self.db.transaction(user.id) as repository:
            row = await repository(SharedListsRepository).accept(list_id)
            await repository(NoticesRepository).settle(list_id)
        self._answered(user, {user.id, *row.people})
        return row

    async def decline(self, user: User, list_id: str) -> None:
        """Refuse an offered list; its owner sees that it is not shared with them. NotFound."""
        async with self.db.transaction(user.id) as repository:
            lists = repository(SharedListsRepository)
            offered = next((one for one in await lists.invitations() if one.id == list_id), None)
            await lists.decline(list_id)
            await repository(NoticesRepository).settle(list_id)
        self._answered(user, {user.id, *([offered.owner_id] if offered else ())})

    def _answered(self, user: User, readers: set[str]) -> None:
        announce_lists(self.hub, readers)
        self.notifier.wake(user.id)

    async def share(self, user: User, name: str, people: Sequence[str]) -> Sequence[str]:
        """Offer the person's own list to exactly these people; their names. Nobody: sharing ends.

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
            invited = await lists.invited(name)
        announce_lists(self.hub, {*before, *after, *added})
        for one in added:
            await self._notify(user, one, row.id if row else "", name)
        accounts = await self.db.repository(AccountsRepository).list()
        return [one.name for one in accounts if row and one.id in {*row.people, *invited}]

    async def rename(self, user: User, name: str, new: str) -> str:
        """Call the person's own list otherwise, for all who see it; the new name. Conflict when they have one so."""
        if INBOX in (name.casefold(), new.strip().casefold()):
            raise UserError("The inbox cannot be renamed, and no other list can be called inbox.", field="new_name")
        words = one_line(new, LIST_CHARS_MAX, "new_name", "Enter a name for the list.")
        async with self.db.transaction(user.id) as repository:
            await repository(SharedListsRepository).rename(name, words)
            readers = await repository(SharedListsRepository).readers(user.id, words)
        announce_lists(self.hub, readers)
        return words

    async def leave(self, user: User, list_id: str) -> SharedListRow:
        """See somebody else's list no longer; what it was. What the person put on it stays there."""
        row = await self.db.repository(SharedListsRepository, user.id).leave(list_id)
        announce_lists(self.hub, {user.id, *row.people})
        return row

    async def _notify(self, user: User, member_id: str, list_id: str, name: str) -> None:
        values = NoticeValues(
            kind="message",
            title=f"{user.name} wants to share a list with you: {name}"[:200],
            text="It waits under To do for your answer. Before you accept, neither you nor your assistant sees it.",
            path="/tasks",
            subject_id=list_id,
            is_tainted=True,  # a list's name is its owner's words
        )
        await notify(self.db, self.notifier, member_id, f"list:{new_id(self.db.clock)}", values)
