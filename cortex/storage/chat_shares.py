"""Which chats and answers people let each other read, and which turns of them."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy import ColumnElement, Select, and_, delete, func, or_, select
from sqlalchemy.orm import aliased

from cortex.base.errors import NotFound
from cortex.base.ids import new_id
from cortex.storage.repository import Repository, reading
from cortex.storage.schema import AccountTable, ChatShareTable, ConversationTable, TurnTable

MISSING = "This chat is not shared with you any more."


class ChatShareRow(Struct, frozen=True, kw_only=True):
    """A chat that one person lets another read, as far as `turn_ids`, the turns that stood there then.

    turn_id: of the one answer that is shared, "" for the chat. `owner`, `reader`: their names. `title`: of the chat;
    `said`: the message that the one answer is to, "" where no person wrote it.
    """

    id: str
    owner_id: str
    owner: str
    reader_id: str
    reader: str
    conversation_id: str
    title: str
    said: str
    turn_id: str
    turn_ids: tuple[str, ...]
    created_at: datetime


class ChatSharesRepository(Repository):
    """The shares that one person gave or was given. A deleted chat, or one of a closed account, is read by nobody."""

    @reading
    async def of_conversation(self, conversation_id: str) -> Sequence[ChatShareRow]:
        """With whom this chat of the user's, or an answer in it, is shared, the newest first."""
        mine = (ChatShareTable.owner_id == self.owner_id, ChatShareTable.conversation_id == conversation_id)
        return await self._rows(*mine)

    @reading
    async def given(self) -> Sequence[ChatShareRow]:
        """All that others let the user read, the newest first."""
        return await self._rows(ChatShareTable.reader_id == self.owner_id)

    @reading
    async def get(self, id: str) -> ChatShareRow:
        """One that the user gave or was given; NotFound for any other."""
        is_theirs = or_(ChatShareTable.reader_id == self.owner_id, ChatShareTable.owner_id == self.owner_id)
        found = await self._rows(ChatShareTable.id == id, is_theirs)
        if not found:
            raise NotFound(MISSING)
        return found[0]

    async def give(
        self, conversation_id: str, turn_id: str, turn_ids: Sequence[str], reader_ids: Sequence[str]
    ) -> dict[str, str]:
        """Let these people read these turns; their ids -> the shares'. NotFound for an account that is not there."""
        wanted = sorted(set(reader_ids) - {self.owner_id})
        known = select(AccountTable.id).where(AccountTable.id.in_(wanted), AccountTable.is_active)
        if set((await self.session.execute(known)).scalars()) != set(wanted):
            raise NotFound("This account does not exist, or it is closed.")
        for reader_id in wanted:
            row = {
                "id": new_id(self.clock),
                "conversation_id": conversation_id,
                "turn_id": turn_id,
                "turn_ids": tuple(turn_ids),
                "reader_id": reader_id,
                "created_at": self.clock(),
            }
            statement = self._insert(ChatShareTable, row).on_conflict_do_update(
                index_elements=["conversation_id", "turn_id", "reader_id"],
                set_={"turn_ids": tuple(turn_ids), "created_at": self.clock()},
            )
            await self.session.execute(statement)
        rows = await self.of_conversation(conversation_id)
        return {row.reader_id: row.id for row in rows if row.turn_id == turn_id and row.reader_id in wanted}

    async def end(self, id: str) -> None:
        """Let it be read no longer: by whom it was given, or by whoever was given it. NotFound."""
        is_theirs = or_(ChatShareTable.reader_id == self.owner_id, ChatShareTable.owner_id == self.owner_id)
        await self._must_touch(
            delete(ChatShareTable).where(ChatShareTable.id == id, is_theirs), ChatShareTable.id, MISSING
        )

    async def _rows(self, *where: ColumnElement[bool]) -> Sequence[ChatShareRow]:
        found = await self.session.execute(_standing().where(*where).order_by(ChatShareTable.created_at.desc()))
        return [ChatShareRow(**row) for row in found.mappings()]


def _standing() -> Select[tuple[object, ...]]:
    owner, reader = aliased(AccountTable), aliased(AccountTable)
    named = (owner.name.label("owner"), reader.name.label("reader"), ConversationTable.title)
    said = func.coalesce(TurnTable.text, "").label("said")
    columns = [
        getattr(ChatShareTable, name) for name in ChatShareRow.__struct_fields__ if hasattr(ChatShareTable, name)
    ]
    return (
        select(*columns, *named, said)
        .join(owner, owner.id == ChatShareTable.owner_id)
        .join(reader, reader.id == ChatShareTable.reader_id)
        .join(ConversationTable, ConversationTable.id == ChatShareTable.conversation_id)
        .outerjoin(TurnTable, and_(TurnTable.id == ChatShareTable.turn_id, TurnTable.channel == "chat"))
        .where(owner.is_active, reader.is_active, ConversationTable.deleted_at.is_(None))
    )
