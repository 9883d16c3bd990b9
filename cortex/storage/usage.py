"""Sums over the ledger for the usage page: by day, model, role, job, person, token or tool. Reads no receipt.

At 100,000 rounds in 28 days, on SQLite, in seconds of one core (2026-11-21): days 0.19, histogram 0.07, turns 0.14,
tools 0.44. So nothing is kept summed, and no sum can be wrong.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct
from sqlalchemy import (
    ColumnElement,
    Integer,
    Select,
    and_,
    case,
    cast,
    func,
    literal,
    literal_column,
    select,
    union_all,
)

from cortex.base.record import field_names
from cortex.storage.repository import Repository, SharedRepository, reading
from cortex.storage.schema import ApiRequestTable, ApiTokenTable, CallTable, RoundTable
from cortex.storage.table import Moment

By = Literal["model", "role", "job", "person", "token"]
_NOTHING: ColumnElement[str] = literal_column("''")  # no parameter: PostgreSQL groups by the very same expression only
_COLUMNS = {
    "model": RoundTable.model,
    "role": RoundTable.role,
    "job": RoundTable.job_id,
    "person": RoundTable.owner_id,
    "token": func.coalesce(ApiTokenTable.name, _NOTHING),
}
Span = tuple[datetime, datetime]


class Sum(Struct, frozen=True, kw_only=True):
    """The sum over some rounds: sent, taken, cost. `unpriced` rounds are not in `cost_usd`."""

    rounds: int = 0
    unpriced: int = 0
    cost_usd: float = 0.0
    total_tokens: int = 0
    sent_tokens: int = 0
    extra_tokens: int = 0
    cut_role: int = 0
    cut_mode: int = 0
    cut_choice: int = 0
    cut_budget: int = 0
    cut_form: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0

    @property
    def fresh_tokens(self) -> int:
        """Input that was neither read from a cache nor written to one."""
        return max(0, self.input_tokens - self.cached_tokens - self.written_tokens)

    @property
    def left_out(self) -> int:
        """Tool tokens that did not go out."""
        return self.cut_role + self.cut_mode + self.cut_choice + self.cut_budget + self.cut_form


SUMMED = tuple(name for name in field_names(Sum) if name not in ("rounds", "unpriced", "cost_usd"))


class Cell(Sum, frozen=True, kw_only=True):
    """Answered rounds of one day (its place in the spans asked for), one key and one cache outcome, summed."""

    day: int
    key: str
    cache: str


class ExpensiveTurn(Struct, frozen=True, kw_only=True):
    """A turn with what it took; `cost_usd` None = no round of it has a known price."""

    turn_id: str
    owner_id: str
    at: datetime
    model: str
    rounds: int
    tokens: int
    cost_usd: float | None


class ToolUsage(Struct, frozen=True, kw_only=True):
    """A tool: in how many requests its definition went out, with how many tokens, and how often it was called."""

    name: str
    rounds: int = 0
    tokens: int = 0
    calls: int = 0


class _Sums(Repository, ABC):
    """The queries; `_whose` says over whose rows."""

    @abstractmethod
    def _whose(self, table: type[RoundTable] | type[CallTable]) -> Sequence[ColumnElement[bool]]: ...

    @reading
    async def cells(self, spans: Sequence[Span], by: By) -> Sequence[Cell]:
        """One pass over the rounds of these days, from which every table of the page but four is made."""
        days = _days(spans)
        sums = [func.sum(getattr(RoundTable, name)).label(name) for name in SUMMED]
        statement = (
            select(
                days.c.day,
                _COLUMNS[by].label("key"),
                RoundTable.cache,
                func.count().label("rounds"),
                func.sum(case((RoundTable.cost_usd.is_(None), 1), else_=0)).label("unpriced"),
                func.coalesce(func.sum(RoundTable.cost_usd), 0.0).label("cost_usd"),
                *sums,
            )
            .join(days, and_(RoundTable.created_at >= days.c.start, RoundTable.created_at < days.c.finish))
            .where(RoundTable.state == "answered", *self._whose(RoundTable))
            .group_by(days.c.day, _COLUMNS[by], RoundTable.cache)
        )
        if by == "token":
            statement = statement.outerjoin(ApiRequestTable, ApiRequestTable.turn_id == RoundTable.turn_id)
            statement = statement.outerjoin(ApiTokenTable, ApiTokenTable.id == ApiRequestTable.token_id)
        rows = (await self.session.execute(statement)).mappings()
        return [Cell(**{**row, **{name: int(row[name]) for name in (*SUMMED, "unpriced")}}) for row in rows]

    @reading
    async def histogram(self, span: Span) -> Sequence[tuple[int, int]]:
        """(rounds, how many turns took so many), in order."""
        each = self._turns(span, func.count().label("rounds")).subquery()
        statement = select(each.c.rounds, func.count()).group_by(each.c.rounds).order_by(each.c.rounds)
        return [(rounds, turns) for rounds, turns in await self.session.execute(statement)]

    @reading
    async def dear(self, span: Span, limit: int) -> Sequence[ExpensiveTurn]:
        """The turns that cost most; where nothing has a price, those of most tokens."""
        cost = func.sum(RoundTable.cost_usd)
        tokens = func.sum(RoundTable.input_tokens + RoundTable.output_tokens)
        statement = (
            self._turns(
                span,
                RoundTable.turn_id,
                func.min(RoundTable.owner_id).label("owner_id"),
                func.min(RoundTable.created_at).label("at"),
                func.max(RoundTable.model).label("model"),
                func.count().label("rounds"),
                tokens.label("tokens"),
                cost.label("cost_usd"),
            )
            .order_by(func.coalesce(cost, 0.0).desc(), tokens.desc(), RoundTable.turn_id)
            .limit(limit)
        )
        return [ExpensiveTurn(**row) for row in (await self.session.execute(statement)).mappings()]

    @reading
    async def tools(self, span: Span) -> Sequence[ToolUsage]:
        """Every tool that was sent or called, by name. Slower than the rest: it opens the list of each round."""
        sent = {
            name: (rounds, int(tokens)) for name, rounds, tokens in await self.session.execute(self._sent_tools(span))
        }
        statement = (
            select(CallTable.name, func.count())
            .where(CallTable.created_at >= span[0], CallTable.created_at < span[1], *self._whose(CallTable))
            .group_by(CallTable.name)
        )
        called = {name: count for name, count in await self.session.execute(statement)}
        return [
            ToolUsage(name=name, rounds=rounds, tokens=tokens, calls=called.get(name, 0))
            for name in sorted(sent.keys() | called.keys())
            for rounds, tokens in [sent.get(name, (0, 0))]
        ]

    def _sent_tools(self, span: Span) -> Select[Any]:
        is_postgresql = self.session.get_bind().dialect.name == "postgresql"
        each = func.json_each_text if is_postgresql else func.json_each
        row = each(RoundTable.sent).table_valued("key", "value")
        return (
            select(row.c.key, func.count(), func.sum(cast(row.c.value, Integer)))
            .select_from(RoundTable)
            .join(row, literal(value=True))
            .where(*self._answered_in(span))
            .group_by(row.c.key)
        )

    def _turns(self, span: Span, *columns: Any) -> Select[Any]:
        """Columns a turn; the summary that came before it is one of its rounds, not one more turn."""
        return select(*columns).where(*self._answered_in(span)).group_by(RoundTable.turn_id)

    def _answered_in(self, span: Span) -> Sequence[ColumnElement[bool]]:
        start, end = span
        is_in = (RoundTable.created_at >= start, RoundTable.created_at < end, RoundTable.state == "answered")
        return (*is_in, *self._whose(RoundTable))


class UsageRepository(_Sums):
    """The usage of one user's calls."""

    def _whose(self, table: type[RoundTable] | type[CallTable]) -> Sequence[ColumnElement[bool]]:
        return (table.owner_id == self.owner_id,)


class AllUsageRepository(_Sums, SharedRepository):
    """The usage of everybody's calls."""

    def _whose(self, table: type[RoundTable] | type[CallTable]) -> Sequence[ColumnElement[bool]]:
        return ()


def _days(spans: Sequence[Span]) -> Any:
    """The days as a table to join: each is one range of an index, whatever clock change it holds."""
    kind = Moment()
    rows = [
        select(
            literal(number, Integer).label("day"),
            literal(start, kind).label("start"),
            literal(end, kind).label("finish"),
        )
        for number, (start, end) in enumerate(spans)
    ]
    return union_all(*rows).cte("days")
