"""Temporary chats: in no list, no search and no memory, and their words are erased when they end.

A person ends one, or it ends an hour after its last message. What it cost, what budgets count and the audit log stay.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from msgspec import Struct
from sqlalchemy.exc import SQLAlchemyError

from cortex.base.errors import CortexError, NotFound, UserError
from cortex.base.turn import LIVING
from cortex.base.user import User
from cortex.services.chat.conversations import Deleted
from cortex.services.runtime import Runtime
from cortex.storage.conversations import AllConversationsRepository, ConversationsRepository
from cortex.storage.notices import NoticesRepository
from cortex.storage.turns import TurnsRepository

IDLE = timedelta(hours=1)
EVERY_S = 600.0

log = logging.getLogger(__name__)


class TemporaryChats(Struct, frozen=True, kw_only=True):
    """Ends them. `listeners`: called ahead of it with the user's and the chat's id, as for one that is deleted."""

    runtime: Runtime
    listeners: Sequence[Deleted]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def end(self, user: User, conversation_id: str) -> None:
        """Erase it now; NotFound for one that is not temporary, UserError while an answer is being written."""
        conversations = self.runtime.db.repository(ConversationsRepository, user.id)
        conversation = await conversations.get(conversation_id, with_deleted=True)
        if conversation.source != "temporary":
            raise NotFound("This chat is not temporary. Delete it instead.")
        if conversation.running_turn:
            raise UserError("An answer here is being written, or waits for your approval. Stop it first.")
        if not await self._erase(user.id, conversation_id):
            raise UserError("An agent of this chat is still at work. Stop it first, or wait until it is done.")

    async def erase_idle(self) -> None:
        """Until cancelled: erase those that ended by themselves. A look that fails is told in the log."""
        while True:
            await self.sleep(EVERY_S)
            try:
                await self.go_round()
            except (CortexError, SQLAlchemyError, OSError) as error:
                log.warning("chat: temporary chats were not erased, next attempt in 10 minutes: %s", error)

    async def go_round(self) -> None:
        """Erase those that nobody wrote in for an hour."""
        everybody = self.runtime.db.repository(AllConversationsRepository)
        for owner_id, id in await everybody.temporary(self.runtime.clock() - IDLE):
            await self._erase(owner_id, id)

    async def _erase(self, owner_id: str, id: str) -> bool:
        """Erase it and what its agents said; False, and nothing done, while something here is being written.

        What the engine kept of its runs goes first: a kill in between leaves the chat to be found again.
        """
        agents = await self.runtime.db.repository(ConversationsRepository, owner_id).agents_of(id)
        gone = [*(agent.id for agent in agents), id]  # an agent's result is a turn here from the moment it has ended
        turns = self.runtime.db.repository(TurnsRepository, owner_id)
        found = [turn for one in gone for turn in await turns.list(one, include_dropped=True)]
        if any(turn.state in LIVING for turn in found):
            return False
        for listener in self.listeners:
            await listener(owner_id, id)
        await self.runtime.runner.forget([turn.id for turn in found])
        async with self.runtime.db.transaction(owner_id) as repository:
            for one in gone:
                await repository(NoticesRepository).forget_of(f"/c/{one}")
                await repository(ConversationsRepository).erase(one)
        self.runtime.hub.announce(id)
        return True
