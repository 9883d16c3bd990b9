"""The conversations that go on in chats at a messenger: the current one of each, and a new one where there is none.

A group's chat is read by others. So it has no tools and no memory, its name on the page says so, and what its person
writes to it on the page does not come into what the group asks later: the group goes on in a new conversation then.
"""

from collections.abc import Callable

from msgspec import Struct

from cortex.base.errors import NotFound
from cortex.base.role import ToolMode
from cortex.base.user import User
from cortex.ports.messengers import ChatClosed, Incoming, Messenger
from cortex.services.chat.conversations import ConversationsService
from cortex.services.messengers import words
from cortex.services.runtime import Runtime
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.messengers import ChatRow, InboxRow, LinkRow, MessengersRepository
from cortex.storage.turns import TurnsRepository

GROUP_CHARS = 40


class Places(Struct, frozen=True, kw_only=True):
    """The conversations of one messenger's chats. `begun`: called when another one goes on in a chat."""

    runtime: Runtime
    conversations: ConversationsService
    begun: Callable[[], None]

    async def current(self, user: User, link: LinkRow, row: InboxRow, item: Incoming) -> str:
        """The conversation that what came belongs to; a new one where there is none."""
        found = await self.known(user, link, row.chat)
        if found is None or (item.group and await self._is_written_elsewhere(link, found)):
            return await self.begin(user, link, row, item)
        if item.group and (await self.conversations.get(user, found)).uses_memory:  # switched on, on the page
            await self.conversations.set_memory(user, found, is_used=False)
        return found

    async def known(self, user: User, link: LinkRow, chat: str) -> str | None:
        """The conversation that goes on in this chat, None where there is none."""
        for one in await self.own(link).chats(link.id):
            if one.is_current and one.chat == chat:
                try:
                    return (await self.conversations.get(user, one.conversation_id)).id
                except NotFound:  # it was deleted on the page
                    return None
        return None

    async def begin(self, user: User, link: LinkRow, row: InboxRow, item: Incoming) -> str:
        """A new conversation for this chat."""
        role = "chat" if item.group else "orchestrator"
        mode: ToolMode = "chat" if item.group else "auto"
        made = await self.conversations.new(user, role=role, mode=mode, once=f"{link.id}:{row.id}")
        if item.group:
            await self.conversations.set_memory(user, made.id, is_used=False)
        chat = ChatRow(
            conversation_id=made.id,
            owner_id=user.id,
            link_id=link.id,
            chat=row.chat,
            is_group=bool(item.group),
            is_current=True,
            told_seq=0,
            told_part=0,
            is_sending=False,
        )
        async with self.runtime.db.transaction(user.id) as repository:
            if item.group:
                title = f"Group {item.group[:GROUP_CHARS]}: others read this chat"
                await repository(ConversationsRepository).rename(made.id, title, is_tainted=True)
            await repository(MessengersRepository).begin_chat(chat)
        self.begun()  # it is followed ahead of its first question, of which nobody needs to be notified then
        return made.id

    async def enter(self, messenger: Messenger, link: LinkRow, item: Incoming) -> tuple[str, str]:
        """Go where the person asked Cortex to; or meet them elsewhere, if it cannot read there. A reply, and where."""
        try:
            chat = await messenger.enter(item.chat)
        except ChatClosed:
            return "", ""
        if item.group:
            return "", ""
        await self.own(link).move_to(link.id, item.chat, chat)
        self.begun()
        here = "" if chat == link.chat else words.ENTERED  # one that is told of twice is entered once
        return (here if chat == item.chat else words.SEALED), chat

    async def _is_written_elsewhere(self, link: LinkRow, conversation_id: str) -> bool:
        """Tell whether the newest of its messages did not come from there."""
        turns = await self.runtime.db.repository(TurnsRepository, link.owner_id).list(conversation_id, limit=1)
        return bool(turns) and not await self.own(link).has_turn(link.id, turns[-1].id)

    def own(self, link: LinkRow) -> MessengersRepository:
        """Return the rows of whose link this is."""
        return self.runtime.db.repository(MessengersRepository, link.owner_id)
