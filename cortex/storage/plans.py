"""The usage ledger: what each round sent, and what it cost. One row a round; sums are computed, never stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from typing import Any

from sqlalchemy import func, select

from cortex.base.messages import Usage
from cortex.storage.repository import Repository, reading
from cortex.storage.schema import PlanTable, TurnTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One round. `receipt` as in `selection/types.py`; `cost_usd` is None where the price is unknown."""

    turn_id: str
    round: int
    receipt: dict[str, Any]
    request_tokens: int
    model: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    written_tokens: int
    cost_usd: float | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """A sum over rounds: input and output tokens, and dollars where the price is known."""

    tokens: int
    usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DayUsage:
    """What one model took on one day; `unpriced` rounds are not in `cost_usd`."""

    day: date
    model: str
    rounds: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_usd: float
    unpriced: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    model: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_usd: float | None
    created_at: datetime


class Plans(Repository):
    """The rounds of a user's turns."""

    async def add(self, turn_id: str, round: int, receipt: dict[str, Any], request_tokens: int) -> None:
        """Keep what a round sends; said again for the same round it takes the first one's place.

        NotFound for a foreign turn.
        """
        await self._must_own(TurnTable, turn_id, "turn")
        statement = self._insert(PlanTable, self._blank(turn_id, round, receipt, request_tokens))
        await self.session.execute(
            statement.on_conflict_do_update(
                index_elements=["turn_id", "round"],
                set_={"receipt": receipt, "request_tokens": request_tokens},
                where=PlanTable.owner_id == self.owner_id,
            )
        )

    async def usage(self, turn_id: str, round: int, model: str, usage: Usage, cost_usd: float | None) -> None:
        """Keep what the round took, as the provider counted it; repeated, it is the same row."""
        await self._must_own(TurnTable, turn_id, "turn")
        took: dict[str, Any] = {
            "model": model,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cached_tokens": usage.cached_tokens,
            "written_tokens": usage.written_tokens,
            "cost_usd": cost_usd,
        }
        statement = self._insert(PlanTable, {**self._blank(turn_id, round, {}, 0), **took})
        await self.session.execute(
            statement.on_conflict_do_update(
                index_elements=["turn_id", "round"], set_=took, where=PlanTable.owner_id == self.owner_id
            )
        )

    @reading
    async def of_turn(self, turn_id: str) -> Sequence[Plan]:
        """The rounds of a turn, in order."""
        statement = self._mine(Plan, PlanTable).where(PlanTable.turn_id == turn_id)
        return await self._all(Plan, statement.order_by(PlanTable.round))

    @reading
    async def spent(self, since: datetime) -> Spent:
        """What the user's rounds took since then."""
        return await self._sum(PlanTable.created_at >= since)

    @reading
    async def spent_in_turn(self, turn_id: str) -> Spent:
        """What one turn took so far."""
        return await self._sum(PlanTable.turn_id == turn_id)

    @reading
    async def by_day(self, since: datetime, zone: tzinfo) -> Sequence[DayUsage]:
        """What each model took on each day of `zone`, days in order, then models by name."""
        statement = self._mine(_Round, PlanTable).where(PlanTable.created_at >= since, PlanTable.model != "")
        groups: dict[tuple[date, str], list[_Round]] = {}
        for row in await self._all(_Round, statement):
            groups.setdefault((row.created_at.astimezone(zone).date(), row.model), []).append(row)
        return [
            DayUsage(
                day=day,
                model=model,
                rounds=len(rows),
                input_tokens=sum(row.input_tokens for row in rows),
                output_tokens=sum(row.output_tokens for row in rows),
                cached_tokens=sum(row.cached_tokens for row in rows),
                cost_usd=sum(row.cost_usd or 0.0 for row in rows),
                unpriced=sum(row.cost_usd is None for row in rows),
            )
            for (day, model), rows in sorted(groups.items())
        ]

    async def _sum(self, condition: Any) -> Spent:
        statement = select(
            func.coalesce(func.sum(PlanTable.input_tokens + PlanTable.output_tokens), 0),
            func.coalesce(func.sum(PlanTable.cost_usd), 0.0),
        ).where(PlanTable.owner_id == self.owner_id, condition)
        tokens, usd = (await self.session.execute(statement)).one()
        return Spent(tokens=int(tokens), usd=float(usd or 0.0))

    def _blank(self, turn_id: str, round: int, receipt: dict[str, Any], request_tokens: int) -> dict[str, Any]:
        return {
            "turn_id": turn_id,
            "round": round,
            "receipt": receipt,
            "request_tokens": request_tokens,
            "model": "",
            "input_tokens": 0,
            "output_tokens": 0,
            "cached_tokens": 0,
            "written_tokens": 0,
            "cost_usd": None,
            "created_at": self.clock(),
        }
