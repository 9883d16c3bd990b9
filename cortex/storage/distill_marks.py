"""How far conversations were read for facts, and which went quiet with something new. A mark only moves on."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import func, or_, select
from sqlalchemy.orm import aliased

from cortex.base.turn import LIVING
from cortex.storage.repository import Repository, SharedRepository, reading
from cortex.storage.schema import AccountTable, ConversationTable, DistillMarkTable, TurnTable


class DistillMarkRow(Struct, frozen=True, kw_only=True):
    """A mark. `tries`: calls begun for what comes next and not ended; `outcome`: what the last look came to."""

    conversation_id: str
    upto_ordinal: int
    tries: int
    outcome: str
    at: datetime


class QuietRow(Struct, frozen=True, kw_only=True):
    """A conversation that went quiet. `upto_ordinal`: its last turn by now."""

    owner_id: str
    conversation_id: str
    upto_ordinal: int


class DistillMarksRepository(Repository):
    """The marks in one user's conversations."""

    @reading
    async def get(self, conversation_id: str) -> DistillMarkRow:
        """The mark; that of the conversation it was branched off where it has none, else at the beginning."""
        found = await self._of(conversation_id)
        if found is None:  # a branch gets a mark when it is made; those of earlier versions have none
            parent = select(ConversationTable.parent_id).where(
                ConversationTable.owner_id == self.owner_id, ConversationTable.id == conversation_id
            )
            parent_id = (await self.session.execute(parent)).scalar()
            above = await self._of(parent_id) if parent_id else None
            upto = above.upto_ordinal if above else 0
            found = DistillMarkRow(
                conversation_id=conversation_id, upto_ordinal=upto, tries=0, outcome="", at=self.clock()
            )
        return found

    async def claim(self, conversation_id: str, until: datetime) -> bool:
        """Be the one who reads on until then; False while another is at it."""
        known, now = await self.get(conversation_id), self.clock()
        values = {"upto_ordinal": known.upto_ordinal, "tries": 0, "outcome": "", "at": now, "claimed_until": None}
        await self._is_new(DistillMarkTable, {**values, "conversation_id": conversation_id})
        free = or_(DistillMarkTable.claimed_until.is_(None), DistillMarkTable.claimed_until < now)
        change = self._change(DistillMarkTable).where(DistillMarkTable.conversation_id == conversation_id, free)
        taken = change.values(claimed_until=until, tries=DistillMarkTable.tries + 1)
        return bool(await self._touched(taken, DistillMarkTable.conversation_id))

    async def let_go(self, conversation_id: str, until: datetime | None) -> None:
        """Leave what is new for later, not before `until` where one is given: nothing was asked."""
        change = self._change(DistillMarkTable).where(DistillMarkTable.conversation_id == conversation_id)
        await self.session.execute(change.values(claimed_until=until, tries=0))

    async def move(self, conversation_id: str, upto_ordinal: int, outcome: str) -> bool:
        """All up to this turn was looked at; False where it stands there or beyond already."""
        now = self.clock()
        values = {"upto_ordinal": upto_ordinal, "tries": 0, "outcome": outcome, "claimed_until": None, "at": now}
        if await self._is_new(DistillMarkTable, {**values, "conversation_id": conversation_id}):
            return True
        change = self._change(DistillMarkTable).where(
            DistillMarkTable.conversation_id == conversation_id, DistillMarkTable.upto_ordinal < upto_ordinal
        )
        return bool(await self._touched(change.values(**values), DistillMarkTable.conversation_id))

    @reading
    async def latest(self) -> DistillMarkRow | None:
        """The look at a conversation that came to something last."""
        mine = self._mine(DistillMarkRow, DistillMarkTable).where(DistillMarkTable.outcome != "")
        return await self._first(DistillMarkRow, mine.order_by(DistillMarkTable.at.desc()))

    async def _of(self, conversation_id: str) -> DistillMarkRow | None:
        mine = self._mine(DistillMarkRow, DistillMarkTable)
        return await self._first(DistillMarkRow, mine.where(DistillMarkTable.conversation_id == conversation_id))


class AllDistillMarksRepository(SharedRepository):
    """The conversations of everybody."""

    @reading
    async def quiet(self, since: datetime, until: datetime, limit: int) -> Sequence[QuietRow]:
        """Conversations in which people said something since then that nobody looked at, all of it over by `until`."""
        other = aliased(TurnTable)
        is_going_on = or_(other.state.in_(LIVING), other.ended_at > until)
        going_on = select(other.id).where(other.conversation_id == ConversationTable.id, is_going_on).exists()
        upto = func.coalesce(DistillMarkTable.upto_ordinal, 0)
        free = or_(DistillMarkTable.claimed_until.is_(None), DistillMarkTable.claimed_until < self.clock())
        columns: list[Any] = [
            ConversationTable.owner_id,
            ConversationTable.id.label("conversation_id"),
            func.max(TurnTable.ordinal).label("upto_ordinal"),
        ]
        statement = (
            select(*columns)
            .join(TurnTable, TurnTable.conversation_id == ConversationTable.id)
            .join(AccountTable, AccountTable.id == ConversationTable.owner_id)
            .join(DistillMarkTable, DistillMarkTable.conversation_id == ConversationTable.id, isouter=True)
            .where(TurnTable.created_at >= since, TurnTable.ordinal > upto, ~TurnTable.is_dropped)
            .where(TurnTable.channel == "chat", ConversationTable.deleted_at.is_(None), AccountTable.is_active)
            .where(ConversationTable.uses_memory)
            .where(free, ~going_on)
            .group_by(ConversationTable.owner_id, ConversationTable.id)
            .order_by(func.max(TurnTable.created_at), ConversationTable.id)
        )
        return await self._all(QuietRow, statement.limit(limit))
