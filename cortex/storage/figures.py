"""Counts over everybody's rows, for the health page and `/metrics`: no text, name or id of a person among them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct
from sqlalchemy import case, func, select

from cortex.storage.repository import SharedRepository, reading
from cortex.storage.schema import (
    AccountTable,
    ApprovalTable,
    CallTable,
    DeliveryTable,
    JobTable,
    ReminderTable,
    RoundTable,
    SlotTable,
    TurnTable,
)

Counted = Literal["turns", "calls", "slots", "deliveries", "approvals"]
_COUNTED: dict[Counted, type[Any]] = {
    "turns": TurnTable,
    "calls": CallTable,
    "slots": SlotTable,
    "deliveries": DeliveryTable,
    "approvals": ApprovalTable,
}


class ModelFigures(Struct, frozen=True, kw_only=True):
    """Model calls that ended one way ("answered", "failed", …), with what they took together. `ms`: of `timed` ones."""

    state: str
    calls: int
    timed: int
    ms: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    written_tokens: int
    cost_usd: float


class EndpointFigures(Struct, frozen=True, kw_only=True):
    """Calls of one model since a moment. `failed_last`: when one failed last, None when none did."""

    model: str
    answered: int
    failed: int
    failed_last: datetime | None
    answered_last: datetime | None


class FiguresRepository(SharedRepository):
    """Sums over everybody's rows."""

    @reading
    async def by_state(self, what: Counted) -> dict[str, int]:
        """Return how many rows of a table stand in each state."""
        table = _COUNTED[what]
        rows = await self.session.execute(select(table.state, func.count()).group_by(table.state))
        return {state: count for state, count in rows}

    @reading
    async def tool_ms(self) -> tuple[int, int]:
        """Return how many tool calls were timed, and their milliseconds together."""
        row = (await self.session.execute(select(func.count(CallTable.ms), func.sum(CallTable.ms)))).one()
        return row[0], row[1] or 0

    @reading
    async def models(self) -> Sequence[ModelFigures]:
        """Return what model calls took, by how they ended."""
        columns: list[Any] = [RoundTable.state, func.count().label("calls"), func.count(RoundTable.ms).label("timed")]
        columns += [func.coalesce(func.sum(column), 0).label(column.key) for column in _SUMMED]
        return await self._all(ModelFigures, select(*columns).group_by(RoundTable.state))

    @reading
    async def endpoints(self, since: datetime) -> Sequence[EndpointFigures]:
        """The models that were called since then, by name."""
        is_failed, is_answered = RoundTable.state == "failed", RoundTable.state == "answered"
        columns: list[Any] = [
            func.sum(case((is_answered, 1), else_=0)).label("answered"),
            func.sum(case((is_failed, 1), else_=0)).label("failed"),
            func.max(case((is_failed, RoundTable.created_at))).label("failed_last"),
            func.max(case((is_answered, RoundTable.created_at))).label("answered_last"),
        ]
        statement = (
            select(RoundTable.model, *columns)
            .where(RoundTable.created_at >= since, is_failed | is_answered, RoundTable.model != "")
            .group_by(RoundTable.model)
            .order_by(RoundTable.model)
        )
        return await self._all(EndpointFigures, statement)

    @reading
    async def longest_due(self) -> datetime | None:
        """When the job or reminder that is next, or has waited longest, is due; None when there is none."""
        due = []
        for table, clock in ((JobTable, "next_at"), (ReminderTable, "next_at"), (ReminderTable, "again_at")):
            soonest = select(func.min(getattr(table, clock))).join(AccountTable, AccountTable.id == table.owner_id)
            # What a closed account has is never fired, and waits for nothing.
            soonest = soonest.where(AccountTable.is_active, table.removed_at.is_(None))
            due.append((await self.session.execute(soonest)).scalar())
        return min(filter(None, due), default=None)


_SUMMED = (
    RoundTable.ms,
    RoundTable.input_tokens,
    RoundTable.output_tokens,
    RoundTable.cached_tokens,
    RoundTable.written_tokens,
    RoundTable.cost_usd,
)
