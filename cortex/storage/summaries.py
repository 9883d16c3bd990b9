"""Summaries: what stands for the older turns in the model's view. The transcript itself is never touched."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import exists

from cortex.base.ids import derived_id
from cortex.storage.repository import Repository, reading
from cortex.storage.schema import ConversationTable, SummaryTable, TurnTable


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRow:
    """A summary of the turns up to and including `upto_ordinal`."""

    id: str
    conversation_id: str
    upto_ordinal: int
    text: str
    is_tainted: bool
    created_at: datetime
    undone_at: datetime | None


class SummariesRepository(Repository):
    """The summaries of a user's conversations."""

    async def add(
        self, conversation_id: str, upto_ordinal: int, text: str, is_tainted: bool, *, id: str | None = None
    ) -> SummaryRow:
        """Keep a summary; the same one written again is the one that stands."""
        await self._must_own(ConversationTable, conversation_id, "conversation")
        summary_id = id or derived_id("summary", conversation_id, upto_ordinal, text)
        values = {"id": summary_id, "conversation_id": conversation_id, "upto_ordinal": upto_ordinal}
        values |= {"text": text, "is_tainted": is_tainted, "created_at": self.clock()}
        await self._is_new(SummaryTable, values)
        return await self.get(summary_id)

    @reading
    async def get(self, id: str) -> SummaryRow:
        """The summary; NotFound when it is absent or another user's."""
        return await self._get(SummaryRow, SummaryTable, id, "This summary does not exist.")

    @reading
    async def latest(self, conversation_id: str, before_ordinal: int | None = None) -> SummaryRow | None:
        """The summary in force: the furthest that was not undone, and ends ahead of `before_ordinal`.

        One that ends with a turn out of view stands for another branch: it is in force again when that comes back.
        """
        ends_in_view = exists().where(
            TurnTable.conversation_id == SummaryTable.conversation_id,
            TurnTable.ordinal == SummaryTable.upto_ordinal,
            ~TurnTable.is_dropped,
        )
        statement = self._mine(SummaryRow, SummaryTable).where(
            SummaryTable.conversation_id == conversation_id, SummaryTable.undone_at.is_(None), ends_in_view
        )
        if before_ordinal is not None:
            statement = statement.where(SummaryTable.upto_ordinal < before_ordinal)
        order = (SummaryTable.upto_ordinal.desc(), SummaryTable.created_at.desc(), SummaryTable.id.desc())
        return await self._first(SummaryRow, statement.order_by(*order))

    @reading
    async def of_conversation(self, conversation_id: str) -> Sequence[SummaryRow]:
        """All summaries of a conversation, undone ones too, in order."""
        statement = self._mine(SummaryRow, SummaryTable).where(SummaryTable.conversation_id == conversation_id)
        return await self._all(SummaryRow, statement.order_by(SummaryTable.upto_ordinal, SummaryTable.created_at))

    async def undo(self, id: str) -> SummaryRow:
        """Let the turns stand for themselves again."""
        change = self._change(SummaryTable).where(SummaryTable.id == id).values(undone_at=self.clock())
        await self.session.execute(change)
        return await self.get(id)
