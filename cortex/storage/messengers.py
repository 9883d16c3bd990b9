"""Messengers: who is linked, what came in, how far each chat was told what. `MessengersRepository` is one person's."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct
from sqlalchemy import Select, delete, select, update

from cortex.base.ids import derived_id
from cortex.ports.messengers import Incoming
from cortex.storage.repository import Repository, SharedRepository, as_row, reading, selected
from cortex.storage.schema import (
    AccountTable,
    MessengerChatTable,
    MessengerGuestTable,
    MessengerInboxTable,
    MessengerLinkTable,
    MessengerPlaceTable,
)

InboxState = Literal["new", "heard", "replying", "sending", "done"]
NO_LINK = "This messenger is not linked."
KEPT = timedelta(days=30)  # so long an edited message is found again


class GuestRow(Struct, frozen=True, kw_only=True):
    """Somebody who wrote and is linked to nobody."""

    messenger: str
    sender: str
    chat: str
    name: str
    code: str
    code_until: datetime | None
    told_at: datetime
    is_due: bool


class LinkRow(Struct, frozen=True, kw_only=True):
    """The account of a person at a messenger."""

    id: str
    owner_id: str
    messenger: str
    sender: str
    chat: str
    name: str
    created_at: datetime


class ChatRow(Struct, frozen=True, kw_only=True):
    """A conversation that goes on in a chat there, and how far it was told."""

    conversation_id: str
    owner_id: str
    link_id: str
    chat: str
    is_group: bool
    is_current: bool
    told_seq: int
    told_part: int
    is_sending: bool


class InboxRow(Struct, frozen=True, kw_only=True):
    """One thing that came. `payload`: an `Incoming` as JSON, from `heard` on with what was made of it."""

    id: str
    owner_id: str
    link_id: str
    messenger: str
    account: str
    position: int
    chat: str
    message: str
    state: InboxState
    payload: str
    reply: str
    turn_id: str
    created_at: datetime


class MessengersRepository(Repository):
    """One person's links, chats and inbox."""

    @reading
    async def links(self) -> Sequence[LinkRow]:
        """Their links, the oldest first."""
        return await self._where(LinkRow, MessengerLinkTable, "created_at")

    @reading
    async def link(self, id: str) -> LinkRow:
        """One of theirs; NotFound."""
        return await self._get(LinkRow, MessengerLinkTable, id, NO_LINK)

    @reading
    async def link_at(self, messenger: str) -> LinkRow | None:
        """Their link at this messenger, None without one."""
        found = await self._where(LinkRow, MessengerLinkTable, messenger=messenger)
        return found[0] if found else None

    async def add_link(self, link: LinkRow) -> None:
        """Keep a link."""
        await self._add(MessengerLinkTable, [as_row(link)])

    async def remove_link(self, id: str) -> None:
        """Forget it with its chats and inbox; NotFound."""
        statement = self._remove(MessengerLinkTable).where(MessengerLinkTable.id == id)
        await self._must_touch(statement, MessengerLinkTable.id, NO_LINK)

    @reading
    async def chats(self, link_id: str) -> Sequence[ChatRow]:
        """The conversations that go on there."""
        return await self._where(ChatRow, MessengerChatTable, "conversation_id", link_id=link_id)

    @reading
    async def chat(self, conversation_id: str) -> ChatRow | None:
        """Return how far this one was told, None where it goes on nowhere."""
        found = await self._where(ChatRow, MessengerChatTable, conversation_id=conversation_id)
        return found[0] if found else None

    async def begin_chat(self, row: ChatRow) -> None:
        """Let this conversation be the current one of its chat; one that goes on there already becomes it again."""
        same = (MessengerChatTable.link_id == row.link_id, MessengerChatTable.chat == row.chat)
        await self.session.execute(self._change(MessengerChatTable).where(*same).values(is_current=False))
        await self._add_new(MessengerChatTable, [as_row(row)])
        await self.set_chat(row.conversation_id, is_current=True)

    async def set_chat(self, conversation_id: str, **values: Any) -> None:  # Any: the columns' own types
        """Change how it stands."""
        change = self._change(MessengerChatTable).where(MessengerChatTable.conversation_id == conversation_id)
        await self.session.execute(change.values(**values))

    async def move_to(self, link_id: str, chat: str, other: str) -> None:
        """Let what goes on in this chat go on in the other, which is theirs with Cortex from now on."""
        same = (MessengerChatTable.link_id == link_id, MessengerChatTable.chat == chat)
        await self.session.execute(self._change(MessengerChatTable).where(*same).values(chat=other))
        await self.session.execute(
            self._change(MessengerLinkTable).where(MessengerLinkTable.id == link_id).values(chat=other)
        )

    async def begin_part(self, row: ChatRow, messenger: str, holder: str) -> bool:
        """Mark what is told next as on its way; False where another told it, the link went, or the place is lost."""
        place, chat = MessengerPlaceTable, MessengerChatTable
        is_held = select(place.messenger).where(
            place.messenger == messenger, place.account == "", place.holder == holder, place.held_until > self.clock()
        )
        change = self._change(chat).where(
            chat.conversation_id == row.conversation_id,
            chat.told_seq == row.told_seq,
            chat.told_part == row.told_part,
            chat.is_sending.is_(False),
            is_held.exists(),
        )
        return bool(await self._touched(change.values(is_sending=True), chat.conversation_id))

    async def end_chat(self, conversation_id: str) -> None:
        """Tell no more of it there."""
        statement = self._remove(MessengerChatTable).where(MessengerChatTable.conversation_id == conversation_id)
        await self.session.execute(statement)

    @reading
    async def inbox(self, link_id: str) -> Sequence[InboxRow]:
        """Return what is not done, in order."""
        statement = self._mine(InboxRow, MessengerInboxTable).where(
            MessengerInboxTable.link_id == link_id, MessengerInboxTable.state != "done"
        )
        return await self._all(InboxRow, statement.order_by(MessengerInboxTable.position))

    @reading
    async def of_message(self, link_id: str, chat: str, message: str) -> InboxRow | None:
        """The newest row of a message that became a turn; None for one that did not, or is too old."""
        statement = self._mine(InboxRow, MessengerInboxTable).where(
            MessengerInboxTable.link_id == link_id,
            MessengerInboxTable.chat == chat,
            MessengerInboxTable.message == message,
            MessengerInboxTable.turn_id != "",
        )
        return await self._first(InboxRow, statement.order_by(MessengerInboxTable.position.desc()))

    @reading
    async def has_turn(self, link_id: str, turn_id: str) -> bool:
        """Tell whether this turn is a message that came there."""
        statement = self._mine(InboxRow, MessengerInboxTable).where(
            MessengerInboxTable.link_id == link_id, MessengerInboxTable.turn_id == turn_id
        )
        return await self._first(InboxRow, statement) is not None

    async def set_inbox(self, id: str, **values: Any) -> None:  # Any: the columns' own types
        """Change how it stands."""
        await self.session.execute(
            self._change(MessengerInboxTable).where(MessengerInboxTable.id == id).values(**values)
        )


class AllMessengersRepository(SharedRepository):
    """Everybody's: what comes in, and from whom."""

    async def hold(self, messenger: str, holder: str, until: datetime) -> bool:
        """Take or keep the place of the one process that asks for updates; False where another one has it."""
        now, place = self.clock(), MessengerPlaceTable
        await self._begin_place(messenger, "")
        is_free = (place.holder == holder) | place.held_until.is_(None) | (place.held_until <= now)
        change = update(place).execution_options(synchronize_session=False)
        change = change.where(place.messenger == messenger, place.account == "", is_free)
        return bool(await self._touched(change.values(holder=holder, held_until=until), place.messenger))

    async def place(self, messenger: str, account: str) -> tuple[int, str, datetime]:
        """Up to where the updates of this account are stored, in our and their word, and since when."""
        await self._begin_place(messenger, account)
        place = MessengerPlaceTable
        statement = select(place.position, place.cursor, place.moved_at)
        mine = (place.messenger == messenger, place.account == account)
        row = (await self.session.execute(statement.where(*mine))).one()
        return row[0], row[1], row[2] or self.clock()

    async def _begin_place(self, messenger: str, account: str) -> None:
        fresh = {"messenger": messenger, "account": account, "position": 0, "cursor": "", "holder": ""}
        fresh["moved_at"] = self.clock()
        await self.session.execute(self._upsert(MessengerPlaceTable, fresh).on_conflict_do_nothing())

    async def let_go(self, holder: str) -> None:
        """Leave all places to others."""
        change = update(MessengerPlaceTable).execution_options(synchronize_session=False)
        change = change.where(MessengerPlaceTable.holder == holder)
        await self.session.execute(change.values(holder="", held_until=None))

    @reading
    async def link_of(self, messenger: str, sender: str) -> LinkRow | None:
        """Whose this account there is, open or not; None for nobody's."""
        statement = selected(LinkRow, MessengerLinkTable).where(
            MessengerLinkTable.messenger == messenger, MessengerLinkTable.sender == sender
        )
        return await self._first(LinkRow, statement)

    @reading
    async def waiting(self, messenger: str) -> Sequence[LinkRow]:
        """Everybody of whom something came that is not done."""
        waits = select(MessengerInboxTable.link_id).where(MessengerInboxTable.state != "done").distinct()
        return await self._all(LinkRow, self._linked(messenger).where(MessengerLinkTable.id.in_(waits)))

    @reading
    async def chats(self, messenger: str) -> Sequence[ChatRow]:
        """Every conversation that goes on there, of open accounts."""
        statement = (
            selected(ChatRow, MessengerChatTable)
            .join(MessengerLinkTable, MessengerLinkTable.id == MessengerChatTable.link_id)
            .join(AccountTable, AccountTable.id == MessengerLinkTable.owner_id)
            .where(MessengerLinkTable.messenger == messenger, AccountTable.is_active)
        )
        return await self._all(ChatRow, statement)

    def _linked(self, messenger: str) -> Select[Any]:
        return (
            selected(LinkRow, MessengerLinkTable)
            .join(AccountTable, AccountTable.id == MessengerLinkTable.owner_id)
            .where(MessengerLinkTable.messenger == messenger, AccountTable.is_active)
        )

    async def store(self, account: str, link: LinkRow, item: Incoming) -> None:
        """Keep what came from a linked person, unless it stands."""
        row = InboxRow(
            id=derived_id("messenger", link.messenger, account, item.position),
            owner_id=link.owner_id,
            link_id=link.id,
            messenger=link.messenger,
            account=account,
            position=item.position,
            chat=item.chat,
            message=item.message,
            state="new",
            payload=msgspec.json.encode(item).decode(),
            reply="",
            turn_id="",
            created_at=self.clock(),
        )
        await self.session.execute(self._upsert(MessengerInboxTable, as_row(row)).on_conflict_do_nothing())

    async def move(self, messenger: str, account: str, position: int, cursor: str) -> None:
        """All up to this position is stored."""
        change = update(MessengerPlaceTable).execution_options(synchronize_session=False)
        change = change.where(MessengerPlaceTable.messenger == messenger, MessengerPlaceTable.account == account)
        await self.session.execute(change.values(position=position, cursor=cursor, moved_at=self.clock()))

    @reading
    async def guest(self, messenger: str, sender: str) -> GuestRow | None:
        """Return what is kept of somebody who is linked to nobody."""
        statement = selected(GuestRow, MessengerGuestTable).where(
            MessengerGuestTable.messenger == messenger, MessengerGuestTable.sender == sender
        )
        return await self._first(GuestRow, statement)

    async def put_guest(self, guest: GuestRow) -> None:
        """Keep them as they are now."""
        row = as_row(guest)
        values = {name: value for name, value in row.items() if name not in ("messenger", "sender")}
        statement = self._upsert(MessengerGuestTable, row)
        await self.session.execute(statement.on_conflict_do_update(index_elements=["messenger", "sender"], set_=values))

    @reading
    async def guests_due(self, messenger: str) -> Sequence[GuestRow]:
        """Those to whom a line is to go out."""
        statement = selected(GuestRow, MessengerGuestTable).where(
            MessengerGuestTable.messenger == messenger, MessengerGuestTable.is_due
        )
        return await self._all(GuestRow, statement)

    async def greeted(self, messenger: str, sender: str, *, is_due: bool = False) -> bool:
        """No line is due to them any more, or one is again; whether that is news."""
        change = update(MessengerGuestTable).execution_options(synchronize_session=False)
        mine = (MessengerGuestTable.messenger == messenger, MessengerGuestTable.sender == sender)
        change = change.where(*mine, MessengerGuestTable.is_due != is_due).values(is_due=is_due)
        return bool(await self._touched(change, MessengerGuestTable.sender))

    @reading
    async def guest_by_code(self, code: str) -> GuestRow | None:
        """Whose code this is, as long as it holds."""
        statement = selected(GuestRow, MessengerGuestTable).where(
            MessengerGuestTable.code == code, MessengerGuestTable.code_until > self.clock()
        )
        return await self._first(GuestRow, statement)

    async def remove_guest(self, messenger: str, sender: str) -> bool:
        """Forget them; whether they were there."""
        statement = delete(MessengerGuestTable).where(
            MessengerGuestTable.messenger == messenger, MessengerGuestTable.sender == sender
        )
        return bool(await self._touched(statement, MessengerGuestTable.sender))

    async def prune(self) -> None:
        """Forget guests of yesterday, and messages that are done for a month."""
        day, kept = self.clock() - timedelta(days=1), self.clock() - KEPT
        await self.session.execute(delete(MessengerGuestTable).where(MessengerGuestTable.told_at < day))
        old = delete(MessengerInboxTable).where(
            MessengerInboxTable.state == "done", MessengerInboxTable.created_at < kept
        )
        await self.session.execute(cast("Any", old))
