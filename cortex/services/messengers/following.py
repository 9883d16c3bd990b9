"""Follows the log of a chat and sends what is new of it, each message once, in order, whatever is killed meanwhile."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base.errors import CortexError, NotFound, ServiceDown, ToolFailed
from cortex.base.events import Event
from cortex.integrations.files import Files
from cortex.ports.messengers import ChatClosed, Incoming, NotSent
from cortex.services.chat.streams import OpenStreams
from cortex.services.integrations.clients import IntegrationClients
from cortex.services.messengers.receiving import pause_s
from cortex.services.messengers.telling import Telling, ToldMessage
from cortex.services.messengers.words import CUT, NOT_SHOWN
from cortex.services.runtime import Runtime
from cortex.services.turns.approval_weight import Weighed
from cortex.storage.approvals import ApprovalsRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.home import Homes
from cortex.storage.messengers import ChatRow, MessengersRepository
from cortex.storage.turns import TurnsRepository

LOOK_S = 60.0
PICTURE_BYTES = 10_000_000
TYPING_S = 4.5  # the sign goes by itself after five

log = logging.getLogger(__name__)


class _Left(CortexError):
    """The chat is told no more by this process: its link went, or another process has the place."""


class _Place(Struct, kw_only=True):
    """A chat that is followed. `is_open`: what was sent last arrived; `buttons`: question -> the message below it."""

    telling: Telling
    is_allowed: Callable[[], bool]
    is_open: bool = True
    buttons: dict[str, str] = field(default_factory=dict)


class Following(Struct, frozen=True, kw_only=True):
    """Tells chats at one messenger. `site`: the address of the page; `holder`: of this process, that of the receiver.

    One whose sending broke, so that nobody knows whether it arrived, stays marked: the next look says so.
    """

    runtime: Runtime
    clients: IntegrationClients
    streams: OpenStreams
    name: str
    site: str
    holder: str
    homes: Homes

    async def follow(self, chat: ChatRow) -> None:
        """Until it ends, is cancelled, or its person may not read it any more."""
        id, hub, failures, seen, shown_at = chat.conversation_id, self.runtime.hub, 0, -1, 0.0
        if not await self.clients.integrations.names(self.name, chat.owner_id):
            return
        group = self.name if chat.is_group else ""
        telling = Telling(link=f"{self.site}/c/{id}", can_press=self._can_press, group=group)
        place = _Place(telling=telling, is_allowed=self.streams.allowed(chat.owner_id))
        with ExitStack() as seen_there, hub.watching(id):
            while place.is_allowed():
                heard = await hub.changed(id, -1, 0)  # ahead of the look: what comes in between is not missed
                try:
                    seen = await self._look(chat, place)
                except _Left:
                    return
                except ServiceDown as error:
                    seen_there.close()
                    failures += 1
                    await asyncio.sleep(pause_s(failures, error.wait_s if isinstance(error, NotSent) else 0.0))
                    continue
                if seen < 0:
                    return
                seen_there.close()
                if place.is_open and not chat.is_group:  # else its person sees nothing here, and is notified
                    seen_there.enter_context(self.streams.watching(chat.owner_id, id))
                failures, is_old = 0, False
                while not is_old and place.is_allowed():
                    is_writing = bool(telling.living - telling.silent)
                    if is_writing and self.runtime.ticks_s() - shown_at > TYPING_S:
                        shown_at = self.runtime.ticks_s()
                        await self._show_typing(chat)
                    before = heard
                    heard = await hub.changed(id, heard, TYPING_S if is_writing else LOOK_S)
                    fresh = hub.since(id, seen)
                    is_timeout = heard == before
                    # While an answer grows nothing is new but its open part, which is told when it ends.
                    is_old = fresh is None or bool(fresh) or (is_timeout and not is_writing)

    async def _look(self, chat: ChatRow, place: _Place) -> int:
        """Send what is new; up to which row the log was read. -1 where nothing more will be told."""
        own, id = self._own(chat), chat.conversation_id
        row = await own.chat(id)
        if row is None:
            return -1
        async with self.runtime.db.read_transaction(row.owner_id) as repository:
            try:
                conversation = await repository(ConversationsRepository).get(id)
            except NotFound:  # deleted on the page
                conversation = None
            queued = await repository(TurnsRepository).queued(id)
            asked = await repository(ApprovalsRepository).asked_in(id)
        if conversation is None:
            await own.end_chat(id)
            return -1
        events = await self._events(row, conversation.seq)
        await self._know(row, place.telling, events)
        for message in place.telling.messages(events):
            row = await self._send(row, message, place, is_asked=message.approval in {one.id for one in asked})
        if row.is_sending:  # nothing more comes of what was on its way
            row = await self._mend(row)
        await self._settle(row, place)
        if row.is_current or conversation.running_turn or queued or asked:
            return conversation.seq
        await own.end_chat(id)
        return -1

    async def _events(self, row: ChatRow, newest: int) -> Sequence[Event]:
        if newest <= row.told_seq:
            return ()
        conversations = self.runtime.db.repository(ConversationsRepository, row.owner_id)
        return await conversations.events(row.conversation_id, after=row.told_seq)

    async def _know(self, row: ChatRow, telling: Telling, events: Sequence[Event]) -> None:
        """Learn of turns that began ahead of what is new: who wrote them, and what their calls do."""
        telling_of = telling.silent | telling.living | telling.hidden | telling.waiting
        begun = {event.turn_id for event in events if event.kind == "message"}
        conversations = self.runtime.db.repository(ConversationsRepository, row.owner_id)
        for turn in {event.turn_id for event in events if event.turn_id} - begun - telling_of:
            before = await conversations.of_turn(row.conversation_id, turn)
            telling.learn(event for event in before if event.seq <= row.told_seq)

    async def _mend(self, row: ChatRow) -> ChatRow:
        """A kill, or a line that broke, left nobody who knows whether the last message went out.

        It is sent again where one that arrived is known again by its word; elsewhere that is said.
        """
        if (await self.clients.peek(self.name, user_id=row.owner_id)).is_repeatable:
            return await self._set(row, is_sending=False)
        try:  # twice said is better than not: what is missing is not found out otherwise
            await self._say(row, CUT)
        except ChatClosed as error:
            log.info("messengers: %s: a chat takes no messages: %s", self.name, error)
        return await self._set(row, told_part=row.told_part + 1, is_sending=False)

    async def _send(self, row: ChatRow, message: ToldMessage, place: _Place, *, is_asked: bool) -> ChatRow:
        """Send it from the part on that was not; a question that waits, and may not have arrived, is put once more."""
        async with self.clients.using(self.name, user_id=row.owner_id) as messenger:
            parts = await asyncio.to_thread(messenger.parts, message.text) if message.text else ()
        pictures = () if row.is_group else message.pictures  # they were made for one person
        told = [*(partial(self._picture, row, message, path) for path in pictures)]
        told += [
            partial(self._part, row, message, part, has_buttons=at == len(parts)) for at, part in enumerate(parts, 1)
        ]
        if row.is_sending and is_asked and row.told_part == len(told) - 1:
            row = await self._set(row, is_sending=False)
        elif row.is_sending:
            row = await self._mend(row)
        shown = ""
        for at in range(row.told_part, len(told)):
            own = self._own(row)
            if not place.is_allowed() or not await own.begin_part(row, self.name, self.holder):
                raise _Left("This chat is told no more from here.")
            try:
                shown = await told[at](once=f"{row.conversation_id}:{message.seq}:{at}")
                place.is_open = True
            except NotSent:
                await self._set(row, is_sending=False)
                raise
            except ChatClosed as error:  # the log stays, and nobody reads it there
                shown, place.is_open = "", False
                log.info("messengers: %s: a chat takes no messages: %s", self.name, error)
            row = await self._set(row, told_part=at + 1, is_sending=False)
        if message.approval and shown:
            await self.runtime.db.repository(ApprovalsRepository, row.owner_id).told(message.approval)
            if message.buttons:
                place.buttons[message.approval] = shown
        return await self._set(row, told_seq=message.seq, told_part=0, is_sending=False)

    async def _part(self, row: ChatRow, message: ToldMessage, part: str, *, has_buttons: bool, once: str) -> str:
        """Send it; the message's id there, "" where something else was said in its place. ChatClosed, ServiceDown."""
        buttons = message.buttons if has_buttons else ()
        async with self.clients.using(self.name, user_id=row.owner_id) as messenger:
            try:
                is_silent = message.is_silent
                return str(await messenger.send(row.chat, part, buttons=buttons, is_silent=is_silent, once=once))
            except ServiceDown:
                raise
            except ToolFailed as error:
                log.warning("messengers: %s: a message was refused: %s", self.name, error)
        await self._say(row, NOT_SHOWN, once=once)
        return ""

    async def _picture(self, row: ChatRow, message: ToldMessage, path: str, *, once: str) -> str:
        try:
            files = Files(self.homes.home_of(row.owner_id).path / "files")
            content = await files.read(path, limit_bytes=PICTURE_BYTES)
            async with self.clients.using(self.name, user_id=row.owner_id) as messenger:
                name, is_silent = path.rpartition("/")[2], message.is_silent
                return str(await messenger.send_picture(row.chat, name, content, is_silent=is_silent, once=once))
        except ServiceDown:
            raise
        except (ToolFailed, NotFound) as error:  # it was deleted, or it is none that can be shown there
            log.warning("messengers: %s: a picture was not sent: %s", self.name, error)
        await self._say(row, NOT_SHOWN, once=once)
        return ""

    async def _say(self, row: ChatRow, text: str, *, once: str = "") -> None:
        """Say this of something that is not there. ChatClosed where not even that is taken."""
        async with self.clients.using(self.name, user_id=row.owner_id) as messenger:
            try:
                for at, part in enumerate(messenger.parts(text)):
                    await messenger.send(row.chat, part, once=f"{once}:plain:{at}" if once else "")
            except ServiceDown:
                raise
            except ToolFailed as error:
                raise ChatClosed(error.message) from None

    async def _settle(self, row: ChatRow, place: _Place) -> None:
        """Take the buttons from questions that were answered elsewhere."""
        for approval in place.telling.take_answered():
            if message := place.buttons.pop(approval, ""):
                below = Incoming(position=0, kind="press", sender="", chat=row.chat, message=message)
                with suppress(ToolFailed):  # a press says by itself that it was answered
                    async with self.clients.using(self.name, user_id=row.owner_id) as messenger:
                        await messenger.settle(below, "", is_over=True)

    async def _show_typing(self, row: ChatRow) -> None:
        with suppress(ToolFailed):  # no more than a sign
            messenger = await self.clients.peek(self.name, user_id=row.owner_id)
            await messenger.typing(row.chat)

    async def _set(self, row: ChatRow, **values: int) -> ChatRow:
        """Keep how far it was told; the row as it is then."""
        await self._own(row).set_chat(row.conversation_id, **values)
        return replace(row, **values)

    def _can_press(self, tool_name: str, weighed: Weighed) -> bool:
        tool = self.runtime.registry.get(tool_name)
        return tool is not None and not tool.admin and weighed.weight != "high"

    def _own(self, row: ChatRow) -> MessengersRepository:
        return self.runtime.db.repository(MessengersRepository, row.owner_id)
