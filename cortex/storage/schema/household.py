"""What people of a household give each other to use or to read. Columns, keys and indexes only."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from cortex.storage.table import Table, in_conversation, owner


class SnippetTable(Table):
    """Words that a person writes often, under a short name; `is_shared`: everybody here may use them."""

    __tablename__ = "snippets"
    __table_args__ = (UniqueConstraint("owner_id", "name"),)
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    name: Mapped[str]
    text: Mapped[str]
    is_shared: Mapped[bool] = mapped_column(default=False)
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class ChatShareTable(Table):
    """A chat, or the answer of `turn_id` ("" = the chat), that another person may read: the turns of `turn_ids`."""

    __tablename__ = "chat_shares"
    __table_args__ = (
        UniqueConstraint("conversation_id", "turn_id", "reader_id"),
        Index("ix_chat_shares_reader_id", "reader_id"),
    )
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    conversation_id: Mapped[str] = in_conversation()
    turn_id: Mapped[str]
    turn_ids: Mapped[tuple[str, ...]] = mapped_column(server_default="[]")
    reader_id: Mapped[str] = mapped_column(ForeignKey("accounts.id", ondelete="CASCADE"))
    created_at: Mapped[datetime]
