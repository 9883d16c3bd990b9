"""Conversations changed several at once: put away, pinned, deleted; and what bears one moment brought back."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select

from cortex.storage.repository import Repository
from cortex.storage.schema import ConversationTable, TurnTable
from cortex.storage.turn_statements import LIVING_HERE


class SeveralChatsRepository(Repository):
    """A user's conversations by their ids; ids of anybody else's change nothing."""

    async def pin_all(self, ids: Sequence[str]) -> int:
        """Keep these at the top of the list; how many there are."""
        change = self._change(ConversationTable).where(
            ConversationTable.id.in_(ids), ConversationTable.deleted_at.is_(None)
        )
        return len(await self._touched(change.values(is_pinned=True), ConversationTable.id))

    async def archive(self, ids: Sequence[str], at: datetime) -> Sequence[str]:
        """Take these out of the list; those that were in it."""
        change = self._change(ConversationTable).where(
            ConversationTable.id.in_(ids),
            ConversationTable.archived_at.is_(None),
            ConversationTable.deleted_at.is_(None),
        )
        return await self._touched(change.values(archived_at=at), ConversationTable.id)

    async def unarchive(self, ids: Sequence[str]) -> Sequence[str]:
        """Put these back into the list; those that were archived."""
        change = self._change(ConversationTable).where(
            ConversationTable.id.in_(ids), ConversationTable.archived_at.is_not(None)
        )
        return await self._touched(change.values(archived_at=None), ConversationTable.id)

    async def unarchive_of(self, at: datetime) -> Sequence[str]:
        """Put back what was archived at this moment."""
        change = self._change(ConversationTable).where(ConversationTable.archived_at == at)
        return await self._touched(change.values(archived_at=None), ConversationTable.id)

    async def delete_idle(self, ids: Sequence[str], at: datetime) -> Sequence[str]:
        """Hide those of these in which no answer is being written; their ids."""
        running = select(TurnTable.conversation_id).where(
            LIVING_HERE, self._checked(TurnTable), TurnTable.state.in_(("running", "waiting"))
        )
        change = self._change(ConversationTable).where(
            ConversationTable.id.in_(ids),
            ConversationTable.deleted_at.is_(None),
            ConversationTable.id.not_in(running),
        )
        return await self._touched(change.values(deleted_at=at), ConversationTable.id)

    async def restore_of(self, at: datetime) -> Sequence[str]:
        """Bring back what was deleted at this moment."""
        change = self._change(ConversationTable).where(ConversationTable.deleted_at == at)
        return await self._touched(change.values(deleted_at=None), ConversationTable.id)
