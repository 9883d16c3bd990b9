"""Receipts: what each round sent and why, with what its plan was made from; texts that went out, each kept once.

What a round took stands in `rounds.py`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select, tuple_

from cortex.base.ids import digest
from cortex.storage.repository import Repository, SharedRepository, reading
from cortex.storage.schema import PlanTable, TextTable, TurnTable

_FORGOTTEN_AT_ONCE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRow:
    """One round. `receipt` as in `selection/plan/receipt.py`; `given`: what it was planned from, `tools/replays.py`."""

    turn_id: str
    round: int
    receipt: dict[str, Any]
    given: dict[str, Any]
    created_at: datetime


class PlansRepository(Repository):
    """The receipts of a user's turns."""

    async def add(self, turn_id: str, round: int, receipt: dict[str, Any], given: dict[str, Any] | None = None) -> None:
        """Keep what a round sends; said again for the same round it takes the first one's place.

        NotFound for a foreign turn.
        """
        await self._must_own(TurnTable, turn_id, "turn")
        values = {"turn_id": turn_id, "round": round, "receipt": receipt, "given": given or {}}
        row = {**values, "created_at": self.clock()}
        await self._put_row(PlanTable, row, ("turn_id", "round"), ("receipt", "given"))

    @reading
    async def of_turn(self, turn_id: str) -> Sequence[PlanRow]:
        """The rounds of a turn, in order."""
        return await self._where(PlanRow, PlanTable, "round", turn_id=turn_id)


class AllPlansRepository(SharedRepository):
    """The receipts of everybody, for housekeeping."""

    async def forget(self, before: datetime) -> int:
        """Throw away those that were made before this moment; how many, at most 200 at once: receipts are long."""
        key = PlanTable.turn_id, PlanTable.round
        old = select(*key).where(PlanTable.created_at < before).limit(_FORGOTTEN_AT_ONCE)
        return len(await self._touched(delete(PlanTable).where(tuple_(*key).in_(old)), PlanTable.turn_id))


class TextsRepository(Repository):
    """The texts of a user's requests."""

    async def keep(self, *texts: str) -> None:
        """Keep these; one that stands already is left alone."""
        rows = [{"digest": digest(text), "text": text} for text in dict.fromkeys(texts)]
        await self._add_new(TextTable, rows)

    @reading
    async def get(self, digests: Iterable[str]) -> Mapping[str, str]:
        """Digest -> text, of those that are kept."""
        statement = select(TextTable.digest, TextTable.text).where(
            TextTable.owner_id == self.owner_id, TextTable.digest.in_(list(digests))
        )
        return {row.digest: row.text for row in await self.session.execute(statement)}
