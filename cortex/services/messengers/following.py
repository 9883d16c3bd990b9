"""Follows the log of a chat and sends what is new of it, each message once, in order, whatever is killed meanwhile."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from msgspec import Struct

from cortex.base.errors import NotFound, ServiceDown, ToolFailed
from cortex.base.events import Event
from cortex.integrations.files import Files
from cortex.ports.messengers import ChatClosed, Messenger, NotSent
from cortex.services.chat.streams import OpenStreams
from cortex.services.integrations.clients import IntegrationClients
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
BACK_OFF_S = (1.0, 2.0, 5.0, 15.0, 60.0)

log = logging.getLogger(__name__)


class Following(Struct, frozen=True, kw_only=True):
    """Tells chats at one messenger. `site`: the address of the page.

    One whose sending broke, so that nobody knows whether it arrived, stays marked: the next look says so.
    """

    runtime: Runtime
    clients: IntegrationClients
    streams: OpenStreams
    name: str
    site: str
    homes: Homes

    async def follow(self, chat: ChatRow) -> None:
        """Until it ends, is cancelled, or its person may not read it any more."""
        id, hub, failures, seen, shown_at = chat.conversation_id, self.runtime.hub, 0, -1, 0.0
        telling = Telling(
            link=f"{self.site}/c/{id}", can_press=self._can_press, silent=set(), titles={}, lines=[], living=set()
        )
        with self.streams.watching(chat.owner_id, id) as is_allowed, hub.watching(id):
            while is_allowed():
                heard = await hub.changed(id, -1, 0)  # ahead of the look: what comes in between is not missed
                try:
                    seen = await self._look(chat, telling)
                except ServiceDown as error:
                    failures += 1
                    wait_s = error.wait_s if isinstance(error, NotSent) else 0.0
                    await asyncio.sleep(max(wait_s, BACK_OFF_S[min(failures, len(BACK_OFF_S)) - 1]))
                    continue
                if seen < 0:
                    return
                failures, is_old = 0, False
                while not is_old and is_allowed():
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

    async def _look(self, chat: ChatRow, telling: Telling) -> int:
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
        if row.is_sending:
            row = await self._mend(row)
        events = await self._events(row, conversation.seq)
        await self._know(row, telling, events)
        for message in telling.messages(events):
            row = await self._send(row, message)
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
        begun = {event.turn_id for event in events if event.kind == "message"}
        conversations = self.runtime.db.repository(ConversationsRepository, row.owner_id)
        for turn in {event.turn_id for event in events if event.turn_id} - begun - telling.silent - telling.living:
            for event in await conversations.of_turn(row.conversation_id, turn):
                if event.seq <= row.told_seq:
                    telling.messages([event])

    async def _mend(self, row: ChatRow) -> ChatRow:
        """A kill, or a line that broke, left nobody who knows whether the last message went out.

        It is sent again where one that arrived is known again by its word; elsewhere that is said.
        """
        messenger = await self.clients.peek(self.name, user_id=row.owner_id)
        told = row.told_part
        if not messenger.is_repeatable:
            await self._out(row, CUT)
            told += 1
        await self._own(row).set_chat(row.conversation_id, told_part=told, is_sending=False)
        return await self._again(row)

    async def _send(self, row: ChatRow, message: ToldMessage) -> ChatRow:
        own, id = self._own(row), row.conversation_id
        async with self.clients.using(self.name, user_id=row.owner_id) as messenger:
            parts = await asyncio.to_thread(messenger.parts, message.text) if message.text else ()
        pictures = () if row.is_group else message.pictures  # they were made for one person
        told = [*(partial(self._picture, row, message, path) for path in pictures)]
        last = len(parts) - 1
        told += [partial(self._part, row, message, part, is_last=at == last) for at, part in enumerate(parts)]
        for at in range(row.told_part, len(told)):
            await own.set_chat(id, is_sending=True)
            try:
                await told[at](once=f"{id}:{message.seq}:{at}")
            except NotSent:
                await own.set_chat(id, is_sending=False)
                raise
            except ChatClosed as error:  # the log stays, and nobody reads it there
                log.info("messengers: %s: a chat takes no messages: %s", self.name, error)
            await own.set_chat(id, told_part=at + 1, is_sending=False)
        if message.approval:
            await self.runtime.db.repository(ApprovalsRepository, row.owner_id).told(message.approval)
        await own.set_chat(id, told_seq=message.seq, told_part=0, is_sending=False)
        return await self._again(row)

    async def _part(self, row: ChatRow, message: ToldMessage, part: str, *, is_last: bool, once: str) -> None:
        buttons = message.buttons if is_last else ()
        async with self.clients.using(self.name, user_id=row.owner_id) as messenger:
            try:
                await messenger.send(row.chat, part, buttons=buttons, is_silent=message.is_silent, once=once)
            except ServiceDown:
                raise
            except ToolFailed as error:
                log.warning("messengers: %s: a message was refused: %s", self.name, error)
                await _plainly(messenger, row.chat, NOT_SHOWN, once=once)

    async def _picture(self, row: ChatRow, message: ToldMessage, path: str, *, once: str) -> None:
        try:
            files = Files(self.homes.home_of(row.owner_id).path / "files")
            content = await files.read(path, limit_bytes=PICTURE_BYTES)
            async with self.clients.using(self.name, user_id=row.owner_id) as messenger:
                name, is_silent = path.rpartition("/")[2], message.is_silent
                await messenger.send_picture(row.chat, name, content, is_silent=is_silent, once=once)
        except ServiceDown:
            raise
        except (ToolFailed, NotFound) as error:  # it was deleted, or it is none that can be shown there
            log.warning("messengers: %s: a picture was not sent: %s", self.name, error)
            await self._out(row, NOT_SHOWN, once=once)

    async def _out(self, row: ChatRow, text: str, *, once: str = "") -> None:
        async with self.clients.using(self.name, user_id=row.owner_id) as messenger:
            with suppress(ChatClosed):
                await _plainly(messenger, row.chat, text, once=once)

    async def _show_typing(self, row: ChatRow) -> None:
        with suppress(ToolFailed):  # no more than a sign
            messenger = await self.clients.peek(self.name, user_id=row.owner_id)
            await messenger.typing(row.chat)

    async def _again(self, row: ChatRow) -> ChatRow:
        return await self._own(row).chat(row.conversation_id) or row

    def _can_press(self, tool_name: str, weighed: Weighed) -> bool:
        tool = self.runtime.registry.get(tool_name)
        return tool is not None and not tool.admin and weighed.weight != "high"

    def _own(self, row: ChatRow) -> MessengersRepository:
        return self.runtime.db.repository(MessengersRepository, row.owner_id)


async def _plainly(messenger: Messenger, chat: str, text: str, *, once: str) -> None:
    for at, part in enumerate(messenger.parts(text)):
        await messenger.send(chat, part, once=f"{once}:plain:{at}" if once else "")
