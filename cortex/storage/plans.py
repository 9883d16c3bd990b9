"""Receipts: what each round sent and why, with what its plan was made from; texts that went out, each kept once.

What a round took stands in `rounds.py`.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache
from typing import Any

from msgspec import Struct
from sqlalchemy import Select, delete, select, tuple_, update

from cortex.base.errors import CortexError
from cortex.base.ids import digest
from cortex.storage import kept
from cortex.storage.packing import earlier, pack, unpack
from cortex.storage.repository import Repository, SharedRepository, reading
from cortex.storage.schema import PlanTable, TextTable, TurnTable

_AT_ONCE = 200
_NOWHERE_ELSE: dict[str, Any] = {"receipt": {}, "given": {}}


class PlanRow(Struct, frozen=True, kw_only=True):
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
        content = {"packed": pack(receipt, given or {}), **_NOWHERE_ELSE}
        row = {"turn_id": turn_id, "round": round, "created_at": self.clock(), **content}
        await self._put_row(PlanTable, row, ("turn_id", "round"), tuple(content))

    @reading
    async def of_turn(self, turn_id: str) -> Sequence[PlanRow]:
        """The rounds of a turn, in order. CortexError where one of them is damaged: other turns are none the worse."""
        rows = await self._run(_of_turn(), turn_id=turn_id)
        names = tuple(rows.keys())
        try:
            return [PlanRow(**unpacked(kept.named(names, row))) for row in rows]
        except ValueError as error:
            raise CortexError(f"What is kept of how this turn's tools were chosen is damaged ({error}).") from error


@cache
def _of_turn() -> Select[Any]:
    plan = kept.columns(PlanTable)
    found = kept.owned(PlanRow, PlanTable, plan.packed)
    return found.where(plan.turn_id == kept.given("turn_id")).order_by(plan.round)


def unpacked(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with its receipt and what was given, whichever form it is kept in; ValueError where it is damaged."""
    whole = dict(row)
    packed = whole.pop("packed")
    halves = unpack(packed) if packed is not None else (earlier(whole["receipt"]), earlier(whole["given"]))
    whole["receipt"], whole["given"] = halves
    return whole


class AllPlansRepository(SharedRepository):
    """The receipts of everybody, for housekeeping."""

    async def pack_older(self, after: tuple[str, int]) -> tuple[str, int] | None:
        """Pack the next rows of an earlier version behind this key, at most 200; the last one's key, None for none."""
        key = PlanTable.turn_id, PlanTable.round
        older = select(*key, PlanTable.receipt, PlanTable.given).where(PlanTable.packed.is_(None), tuple_(*key) > after)
        rows = (await self.session.execute(older.order_by(*key).limit(_AT_ONCE))).all()
        for turn_id, round, receipt, given in rows:
            which = PlanTable.turn_id == turn_id, PlanTable.round == round
            change = update(PlanTable).where(*which, PlanTable.packed.is_(None))  # or a turn wrote it anew meanwhile
            with suppress(ValueError):  # damaged: it stays as it is
                packed = pack(earlier(receipt), earlier(given))
                await self.session.execute(change.values(packed=packed, **_NOWHERE_ELSE))
        return (rows[-1].turn_id, rows[-1].round) if rows else None

    async def forget(self, before: datetime) -> int:
        """Throw away those that were made before this moment; how many, at most 200 at once: receipts are long."""
        key = PlanTable.turn_id, PlanTable.round
        old = select(*key).where(PlanTable.created_at < before).limit(_AT_ONCE)
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
