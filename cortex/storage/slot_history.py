"""What the pages show of slots: the history of a job, its last slots as bars, and what a run takes on the average.

Each is one query for all jobs of a page, and reads the newest slots only, however long the history is.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, Double, Select, cast, func, select
from sqlalchemy.orm import aliased

from cortex.base.job import SLOT_ENDS, SlotState
from cortex.storage.repository import Repository, reading, selected
from cortex.storage.schema import JobTable, NoticeTable, SlotTable
from cortex.storage.slots import SlotRow

BARS = 14
MEAN_OF = 100


class RunBar(Struct, frozen=True, kw_only=True):
    """A slot as a bar."""

    id: str
    job_id: str
    due_at: datetime
    state: SlotState
    why: str
    is_by_hand: bool
    in_line_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    cost_usd: float | None


class RunMean(Struct, frozen=True, kw_only=True):
    """The average run of a job. `runs`: how many were looked at; None: no price is known."""

    job_id: str
    runs: int
    cost_usd: float | None
    tokens: float


class SlotHistoryRepository(Repository):
    """The slots of one user's jobs, as they are looked at."""

    @reading
    async def list(
        self, job_id: str, *, states: Sequence[SlotState] = (), before: datetime | None = None, limit: int = 50
    ) -> Sequence[SlotRow]:
        """A job's slots, newest first; `before`: those due ahead of the last one of the page before."""
        statement = self._mine(SlotRow, SlotTable).where(SlotTable.job_id == job_id)
        if states:
            statement = statement.where(SlotTable.state.in_(states))
        if before is not None:
            statement = statement.where(SlotTable.due_at < before)
        return await self._all(SlotRow, statement.order_by(SlotTable.due_at.desc()).limit(limit))

    @reading
    async def with_notice(self, slot_ids: Sequence[str]) -> frozenset[str]:
        """Those of these slots of which a notice stands."""
        statement = select(NoticeTable.subject_id).where(
            self._checked(NoticeTable), NoticeTable.subject_id.in_(slot_ids)
        )
        return frozenset((await self.session.execute(statement)).scalars())

    @reading
    async def bars(self, job_ids: Sequence[str], each: int = BARS) -> Mapping[str, tuple[RunBar, ...]]:
        """The last slots of each of these jobs, oldest first."""
        statement = self._newest(selected(RunBar, SlotTable), job_ids, each).order_by(
            SlotTable.job_id, SlotTable.due_at
        )
        found: dict[str, tuple[RunBar, ...]] = dict.fromkeys(job_ids, ())
        for bar in await self._all(RunBar, statement):
            found[bar.job_id] += (bar,)
        return found

    @reading
    async def latest(self, job_ids: Sequence[str]) -> Mapping[str, SlotRow]:
        """The newest slot of each of these jobs that has ended; no entry for a job that has none."""
        is_ended = SlotTable.state.in_(SLOT_ENDS)
        statement = self._newest(selected(SlotRow, SlotTable).where(is_ended), job_ids, 1, only_ended=True)
        return {slot.job_id: slot for slot in await self._all(SlotRow, statement)}

    @reading
    async def means(self, job_ids: Sequence[str]) -> Mapping[str, RunMean]:
        """Return what a run takes, from those among the last hundred slots that were started; no entry for no run."""
        columns: tuple[ColumnElement[Any], ...] = (
            func.count().label("runs"),
            func.avg(SlotTable.cost_usd).label("cost_usd"),
            func.avg(cast(SlotTable.tokens, Double)).label("tokens"),
        )
        statement = select(SlotTable.job_id, *columns).where(
            SlotTable.started_at.is_not(None), SlotTable.state.in_(SLOT_ENDS)
        )
        found = await self._all(RunMean, self._newest(statement, job_ids, MEAN_OF).group_by(SlotTable.job_id))
        return {mean.job_id: mean for mean in found}

    def _newest(
        self, statement: Select[Any], job_ids: Sequence[str], each: int, *, only_ended: bool = False
    ) -> Select[Any]:
        """The statement on the last `each` slots of every job: a range of the index for each, not all its slots."""
        other = aliased(SlotTable)
        oldest = select(other.due_at).where(other.job_id == JobTable.id)
        if only_ended:
            oldest = oldest.where(other.state.in_(SLOT_ENDS))
        nth = oldest.order_by(other.due_at.desc()).offset(each - 1).limit(1).scalar_subquery()
        first = select(func.min(other.due_at)).where(other.job_id == JobTable.id).scalar_subquery()
        bounds = (
            select(JobTable.id, func.coalesce(nth, first).label("due_at"))
            .where(JobTable.owner_id == self.owner_id, JobTable.id.in_(job_ids))
            .cte("bounds")
            .prefix_with("MATERIALIZED")  # else PostgreSQL computes the bound anew for each slot: 7 s for 50 jobs
        )
        return statement.select_from(bounds).join(
            SlotTable, (SlotTable.job_id == bounds.c.id) & (SlotTable.due_at >= bounds.c.due_at)
        )
