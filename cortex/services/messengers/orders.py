"""The orders that people write in a messenger: another chat, an end to the answer, the models, the last answer."""

from msgspec import Struct

from cortex.base.user import User
from cortex.ports.messengers import Incoming
from cortex.services.chat.chat import Chat
from cortex.services.chat.transcript_views import TextPart
from cortex.services.messengers import words
from cortex.services.messengers.places import Places
from cortex.storage.messengers import InboxRow, LinkRow


class Orders(Struct, frozen=True, kw_only=True):
    """Carries them out."""

    chat: Chat
    places: Places

    async def do(self, user: User, link: LinkRow, row: InboxRow, item: Incoming, sign: str) -> str | None:
        """Do what was ordered: what is to be said of it. None where it is no order, but said to the model.

        `sign`: what stands ahead of orders there.
        """
        order, rest = words.order_of(item)
        if order is None:
            return None
        if order == "help":
            return words.help_of(sign)
        if order == "new":
            await self.places.begin(user, link, row, item)
            return words.NEW
        here = await self.places.known(user, link, row.chat)
        if here is None:
            return words.NO_CHAT
        if order == "stop":
            is_running = await self.is_running(user, here)
            await self.chat.stop(user, here)
            return "" if is_running else words.NOT_RUNNING
        if order == "last":
            return await self._last(user, link, here, item)
        return words.NOT_IN_GROUPS if item.group else await self._model(user, here, rest, sign)

    async def stops(self, user: User, link: LinkRow, row: InboxRow, item: Incoming) -> bool:
        """Tell whether this would end an answer that is being written now."""
        if words.order_of(item)[0] != "stop":
            return False
        here = await self.places.known(user, link, row.chat)
        return here is not None and await self.is_running(user, here)

    async def is_running(self, user: User, conversation_id: str) -> bool:
        """Tell whether an answer is being written."""
        return bool((await self.places.conversations.get(user, conversation_id)).running_turn)

    async def _last(self, user: User, link: LinkRow, conversation_id: str, item: Incoming) -> str:
        """The newest answer, as a page would show it; in a group, of what was asked there."""
        turns = (await self.chat.log(user, conversation_id, turns=5)).folded().turns
        for turn in reversed(turns):
            said = [part.text for part in turn.parts if isinstance(part, TextPart) and part.text]
            if said and not (item.group and not await self.places.own(link).has_turn(link.id, turn.id)):
                return "\n\n".join(said)
        return words.NO_ANSWER

    async def _model(self, user: User, conversation_id: str, name: str, sign: str) -> str:
        names = [entry.name for entry in (await self.chat.models.registry(user)).entries]
        if not name:
            chosen = (await self.places.conversations.get(user, conversation_id)).model
            return words.models(names, chosen, sign)
        wanted = (
            ""
            if name.casefold() == "usual"
            else next((one for one in names if one.casefold() == name.casefold()), name)
        )
        await self.chat.set_model(user, conversation_id, wanted)
        return f"From the next message on: {wanted or 'the usual model'}."
