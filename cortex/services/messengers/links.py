"""Who is who at messengers: linked by a code that somebody got there and enters on the page; once, for ten minutes."""

from collections.abc import Callable, Sequence
from datetime import timedelta

from msgspec import Struct

from cortex.base.errors import Conflict, Throttled, UserError
from cortex.base.ids import new_id
from cortex.base.user import User
from cortex.ports.messengers import Messenger
from cortex.services.integrations.clients import IntegrationClients
from cortex.services.integrations.integrations import Integrations
from cortex.services.messengers.words import strangers_of
from cortex.services.notifier import Notifier
from cortex.services.runtime import Runtime
from cortex.storage.accounts import AccountsRepository
from cortex.storage.audit import AuditRepository
from cortex.storage.db import Opener
from cortex.storage.messengers import AllMessengersRepository, GuestRow, LinkRow, MessengersRepository
from cortex.storage.notices import NoticeValues

TRIES_FREE, TRY_WINDOW = 5, timedelta(minutes=15)
WRONG = "This code is wrong or too old. Write to the bot again; after ten minutes it sends a new one."


class MessengerView(Struct, frozen=True, kw_only=True):
    """A messenger as its page shows it. `link`: the person's own account there, None for none; `handle`: Cortex's.

    `is_crowded`: so many strangers write that the next one is not answered.
    """

    name: str
    title: str
    link: LinkRow | None = None
    handle: str = ""
    is_crowded: bool = False


class MessengerLinks(Struct, frozen=True, kw_only=True):
    """The links of people. `changed`: called when somebody is linked."""

    runtime: Runtime
    clients: IntegrationClients
    notifier: Notifier
    changed: Callable[[], None]

    async def list(self, user: User) -> Sequence[MessengerView]:
        """The messengers that are set up and open to this person."""
        links = {link.messenger: link for link in await self._own(user).links()}
        kinds = [kind for kind in self.integrations.kinds if Messenger in kind.opens]
        self.changed()  # whoever looks here may just have set one up
        found = []
        for kind in [one for one in kinds if await self.integrations.names(one.name, user.id)]:
            client: Messenger = await self.clients.peek(kind.name, user_id=user.id)
            link = links.get(kind.name)
            tries = self.runtime.db.repository(AccountsRepository)
            is_crowded = link is None and await tries.has_to_wait(strangers_of(kind.name))
            found.append(
                MessengerView(name=kind.name, title=kind.title, link=link, handle=client.handle, is_crowded=is_crowded)
            )
        return found

    @property
    def integrations(self) -> Integrations:
        """Return what is set up here."""
        return self.clients.integrations

    async def look(self, user: User, code: str) -> GuestRow:
        """Whose code this is. UserError for a wrong one, Throttled after many."""
        key = f"messenger-code:{user.id}"
        async with self.runtime.db.transaction() as repository:
            wait_s = await repository(AccountsRepository).try_now(key, TRIES_FREE, TRY_WINDOW, TRY_WINDOW)
        if wait_s:
            raise Throttled(f"Too many tries. Wait {int(wait_s) + 1} seconds, then try again.", wait_s=wait_s)
        found = await self._guest(self.runtime.db.repository(AllMessengersRepository), user, code)
        await self.runtime.db.repository(AccountsRepository).give_try_back(key)  # a good one is no guess
        return found

    async def link(self, user: User, code: str) -> LinkRow:
        """Link whoever got this code with this person. UserError, Conflict, Throttled."""
        found = await self.look(user, code)
        id = new_id(self.runtime.clock)
        title = self.integrations.kind(found.messenger).title
        values = NoticeValues(
            kind="system",
            title=f"{title} was linked",
            text=f"{found.name} reads your chats there and acts in your name. Is that not you? Remove it there.",
            path="/account/messengers",
            tag=f"messenger-{found.messenger}",
            is_tainted=True,
        )
        draft = await self.notifier.draft(user.id, f"messenger:{id}", values)  # ahead of the link: by all other ways
        async with self.runtime.db.transaction(user.id) as repository:
            guest = await self._guest(repository(AllMessengersRepository), user, code)
            if await repository(MessengersRepository).link_at(guest.messenger) is not None:
                raise Conflict("Your account is linked there already. Remove that link first.")
            if not await repository(AllMessengersRepository).remove_guest(guest.messenger, guest.sender):
                raise UserError(WRONG, field="code")
            row = LinkRow(
                id=id,
                owner_id=user.id,
                messenger=guest.messenger,
                sender=guest.sender,
                chat=guest.chat,
                name=guest.name,
                created_at=self.runtime.clock(),
            )
            await repository(MessengersRepository).add_link(row)
            await repository(AuditRepository).add(user.id, "messenger.linked", guest.messenger, {"name": guest.name})
            await draft.write(repository)
        self.notifier.wake(user.id)
        self.changed()
        return row

    async def get(self, user: User, id: str) -> LinkRow:
        """One of their links; NotFound."""
        return await self._own(user).link(id)

    async def unlink(self, user: User, id: str) -> None:
        """Forget a link; the chats stay on the page. NotFound."""
        async with self.runtime.db.transaction(user.id) as repository:
            await end_link(repository, id, by=user.id)

    async def _guest(self, repository: AllMessengersRepository, user: User, code: str) -> GuestRow:
        digits = "".join(code.split()).replace("-", "")
        guest = await repository.guest_by_code(digits) if len(digits) == 8 else None
        if guest is None or not await self.integrations.names(guest.messenger, user.id):
            raise UserError(WRONG, field="code")
        return guest

    def _own(self, user: User) -> MessengersRepository:
        return self.runtime.db.repository(MessengersRepository, user.id)


async def end_link(repository: Opener, id: str, *, by: str) -> None:
    """Let nobody in by this link any more. NotFound."""
    link = await repository(MessengersRepository).link(id)
    await repository(MessengersRepository).remove_link(id)
    await repository(AuditRepository).add(by, "messenger.unlinked", link.messenger, {"name": link.name})
