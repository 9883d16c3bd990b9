"""The way back: how a call's effect can be taken back for a while, once. The category's own `undo` does it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from cortex.base.errors import Conflict
from cortex.base.ids import derived_id
from cortex.ports.loop import UndoOffer
from cortex.storage.repository import Repository, as_row, reading
from cortex.storage.schema import CallTable, UndoTable


class UndoRow(Struct, frozen=True, kw_only=True):
    """`before` is put back at `target` when it still stands at version `expected`; `label` is the button's words."""

    id: str
    call_id: str
    category: str
    target: str
    before: dict[str, Any] | None
    expected: str
    label: str
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None


class UndosRepository(Repository):
    """The calls that one user can take back."""

    async def add(self, call_id: str, offer: UndoOffer, expires_at: datetime, after: str = "") -> UndoRow:
        """Offer the way back; a repeat for the same call and target is a no-op. after: the one that it undoes."""
        await self._must_own(CallTable, call_id, "call")
        id = derived_id("undo", call_id, offer.category, offer.target, *filter(None, [after]))
        head = {"id": id, "call_id": call_id, "created_at": self.clock(), "expires_at": expires_at}
        await self._is_new(UndoTable, {**head, **as_row(offer)})
        return await self.get(id)

    @reading
    async def get(self, id: str) -> UndoRow:
        """The way back; NotFound when it is absent or another user's."""
        return await self._get(UndoRow, UndoTable, id, "There is nothing to undo.")

    async def use(self, id: str) -> UndoRow:
        """Take it up, once; Conflict when it was used before or its time is up."""
        at = self.clock()
        change = self._change(UndoTable).where(
            UndoTable.id == id, UndoTable.used_at.is_(None), UndoTable.expires_at > at
        )
        touched = await self._touched(change.values(used_at=at), UndoTable.id)
        undo = await self.get(id)
        if not touched:
            raise Conflict("This was already undone." if undo.used_at else "It is too late to undo this.")
        return undo

    async def give_back(self, id: str) -> None:
        """Offer it again: taking it up did not work."""
        await self.session.execute(self._change(UndoTable).where(UndoTable.id == id).values(used_at=None))

    @reading
    async def of_call(self, call_id: str) -> Sequence[UndoRow]:
        """The ways back of one call, in the order they were left."""
        statement = self._mine(UndoRow, UndoTable).where(UndoTable.call_id == call_id)
        return await self._all(UndoRow, statement.order_by(UndoTable.created_at, UndoTable.id))

    @reading
    async def list(self, limit: int = 50) -> Sequence[UndoRow]:
        """Return what can still be taken back, the newest first."""
        statement = self._mine(UndoRow, UndoTable).where(
            UndoTable.used_at.is_(None), UndoTable.expires_at > self.clock()
        )
        return await self._all(UndoRow, statement.order_by(UndoTable.created_at.desc(), UndoTable.id).limit(limit))
