"""How tools fare over the whole server: counts of calls by tool. What was said in a call stays its owner's."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, case, func, select

from cortex.storage.calls import CallState
from cortex.storage.repository import SharedRepository, reading
from cortex.storage.schema import CallTable

RAN: tuple[CallState, ...] = ("done", "failed", "unknown")
FAILED: tuple[CallState, ...] = ("failed", "unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcomes:
    """What became of the calls of a tool. `rescued`: calls whose turn began without it; `failed_at`: the last time."""

    name: str
    calls: int
    rescued: int
    failures: int
    failed_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UseOfTool:
    """One call, without its words."""

    id: str
    owner_id: str
    conversation_id: str
    state: CallState
    is_rescued: bool
    ms: int | None
    created_at: datetime


class ToolUsesRepository(SharedRepository):
    """Reads the calls of everybody, as figures."""

    @reading
    async def by_tool(self, since: datetime) -> Sequence[ToolOutcomes]:
        """One row for each tool that was called since then."""
        has_run, has_failed = CallTable.state.in_(RAN), CallTable.state.in_(FAILED)
        columns: tuple[ColumnElement[Any], ...] = (
            func.sum(case((has_run, 1), else_=0)).label("calls"),
            func.sum(case((and_(has_run, CallTable.is_rescued), 1), else_=0)).label("rescued"),
            func.sum(case((has_failed, 1), else_=0)).label("failures"),
            func.max(case((has_failed, CallTable.created_at))).label("failed_at"),
        )
        statement = select(CallTable.name, *columns).where(CallTable.created_at >= since)
        return await self._all(ToolOutcomes, statement.group_by(CallTable.name).order_by(CallTable.name))

    @reading
    async def of_tool(self, name: str, limit: int = 20) -> Sequence[UseOfTool]:
        """The last calls of a tool, newest first."""
        columns = (getattr(CallTable, field) for field in UseOfTool.__dataclass_fields__)
        statement = select(*columns).where(CallTable.name == name)
        return await self._all(UseOfTool, statement.order_by(CallTable.created_at.desc(), CallTable.id).limit(limit))
