"""Fitted models of this server, numbered; at most one is in force. The bytes are read only when they are needed."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import func, insert, select, update

from cortex.base.errors import NotFound
from cortex.storage.repository import SharedRepository, reading, selected
from cortex.storage.schema import RefitTable


class RefitRow(Struct, frozen=True, kw_only=True):
    """A fitted model without its bytes. `base`: the shipped utterances it rests on; `digest`: of the bytes."""

    number: int
    base: str
    digest: str
    report: dict[str, Any]
    is_in_force: bool
    made_by: str
    made_at: datetime

    @property
    def key(self) -> str:
        """Return what a snapshot names it by."""
        return f"{self.number}:{self.digest}"


_ROWS = selected(RefitRow, RefitTable)


class RefitsRepository(SharedRepository):
    """The models of the server; who may make and choose them is the services' matter."""

    @reading
    async def all(self) -> Sequence[RefitRow]:
        """Every model, the newest first."""
        return await self._all(RefitRow, _ROWS.order_by(RefitTable.number.desc()))

    @reading
    async def in_force(self) -> RefitRow | None:
        """The one in force; None = the shipped model."""
        return await self._first(RefitRow, _ROWS.where(RefitTable.is_in_force))

    @reading
    async def weights(self, number: int) -> bytes:
        """The bytes of a model; NotFound when there is none."""
        found = (await self.session.execute(select(RefitTable.weights).where(RefitTable.number == number))).first()
        if found is None:
            raise NotFound(f"There is no refit {number}.")
        return bytes(found[0])

    async def add(self, base: str, digest: str, weights: bytes, report: dict[str, Any], by: str) -> int:
        """Keep a model under the next number, not in force yet; its number."""
        highest = (await self.session.execute(select(func.max(RefitTable.number)))).scalar_one() or 0
        values = {"number": highest + 1, "base": base, "digest": digest, "weights": weights, "report": report}
        values |= {"is_in_force": False, "made_by": by, "made_at": self.clock()}
        await self.session.execute(insert(RefitTable), values)
        return highest + 1

    async def choose(self, number: int) -> None:
        """Put this one in force alone; 0 = the shipped model. NotFound when there is none of this number."""
        await self.session.execute(update(RefitTable).where(RefitTable.is_in_force).values(is_in_force=False))
        if number:
            chosen = update(RefitTable).where(RefitTable.number == number).values(is_in_force=True)
            await self._must_touch(chosen, RefitTable.number, f"There is no refit {number}.")
