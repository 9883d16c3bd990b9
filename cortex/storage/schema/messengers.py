"""Messengers: who is linked, what came in, how far each chat was told what. Columns, keys and indexes only."""

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from cortex.storage.table import Table, owner


class MessengerPlaceTable(Table):
    """The place up to which updates of an account of Cortex's were stored, and the process that asks for them.

    `cursor`: the messenger's own word for it.
    """

    __tablename__ = "messenger_places"
    messenger: Mapped[str] = mapped_column(primary_key=True)
    account: Mapped[str] = mapped_column(primary_key=True)
    position: Mapped[int] = mapped_column(BigInteger)
    cursor: Mapped[str] = mapped_column(default="")
    moved_at: Mapped[datetime | None]
    holder: Mapped[str] = mapped_column(default="")
    held_until: Mapped[datetime | None]


class MessengerGuestTable(Table):
    """Somebody who wrote and is linked to nobody. `code`: by which they are linked; `is_due`: a line is to go out."""

    __tablename__ = "messenger_guests"
    messenger: Mapped[str] = mapped_column(primary_key=True)
    sender: Mapped[str] = mapped_column(primary_key=True)
    chat: Mapped[str]
    name: Mapped[str]
    code: Mapped[str] = mapped_column(default="", index=True)
    code_until: Mapped[datetime | None]
    told_at: Mapped[datetime]
    is_due: Mapped[bool]


class MessengerLinkTable(Table):
    """The account of a person at a messenger. `chat`: their own with Cortex there."""

    __tablename__ = "messenger_links"
    __table_args__ = (UniqueConstraint("messenger", "sender"), UniqueConstraint("owner_id", "messenger"))
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    messenger: Mapped[str]
    sender: Mapped[str]
    chat: Mapped[str]
    name: Mapped[str]
    created_at: Mapped[datetime]


class MessengerChatTable(Table):
    """A conversation that goes on in a chat there. `is_current`: new messages go to it.

    `told_seq`: up to which row of its log it was told, and `told_part` of the next message; `is_sending`: the one
    behind that is on its way.
    """

    __tablename__ = "messenger_chats"
    conversation_id: Mapped[str] = mapped_column(ForeignKey("conversations.id", ondelete="CASCADE"), primary_key=True)
    owner_id: Mapped[str] = owner()
    link_id: Mapped[str] = mapped_column(ForeignKey("messenger_links.id", ondelete="CASCADE"), index=True)
    chat: Mapped[str]
    is_group: Mapped[bool]
    is_current: Mapped[bool]
    told_seq: Mapped[int]
    told_part: Mapped[int]
    is_sending: Mapped[bool]


class MessengerInboxTable(Table):
    """The things that came, in order.

    `state`: new, heard (its files are fetched), replying (`reply` is to go out), sending (on its way) or done.
    `payload`: as it came, and what was made of it; "" once it is done and no message, by which an edit is told from
    none. `turn_id`: the message that it became.
    """

    __tablename__ = "messenger_inbox"
    __table_args__ = (
        UniqueConstraint("messenger", "account", "position"),
        Index("ix_messenger_inbox_link_id_message", "link_id", "message"),
        Index("ix_messenger_inbox_state", "state"),
    )
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    link_id: Mapped[str] = mapped_column(ForeignKey("messenger_links.id", ondelete="CASCADE"))
    messenger: Mapped[str]
    account: Mapped[str]
    position: Mapped[int] = mapped_column(BigInteger)
    chat: Mapped[str]
    message: Mapped[str]
    state: Mapped[str]
    payload: Mapped[str]
    reply: Mapped[str] = mapped_column(default="")
    turn_id: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime]
