"""Runs: the turns of a person, or of everybody, newest first, with what their rounds took and the tools they called."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, Select, case, exists, func, literal_column, select

from cortex.base.role import Channel
from cortex.base.turn import LIVING, TurnState
from cortex.storage.conversations import Source
from cortex.storage.repository import Repository, SharedRepository, each, reading, selected
from cortex.storage.schema import CallTable, ConversationTable, RoundTable, TurnTable
from cortex.storage.turn_statements import LIVING_HERE


class RunRow(Struct, frozen=True, kw_only=True):
    """A turn as it stands in the list. `is_dropped`: a later try took its place."""

    id: str
    owner_id: str
    conversation_id: str
    title: str
    source: Source
    text: str
    state: TurnState
    role: str
    channel: Channel
    job_id: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    error: str
    is_dropped: bool


class RunSum(Struct, frozen=True, kw_only=True):
    """The sum over the rounds of a turn. `unpriced`: answered rounds whose price is unknown."""

    turn_id: str
    rounds: int
    input_tokens: int
    output_tokens: int
    cost_usd: float
    unpriced: int


class RunFilter(Struct, frozen=True, kw_only=True):
    """A choice of runs; what is empty narrows nothing."""

    states: Sequence[TurnState] = ()
    role: str = ""
    tool: str = ""
    conversation_id: str = ""
    job_id: str = ""


class RunsRepository(Repository):
    """The runs of a user. Messages that another turn took in are none."""

    @reading
    async def list(self, wanted: RunFilter, *, skip: int, limit: int) -> Sequence[RunRow]:
        """The newest first; in deleted conversations there are none to see."""
        return await _list(self, wanted, skip, limit, TurnTable.owner_id == self.owner_id)

    @reading
    async def roles(self) -> Sequence[str]:
        """The roles that runs were in."""
        return await _roles(self, TurnTable.owner_id == self.owner_id)


class AllRunsRepository(SharedRepository):
    """The runs of everybody, for an admin; and what belongs to runs that were read before."""

    @reading
    async def list(self, wanted: RunFilter, *, skip: int, limit: int, owner_id: str = "") -> Sequence[RunRow]:
        """As `RunsRepository.list`; `owner_id`: one person's alone."""
        return await _list(self, wanted, skip, limit, *([TurnTable.owner_id == owner_id] if owner_id else []))

    @reading
    async def roles(self) -> Sequence[str]:
        """The roles that runs were in."""
        return await _roles(self)

    @reading
    async def sums(self, turn_ids: Sequence[str]) -> Mapping[str, RunSum]:
        """Return what these turns took, where they asked a model."""
        is_answered = RoundTable.state == "answered"
        columns: tuple[ColumnElement[Any], ...] = (
            func.sum(case((is_answered & (RoundTable.round > 0), 1), else_=0)).label("rounds"),
            func.sum(RoundTable.input_tokens).label("input_tokens"),
            func.sum(RoundTable.output_tokens).label("output_tokens"),
            func.coalesce(func.sum(RoundTable.cost_usd), 0.0).label("cost_usd"),
            func.sum(case((is_answered & RoundTable.cost_usd.is_(None), 1), else_=0)).label("unpriced"),
        )
        statement = select(RoundTable.turn_id, *columns).where(RoundTable.turn_id.in_(turn_ids))
        return {row.turn_id: row for row in await self._all(RunSum, statement.group_by(RoundTable.turn_id))}

    @reading
    async def tools(self, turn_ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """The tools that these turns called, each once, in the order of their calls."""
        statement = select(CallTable.turn_id, CallTable.name).where(CallTable.turn_id.in_(turn_ids))
        order = (CallTable.round, CallTable.created_at, CallTable.id)
        found: dict[str, dict[str, None]] = {}
        for turn_id, name in await self.session.execute(statement.order_by(*order)):
            found.setdefault(turn_id, {})[name] = None
        return {turn_id: tuple(names) for turn_id, names in found.items()}


async def _list(
    repository: Repository, wanted: RunFilter, skip: int, limit: int, *whose: ColumnElement[bool]
) -> Sequence[RunRow]:
    statement: Select[Any] = (
        selected(RunRow, TurnTable)
        .add_columns(ConversationTable.title, ConversationTable.source)
        .join(ConversationTable, ConversationTable.id == TurnTable.conversation_id)
        .where(ConversationTable.deleted_at.is_(None), TurnTable.taken_by.is_(None), *whose)
    )
    if wanted.states:
        statement = statement.where(TurnTable.state.in_(wanted.states))
        if {*wanted.states} <= {*LIVING}:
            statement = statement.where(LIVING_HERE)
    if wanted.tool:
        called = select(CallTable.turn_id).where(CallTable.name == wanted.tool)
        statement = statement.where(TurnTable.id.in_(called))
    if wanted.role:  # not by an index, whose rows would all have to be put into the order of time
        statement = statement.where(TurnTable.role.concat(literal_column("''")) == wanted.role)
    equals = ("conversation_id", "job_id")
    for name in equals:
        if value := getattr(wanted, name):
            statement = statement.where(getattr(TurnTable, name) == value)
    order = (TurnTable.created_at.desc(), TurnTable.id.desc())
    return await repository._all(RunRow, statement.order_by(*order).offset(skip).limit(limit))


async def _roles(repository: Repository, *whose: ColumnElement[bool]) -> Sequence[str]:
    roles = each(TurnTable.role)
    is_in_one = exists().where(TurnTable.role == roles.c.value, *whose)
    statement = select(roles.c.value).where(is_in_one).order_by(roles.c.value)
    return (await repository.session.execute(statement)).scalars().all()
