"""What a linked person wrote, said or pressed, from their inbox to their chat; in order, each once.

What is run again after a kill acts on the same rows: turns and files have ids that follow from what came.
"""

import asyncio
import io
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cortex.base.errors import (
    Busy,
    Conflict,
    CortexError,
    DatabaseUnavailable,
    NotFound,
    ServiceDown,
    ToolFailed,
    UserError,
)
from cortex.base.ids import derived_id
from cortex.base.user import User
from cortex.ports.messengers import ChatClosed, Incoming, Messenger, NotSent, RemoteFile
from cortex.services.accounts.accounts import Accounts
from cortex.services.chat.chat import Chat
from cortex.services.chat.conversations import ConversationsService
from cortex.services.chat.transcript_views import TextPart
from cortex.services.content.documents import DocumentsService
from cortex.services.integrations.clients import IntegrationClients
from cortex.services.messengers import words
from cortex.services.runtime import Runtime
from cortex.services.turns.approval_weight import weigh
from cortex.services.turns.approvals import ApprovalsService
from cortex.storage.approvals import ApprovalRow, ApprovalsRepository
from cortex.storage.messengers import ChatRow, InboxRow, LinkRow, MessengersRepository
from cortex.toolkit.registry import Registry

BATCH_S = 1.0  # files that were sent at once come in one after the other, and nothing says which is the last
FILES_MOST = 10
CALLS = {"y": "once", "n": "deny"}
LATER = (DatabaseUnavailable, Busy, NotSent)  # no fault of what was written: it is tried again

SPEECH = "speech"  # the integration


class InboxResult(Struct, frozen=True, kw_only=True):
    """The end of something that came: a reply to it, where that goes if elsewhere, and the turn that it is."""

    reply: str = ""
    turn_id: str = ""
    chat: str = ""


class Conversing(Struct, frozen=True, kw_only=True):
    """Takes what came to people's chats. `name`: the messenger; `begun`: called when another chat goes on there."""

    runtime: Runtime
    name: str
    accounts: Accounts
    chat: Chat
    conversations: ConversationsService
    documents: DocumentsService
    approvals: ApprovalsService
    listener: "Listener"
    begun: Callable[[], None]

    async def work_off(self, messenger: Messenger, link: LinkRow) -> None:
        """Do all that waits of this person."""
        while rows := await self._own(link).inbox(link.id):
            await self._one(messenger, link, rows)

    async def _one(self, messenger: Messenger, link: LinkRow, rows: Sequence[InboxRow]) -> None:
        row, own = rows[0], self._own(link)
        if row.state == "new":
            user = await self.accounts.user(link.owner_id)
            item = msgspec.json.decode(row.payload, type=Incoming)
            if item.batch and item.kind == "message":
                item = await self._gathered(link, row, item)
            with suppress(ToolFailed):  # no more than a sign
                await messenger.seen(item)
            heard = await self._heard(messenger, user, link, row, item)
            state, chat = "replying" if heard.reply else "done", heard.chat or row.chat
            await own.set_inbox(row.id, state=state, reply=heard.reply, turn_id=heard.turn_id, chat=chat, payload="")
            row = replace(row, state=state, reply=heard.reply, chat=chat)
        if row.state == "replying" or (row.state == "sending" and messenger.is_repeatable):
            await own.set_inbox(row.id, state="sending")
            with suppress(ServiceDown):  # nobody waits for these words as for an answer: they are not tried again
                for at, part in enumerate(await asyncio.to_thread(messenger.parts, row.reply)):
                    await messenger.send(row.chat, part, once=f"{row.id}:{at}")
        await own.set_inbox(row.id, state="done", reply="")

    async def _gathered(self, link: LinkRow, row: InboxRow, item: Incoming) -> Incoming:
        """The files that were sent at once, as one message; from this commit on they are one row."""
        await asyncio.sleep(BATCH_S)
        rows = await self._own(link).inbox(link.id)
        others = [(one, msgspec.json.decode(one.payload, type=Incoming)) for one in rows[1:] if one.state == "new"]
        same = [(one, each) for one, each in others if each.batch == item.batch and each.kind == "message"]
        text = next((each.text for each in (item, *(each for _, each in same)) if each.text), "")
        files = (*item.files, *(file for _, each in same for file in each.files))
        whole = replace(item, text=text, files=files[:FILES_MOST], batch="")
        async with self.runtime.db.transaction(link.owner_id) as repository:
            own = repository(MessengersRepository)
            await own.set_inbox(row.id, payload=msgspec.json.encode(whole).decode())
            for one, _ in same:
                await own.set_inbox(one.id, state="done", payload="")
        return whole

    async def _heard(
        self, messenger: Messenger, user: User, link: LinkRow, row: InboxRow, item: Incoming
    ) -> InboxResult:
        """Do what it asks; whatever is refused is said in the words of the refusal."""
        if not user_may(link, item):
            return InboxResult()
        try:
            if item.kind == "press":
                return await self._pressed(messenger, user, item)
            if item.kind == "invite":
                return await self._entered(messenger, link, item)
            if item.group and item.chat not in messenger.groups:
                return InboxResult(reply=words.closed_group(item.chat))
            if item.kind in ("edit", "delete"):
                return await self._changed(user, link, row, item)
            order, rest = words.order_of(item)
            if order is not None:
                asked = words.Ordered(order=order, rest=rest, sign=messenger.sign, is_group=bool(item.group))
                return InboxResult(reply=await self._ordered(user, link, row, asked))
            return await self._said(messenger, user, link, row, item)
        except LATER:
            raise
        except CortexError as refused:
            return InboxResult(reply=refused.message)

    async def _said(
        self, messenger: Messenger, user: User, link: LinkRow, row: InboxRow, item: Incoming
    ) -> InboxResult:
        """A message to the model."""
        if item.is_own and item.chat != link.chat:
            await self._own(link).move_to(link.id, item.chat, item.chat)  # notices go where they wrote last
        text, is_tainted = words.message_of(item)
        attached = []
        for at, file in enumerate(item.files):
            content = await messenger.fetch(file, self.documents.limit_bytes)
            if file.is_voice:
                heard = await self.listener.heard(user, content, file.name)
                text = "\n\n".join(filter(None, (text, heard)))
            else:
                attached.append(await self._given(user, row, at, file, content))
        if not text and not attached:
            raise UserError(words.NO_WORDS)
        conversation_id = await self.current(user, link, item.chat, row.id, is_group=bool(item.group))
        turn_id = await self.chat.send_message(
            user,
            conversation_id,
            text,
            mode="chat" if item.group else None,
            role="chat" if item.group else None,
            is_tainted=is_tainted,
            attached=attached,
            once=row.id,
            via=self.name,
        )
        return InboxResult(turn_id=turn_id)

    async def _given(self, user: User, row: InboxRow, at: int, file: RemoteFile, content: bytes) -> str:
        """The file among the person's own; its id."""
        id = derived_id(row.id, "file", at)
        given = await self.documents.give(user, file.name, io.BytesIO(content), len(content), id=id)
        return given.id

    async def _entered(self, messenger: Messenger, link: LinkRow, item: Incoming) -> InboxResult:
        """Go where the person asked Cortex to; or meet them elsewhere, if it cannot read there."""
        try:
            chat = await messenger.enter(item.chat)
        except ChatClosed:
            return InboxResult()
        if item.group:
            return InboxResult()
        await self._own(link).move_to(link.id, item.chat, chat)
        self.begun()
        here = "" if chat == link.chat else words.ENTERED  # one that is told of twice is entered once
        return InboxResult(reply=here if chat == item.chat else words.SEALED, chat=chat)

    async def _changed(self, user: User, link: LinkRow, row: InboxRow, item: Incoming) -> InboxResult:
        """A message was changed: its answer is made anew. It was deleted: an answer that is being written ends.

        One that became no turn is passed over.
        """
        before = await self._own(link).of_message(link.id, item.chat, item.message)
        if before is None:
            return InboxResult()
        text, _ = words.message_of(item)
        place = await self.chat.place_of(user, before.turn_id)
        if item.kind == "delete":
            if (await self.conversations.get(user, place)).running_turn == before.turn_id:
                await self.chat.stop(user, place)
            return InboxResult(reply=words.DELETED)
        if await self._own(link).chat(place) is None:
            raise UserError(words.EARLIER)
        try:
            turn_id = await self.chat.edit(user, before.turn_id, text, once=row.id, via=self.name)
        except Conflict:  # it is being answered: what was meant is the new text
            await self.chat.stop(user, place)
            turn_id = await self.chat.edit(user, before.turn_id, text, once=row.id, via=self.name)
        return InboxResult(turn_id=turn_id)

    async def _pressed(self, messenger: Messenger, user: User, item: Incoming) -> InboxResult:
        """A yes or a no, bound to the person whom the question is put to, and to the question."""
        kind, _, approval_id = item.choice.partition(":")
        try:
            said = await self._answered(user, approval_id, CALLS[kind]) if kind in CALLS else words.UNKNOWN_BUTTON
        except NotFound:
            said = words.NOT_YOURS
        except Conflict as refused:
            said = refused.message
        with suppress(ServiceDown):  # what was answered holds, whether the button says so or not
            await messenger.settle(item, said, is_over=True)
        return InboxResult()

    async def _answered(self, user: User, approval_id: str, choice: str) -> str:
        """The answer given, or why it cannot be given here. NotFound, Conflict."""
        asked = await self.runtime.db.repository(ApprovalsRepository, user.id).get(approval_id)
        if choice == "once" and not may_be_pressed(self.runtime.registry, asked):
            return words.ELSEWHERE
        await self.approvals.answer(user, approval_id, choice)
        return words.ALLOWED if choice == "once" else words.DENIED

    async def _ordered(self, user: User, link: LinkRow, row: InboxRow, asked: words.Ordered) -> str:
        order = asked.order
        if order == "help":
            return words.help_of(asked.sign)
        if order == "new":
            await self._begin(user, link, row.chat, row.id, is_group=asked.is_group)
            return words.NEW
        here = await self._current(user, link, row.chat)
        if here is None:
            return words.NO_CHAT
        if order == "stop":
            is_running = (await self.conversations.get(user, here)).running_turn
            await self.chat.stop(user, here)
            return "" if is_running else words.NOT_RUNNING
        return await self._last(user, here) if order == "last" else await self._model(user, here, asked)

    async def _last(self, user: User, conversation_id: str) -> str:
        """The newest answer, as a page would show it."""
        turns = (await self.chat.log(user, conversation_id, turns=5)).folded().turns
        for turn in reversed(turns):
            said = [part.text for part in turn.parts if isinstance(part, TextPart) and part.text]
            if said:
                return "\n\n".join(said)
        return words.NO_ANSWER

    async def _model(self, user: User, conversation_id: str, asked: words.Ordered) -> str:
        name = asked.rest
        names = [entry.name for entry in (await self.chat.models.registry(user)).entries]
        if not name:
            chosen = (await self.conversations.get(user, conversation_id)).model
            return words.models(names, chosen, asked.sign)
        wanted = (
            ""
            if name.casefold() == "usual"
            else next((one for one in names if one.casefold() == name.casefold()), name)
        )
        await self.chat.set_model(user, conversation_id, wanted)
        return f"From the next message on: {wanted or 'the usual model'}."

    async def current(self, user: User, link: LinkRow, chat: str, cause: str, *, is_group: bool) -> str:
        """The conversation that goes on in this chat; a new one where there is none."""
        found = await self._current(user, link, chat)
        return found or await self._begin(user, link, chat, cause, is_group=is_group)

    async def _current(self, user: User, link: LinkRow, chat: str) -> str | None:
        for one in await self._own(link).chats(link.id):
            if one.is_current and one.chat == chat:
                try:
                    return (await self.conversations.get(user, one.conversation_id)).id
                except NotFound:  # it was deleted on the page
                    return None
        return None

    async def _begin(self, user: User, link: LinkRow, chat: str, cause: str, *, is_group: bool) -> str:
        """A new conversation for this chat. In a group others read along: no tools, no memory."""
        role = "chat" if is_group else "orchestrator"
        made = await self.conversations.new(
            user, role=role, mode="chat" if is_group else "auto", once=f"{link.id}:{cause}"
        )
        if is_group:
            await self.conversations.set_memory(user, made.id, is_used=False)
        row = ChatRow(
            conversation_id=made.id,
            owner_id=user.id,
            link_id=link.id,
            chat=chat,
            is_group=is_group,
            is_current=True,
            told_seq=0,
            told_part=0,
            is_sending=False,
        )
        async with self.runtime.db.transaction(user.id) as repository:
            await repository(MessengersRepository).begin_chat(row)
        self.begun()  # it is followed ahead of its first question, of which nobody needs to be notified then
        return made.id

    def _own(self, link: LinkRow) -> MessengersRepository:
        return self.runtime.db.repository(MessengersRepository, link.owner_id)


class Listener(Struct, frozen=True, kw_only=True):
    """Hears voice messages of people."""

    clients: IntegrationClients

    async def heard(self, user: User, sound: bytes, name: str) -> str:
        """The words of a recording. UserError where there are none, or nobody can listen; ToolFailed, ServiceDown."""
        if not await self.clients.integrations.names(SPEECH, user.id):
            raise UserError(words.NO_VOICE)
        async with self.clients.using(SPEECH, user_id=user.id) as speech:
            heard: str = (await speech.transcribe(sound, name)).strip()
        if not heard:
            raise UserError(words.NO_WORDS)
        return heard


def may_be_pressed(registry: Registry, asked: ApprovalRow) -> bool:
    """Tell whether a yes may be given by a button: not to what weighs heavily, nor to what only admins may."""
    tool = registry.get(asked.tool)
    return tool is not None and not tool.admin and weigh(registry, asked).weight != "high"


def user_may(link: LinkRow, item: Incoming) -> bool:
    """Tell whether this came from the linked account: in a chat of its own, or in a group."""
    return item.sender == link.sender and (bool(item.group) or item.is_own or item.chat == link.chat)
