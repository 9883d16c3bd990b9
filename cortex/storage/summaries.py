"""Summaries: what stands for the older turns in the model's view. The transcript itself is never touched."""

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

from msgspec import Struct
from sqlalchemy import Select, exists

from cortex.base.ids import derived_id
from cortex.storage import kept
from cortex.storage.messages import LATER
from cortex.storage.repository import Repository, reading
from cortex.storage.schema import ConversationTable, SummaryTable, TurnTable


class SummaryRow(Struct, frozen=True, kw_only=True):
    """A summary of the turns up to and including `upto_ordinal`."""

    id: str
    conversation_id: str
    upto_ordinal: int
    text: str
    is_tainted: bool
    created_at: datetime
    undone_at: datetime | None


@cache
def _latest() -> Select[Any]:
    summary, turn = kept.columns(SummaryTable), kept.columns(TurnTable)
    ends_in_view = exists().where(
        turn.conversation_id == summary.conversation_id, turn.ordinal == summary.upto_ordinal, ~turn.is_dropped
    )
    found = kept.owned(SummaryRow, SummaryTable).where(
        summary.conversation_id == kept.given("conversation_id"), summary.undone_at.is_(None), ends_in_view
    )
    found = found.where(summary.upto_ordinal < kept.given("before"))
    return found.order_by(summary.upto_ordinal.desc(), summary.created_at.desc(), summary.id.desc()).limit(1)


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
        before = LATER if before_ordinal is None else before_ordinal
        return await self._row_of(SummaryRow, _latest(), conversation_id=conversation_id, before=before)

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
