"""The line of slots that wait for a free place: who stands in it since when, and how many stand before each.

Its order is that of `AllSlotsRepository.ready`: everybody's next run in turn, each person's oldest first.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy import ColumnElement, func, select, update
from sqlalchemy.orm import aliased

from cortex.storage.repository import SharedRepository, reading
from cortex.storage.schema import JobTable, SlotTable
from cortex.storage.slots import in_order


class Newcomer(Struct, frozen=True, kw_only=True):
    """A slot that could begin now and stands in no line yet. `attempt`: 0 for the first, which alone can be missed.

    `fire_within_s`: of its job; later than this it is missed.
    """

    id: str
    due_at: datetime
    attempt: int
    fire_within_s: int


class SlotLineRepository(SharedRepository):
    """The line of everybody."""

    @reading
    async def newcomers(self) -> Sequence[Newcomer]:
        """Those that nothing but a free place is missing to; none that waits for an earlier run of its own job."""
        columns = (SlotTable.id, SlotTable.due_at, SlotTable.attempt, JobTable.fire_within_s)
        statement = in_order(columns, self.clock()).where(SlotTable.in_line_at.is_(None), ~_is_behind_its_own())
        return await self._all(Newcomer, statement)

    async def join(self, ids: Sequence[str]) -> None:
        """They stand in line from now on."""
        change = update(SlotTable).where(SlotTable.id.in_(ids), SlotTable.state == "planned")
        await self.session.execute(change.values(in_line_at=self.clock()))

    @reading
    async def places(self, ids: Sequence[str]) -> Mapping[str, int]:
        """Count who stands before each of these, by id; none that is not in line, or waits for its job's own run."""
        columns = (SlotTable.id, SlotTable.due_at, SlotTable.in_line_at)
        line = in_order(columns, self.clock(), with_place=True).where(~_is_behind_its_own()).subquery()
        number = func.row_number().over(order_by=(line.c.place, line.c.due_at, line.c.id))
        numbered = select(line.c.id, line.c.in_line_at, number.label("number")).subquery()
        statement = select(numbered.c.id, numbered.c.number - 1)
        found = statement.where(numbered.c.id.in_(ids), numbered.c.in_line_at.is_not(None))
        return {id: before for id, before in (await self.session.execute(found)).all()}


def _is_behind_its_own() -> ColumnElement[bool]:
    earlier = aliased(SlotTable)
    return select(earlier.id).where(earlier.job_id == SlotTable.job_id, earlier.state == "running").exists()
