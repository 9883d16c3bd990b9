"""What a linked person wrote, said or pressed, from their inbox to their chat; in order, each once.

What is run again after a kill acts on the same rows: turns and files have ids that follow from what came, and what was
heard of a recording is kept ahead of the message that it becomes.
"""

import asyncio
import io
import logging
from contextlib import suppress

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base.errors import (
    Busy,
    Conflict,
    CortexError,
    DatabaseUnavailable,
    DiskFull,
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
from cortex.services.content.documents import DocumentsService
from cortex.services.messengers import words
from cortex.services.messengers.listening import Listener
from cortex.services.messengers.orders import Orders
from cortex.services.messengers.places import Places
from cortex.services.messengers.receiving import pause_s
from cortex.services.messengers.telling import DETAIL
from cortex.services.runtime import Runtime
from cortex.services.turns.approval_weight import weigh
from cortex.services.turns.approvals import ApprovalsService
from cortex.storage.approvals import ApprovalRow, ApprovalsRepository
from cortex.storage.halts import HaltsRepository
from cortex.storage.messengers import InboxRow, LinkRow, MessengersRepository
from cortex.storage.turns import TurnsRepository
from cortex.toolkit.registry import Registry

BATCH_S = 1.0  # what was sent at once comes in one after the other, and nothing says which is the last
FILES_MOST = 10
TRIES = 8  # of fetching a file, in minutes, while the messenger answers otherwise
HURRIED_S = 0.05
CALLS = {"y": "once", "n": "deny"}
LATER = (DatabaseUnavailable, Busy, NotSent)  # no fault of what was written: it is tried again

log = logging.getLogger(__name__)


class Unfetched(CortexError):
    """A file that came with a message is not here yet: the line broke, or the disk is full. It is tried again."""

    def __init__(self, message: str, *, wait_s: float = 0.0) -> None:
        """Keep the waiting time."""
        super().__init__(message)
        self.wait_s = wait_s


class HeardMessage(Struct, frozen=True, kw_only=True):
    """A message with what was made of it. `spoken`: the words of its recordings; `attached`: its files, by ids here."""

    item: Incoming
    spoken: str = ""
    attached: tuple[str, ...] = ()


class InboxResult(Struct, frozen=True, kw_only=True):
    """The end of something that came: a reply to it, the turn that it is, and the message that the turn is made of.

    `chat`: where the reply goes, if elsewhere.
    """

    reply: str = ""
    chat: str = ""
    turn_id: str = ""
    heard: HeardMessage | None = None


class Conversing(Struct, frozen=True, kw_only=True):
    """Takes what came to people's chats. `name`: the messenger."""

    runtime: Runtime
    name: str
    accounts: Accounts
    chat: Chat
    places: Places
    orders: Orders
    documents: DocumentsService
    approvals: ApprovalsService
    listener: Listener
    _hurried: set[str] = field(default_factory=set)

    async def work_off(self, messenger: Messenger, link: LinkRow) -> None:
        """Do all that waits of this person."""
        id, failures = "", 0
        while rows := await self._own(link).inbox(link.id):
            if rows[0].id in self._hurried:
                await asyncio.sleep(HURRIED_S)
                continue
            if rows[0].id != id:
                id, failures = rows[0].id, 0
            try:
                await self._one(messenger, link, rows[0])
            except Unfetched as error:
                failures += 1
                if failures >= TRIES and await _is_there(messenger, rows[0].chat):
                    await self._own(link).set_inbox(id, state="replying", reply=error.message, payload="")
                else:
                    await asyncio.sleep(pause_s(failures, error.wait_s))

    async def hurry(self, messenger: Messenger, link: LinkRow) -> None:
        """Answer presses, and end the answer that is being written, while what came before them takes its time."""
        user, rows = await self.accounts.user(link.owner_id), await self._own(link).inbox(link.id)
        is_slow = True
        for row in rows[:1]:
            is_slow = row.state != "new" or bool(msgspec.json.decode(row.payload, type=Incoming).files)
        for row in rows[1:]:
            if row.state == "new" and row.id not in self._hurried:
                item = msgspec.json.decode(row.payload, type=Incoming)
                if item.kind == "press" or (is_slow and await self.orders.stops(user, link, row, item)):
                    self._hurried.add(row.id)
                    try:
                        await self._one(messenger, link, row)
                    finally:
                        self._hurried.discard(row.id)
                is_slow = is_slow and bool(item.files)

    async def _one(self, messenger: Messenger, link: LinkRow, row: InboxRow) -> None:
        own = self._own(link)
        if row.state in ("new", "heard"):
            user = await self.accounts.user(link.owner_id)
            result = await self._heard(messenger, user, link, row)
            state, chat = "replying" if result.reply else "done", result.chat or row.chat
            kept = msgspec.json.encode(result.heard).decode() if result.heard and result.turn_id else ""
            ended = {"state": state, "reply": result.reply, "chat": chat}
            await own.set_inbox(row.id, turn_id=result.turn_id, payload=kept, **ended)
            row = replace(row, state="replying", reply=result.reply, chat=chat)
        if row.reply:
            is_cut = row.state == "sending" and not messenger.is_repeatable
            await self._reply(messenger, link, row, words.CUT if is_cut else row.reply)
        await own.set_inbox(row.id, state="done", reply="")

    async def _reply(self, messenger: Messenger, link: LinkRow, row: InboxRow, text: str) -> None:
        """Say it, each part once; of one that nobody knows whether it arrived that is said, as of an answer."""
        own, failures = self._own(link), 0
        parts = list(enumerate(await asyncio.to_thread(messenger.parts, text)))
        is_first = text is not words.CUT
        while parts:
            await own.set_inbox(row.id, state="sending")
            try:
                await messenger.send(row.chat, parts[0][1], once=f"{row.id}:{parts[0][0]}")
                del parts[0]
                is_first, failures = False, 0
                continue
            except ChatClosed:
                return
            except NotSent as error:
                wait_s = error.wait_s
                if is_first:  # after a kill it is sent then, too
                    await own.set_inbox(row.id, state="replying")
            except ServiceDown:
                wait_s, is_first = 0.0, False
                parts = parts if messenger.is_repeatable else list(enumerate(messenger.parts(words.CUT)))
            except ToolFailed as error:
                log.warning("messengers: %s: a reply was refused: %s", self.name, error)
                return
            failures += 1
            await asyncio.sleep(pause_s(failures, wait_s))

    async def _gathered(self, link: LinkRow, row: InboxRow, item: Incoming) -> Incoming:
        """The files that were sent at once, or the pieces of a long text, as one message; and one row from then on."""
        await asyncio.sleep(BATCH_S)
        rows = await self._own(link).inbox(link.id)
        others = [(one, msgspec.json.decode(one.payload, type=Incoming)) for one in rows[1:] if one.state == "new"]
        same = [(one, each) for one, each in others if item.batch == each.batch != "" and each.kind == "message"]
        if not item.batch:
            before = item
            for one, each in others:
                if not (before.goes_on and _goes_with(before, each)):
                    break
                same.append((one, each))
                before = each
        text = ("\n\n" if item.batch else "\n").join(filter(None, (item.text, *(each.text for _, each in same))))
        files = (*item.files, *(file for _, each in same for file in each.files))
        whole = replace(item, text=text, files=files[:FILES_MOST], batch="", goes_on=False)
        async with self.runtime.db.transaction(link.owner_id) as repository:
            own = repository(MessengersRepository)
            await own.set_inbox(row.id, payload=msgspec.json.encode(whole).decode())
            for one, _ in same:
                await own.set_inbox(one.id, state="done", payload="")
        return whole

    async def _heard(self, messenger: Messenger, user: User, link: LinkRow, row: InboxRow) -> InboxResult:
        """Do what it asks; whatever is refused is said in the words of the refusal."""
        if row.state == "new":
            heard = HeardMessage(item=msgspec.json.decode(row.payload, type=Incoming))
        else:
            heard = msgspec.json.decode(row.payload, type=HeardMessage)
        item = heard.item
        with suppress(ToolFailed):  # no more than a sign
            await messenger.seen(item)
        is_open = bool(await self.listener.clients.integrations.names(self.name, user.id))
        if item.kind == "press":
            return await self._pressed(messenger, user, link, item, is_open=is_open)
        if not user_may(link, item):
            return InboxResult()
        if not is_open:
            return InboxResult(reply="" if item.group else words.NOT_OPEN)
        try:
            return await self._done(messenger, user, link, row, heard)
        except (*LATER, Unfetched):
            raise
        except CortexError as refused:
            return InboxResult(reply=refused.message)

    async def _done(
        self, messenger: Messenger, user: User, link: LinkRow, row: InboxRow, heard: HeardMessage
    ) -> InboxResult:
        """Do what it asks."""
        item = heard.item
        if item.kind == "invite":
            reply, chat = await self.places.enter(messenger, link, item)
            return InboxResult(reply=reply, chat=chat)
        if item.group and (item.place or item.chat) not in messenger.groups:
            return InboxResult(reply=words.closed_group(item.place or item.chat))
        if item.is_unread:
            return InboxResult(reply=words.UNREAD)
        if item.kind == "edit":
            return await self._edited(user, link, row, item)
        if item.kind == "delete":
            return await self._deleted(user, link, item)
        said = await self.orders.do(user, link, row, item, messenger.sign)
        return await self._said(messenger, user, link, row, heard) if said is None else InboxResult(reply=said)

    async def _said(
        self, messenger: Messenger, user: User, link: LinkRow, row: InboxRow, heard: HeardMessage
    ) -> InboxResult:
        """A message to the model."""
        if heard.item.is_own and row.chat != link.chat:
            await self._own(link).move_to(link.id, row.chat, row.chat)  # notices go where they wrote last
        if row.state == "new" and (heard.item.batch or heard.item.goes_on):
            heard = HeardMessage(item=await self._gathered(link, row, heard.item))
        if row.state == "new" and heard.item.files:
            heard = await self._fetched(messenger, user, link, row, heard.item)
        item = heard.item
        text, is_tainted = words.message_of(item, heard.spoken)
        if not text and not heard.attached:
            raise UserError(words.NO_WORDS)
        conversation_id = await self.places.current(user, link, row, item)
        turn_id = await self.chat.send_message(
            user,
            conversation_id,
            text,
            mode="chat" if item.group else None,
            role="chat" if item.group else None,
            is_tainted=is_tainted,
            attached=heard.attached,
            once=row.id,
            via=self.name,
        )
        is_halted = await self.runtime.db.repository(HaltsRepository).of(user.id) is not None
        return InboxResult(reply=words.HALTED if is_halted else "", turn_id=turn_id, heard=heard)

    async def _fetched(
        self, messenger: Messenger, user: User, link: LinkRow, row: InboxRow, item: Incoming
    ) -> HeardMessage:
        """Give what came with it, fetched and heard, and kept as such: run again, the same words go on. Unfetched."""
        spoken, attached = [], []
        for at, file in enumerate(item.files):
            if file.is_voice:
                await self.listener.must_hear(user, file)
            try:
                content = await messenger.fetch(file, self.documents.limit_bytes)
            except ServiceDown as error:
                wait_s = error.wait_s if isinstance(error, NotSent) else 0.0
                said = f"{file.name} did not come through: {error.message} Send it once more."
                raise Unfetched(said, wait_s=wait_s) from None
            if file.is_voice:
                spoken.append(await self.listener.heard(user, content, file.name))
            else:
                attached.append(await self._given(user, row, at, file, content))
        heard = HeardMessage(item=item, spoken="\n\n".join(spoken), attached=tuple(attached))
        await self._own(link).set_inbox(row.id, state="heard", payload=msgspec.json.encode(heard).decode())
        return heard

    async def _given(self, user: User, row: InboxRow, at: int, file: RemoteFile, content: bytes) -> str:
        """The file among the person's own; its id."""
        id = derived_id(row.id, "file", at)
        try:
            given = await self.documents.give(user, file.name, io.BytesIO(content), len(content), id=id)
        except (OSError, DiskFull) as error:
            log.warning("messengers: %s: a file cannot be kept: %s", self.name, error)
            raise Unfetched(f"{file.name} cannot be kept: the server's disk takes no files now.") from None
        return given.id

    async def _edited(self, user: User, link: LinkRow, row: InboxRow, item: Incoming) -> InboxResult:
        """A message was changed: its answer is made anew. One that became no turn is passed over.

        So is one that was told of as changed and is not: a first reaction does that. Nothing behind it is dropped for
        it, and no other answer ended.
        """
        before = await self._own(link).of_message(link.id, item.chat, item.message)
        if before is None:
            return InboxResult()
        known = msgspec.json.decode(before.payload, type=HeardMessage) if before.payload else HeardMessage(item=item)
        if before.payload and known.item.text == item.text:
            return InboxResult()
        heard = replace(known, item=item)
        text, _ = words.message_of(item, heard.spoken)
        place = await self.chat.place_of(user, before.turn_id)
        if await self._own(link).chat(place) is None:
            raise UserError(words.EARLIER)
        newest = (await self.runtime.db.repository(TurnsRepository, user.id).list(place, limit=1))[-1].id
        if newest not in (before.turn_id, self.chat.id_of_edit(user, row.id)):
            raise UserError(words.NEWER)
        if (await self.places.conversations.get(user, place)).running_turn == before.turn_id:
            await self.chat.stop(user, place)  # what was meant is the new text
        turn_id = await self.chat.edit(user, before.turn_id, text, once=row.id, via=self.name)
        return InboxResult(turn_id=turn_id, heard=heard)

    async def _deleted(self, user: User, link: LinkRow, item: Incoming) -> InboxResult:
        """A message was deleted: an answer to it that is being written ends. One that became no turn is passed over."""
        before = await self._own(link).of_message(link.id, item.chat, item.message)
        if before is None:
            return InboxResult()
        place = await self.chat.place_of(user, before.turn_id)
        if (await self.places.conversations.get(user, place)).running_turn == before.turn_id:
            await self.chat.stop(user, place)
        return InboxResult(reply=words.DELETED)

    async def _pressed(
        self, messenger: Messenger, user: User, link: LinkRow, item: Incoming, *, is_open: bool
    ) -> InboxResult:
        """A yes or a no, bound to the person whom the question is put to, and to the question."""
        kind, _, approval_id = item.choice.partition(":")
        is_own = user_may(link, item)
        try:
            if not is_open:
                said = words.NOT_OPEN
            elif not is_own:
                said = words.NOT_YOURS
            else:
                said = await self._answered(user, approval_id, CALLS[kind]) if kind in CALLS else words.UNKNOWN_BUTTON
        except NotFound:
            said = words.NOT_YOURS
        except Conflict as refused:
            said = refused.message
        with suppress(ServiceDown):  # what was answered holds, whether the button says so or not
            await messenger.settle(item, said, is_over=is_own and is_open)
        return InboxResult()

    async def _answered(self, user: User, approval_id: str, choice: str) -> str:
        """The answer given, or why it cannot be given here. NotFound, Conflict."""
        asked = await self.runtime.db.repository(ApprovalsRepository, user.id).get(approval_id)
        if choice == "once" and not may_be_pressed(self.runtime.registry, asked):
            return words.ELSEWHERE
        await self.approvals.answer(user, approval_id, choice)
        return words.ALLOWED if choice == "once" else words.DENIED

    def _own(self, link: LinkRow) -> MessengersRepository:
        return self.places.own(link)


async def _is_there(messenger: Messenger, chat: str) -> bool:
    """Tell whether the messenger answers at all: while it does not, nothing of it counts as lost."""
    try:
        await messenger.typing(chat)
    except ChatClosed:
        return True
    except ToolFailed:
        return False
    return True


def _goes_with(before: Incoming, item: Incoming) -> bool:
    """Tell whether this may be the rest of a long text."""
    is_alike = (item.chat, item.is_forwarded) == (before.chat, before.is_forwarded)
    is_text = item.kind == "message" and bool(item.text) and not item.files and not item.quoted
    return is_text and is_alike and words.order_of(item)[0] is None


def may_be_pressed(registry: Registry, asked: ApprovalRow) -> bool:
    """Tell whether a yes may be given by a button: not to what weighs heavily, what only admins may, what was cut."""
    tool = registry.get(asked.tool)
    is_light = tool is not None and not tool.admin and weigh(registry, asked).weight != "high"
    return is_light and len(asked.detail) <= DETAIL


def user_may(link: LinkRow, item: Incoming) -> bool:
    """Tell whether this came from the linked account: in a chat of its own, or in a group."""
    return item.sender == link.sender and (bool(item.group) or item.is_own or item.chat == link.chat)
