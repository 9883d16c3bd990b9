"""One look at all tables that go by the clock: whether anything stirs at all. The alarm asks every two seconds.

An idle server pays for this one query; what stirs is then read by `jobs.py`, `reminders.py` and `slots.py`.
"""

from datetime import datetime
from functools import cache
from typing import Any

from msgspec import Struct
from sqlalchemy import Select, or_, select

from cortex.storage import kept
from cortex.storage.repository import SharedRepository, reading
from cortex.storage.schema import JobTable, ReminderTable, SlotTable


class HeartbeatRow(Struct, frozen=True, kw_only=True):
    """The heartbeat of a server: whether jobs or reminders are due soon, and whether slots wait or run."""

    jobs: bool
    reminders: bool
    slots: bool


class HeartbeatsRepository(SharedRepository):
    """The heartbeat over everybody's jobs, reminders and slots."""

    @reading
    async def beat(self, until: datetime) -> HeartbeatRow:
        """Return what is due by then, or open now. It may say yes for what a closed account has."""
        row: Any = (await self._run(_beat(), until=until)).one()
        return HeartbeatRow(jobs=row[0], reminders=row[1], slots=row[2])


@cache
def _beat() -> Select[Any, Any, Any]:
    job, reminder, slot = (kept.columns(table) for table in (JobTable, ReminderTable, SlotTable))
    until = kept.given("until")
    jobs = select(job.id).where(job.next_at <= until, job.removed_at.is_(None)).exists()
    due = or_(reminder.next_at <= until, reminder.again_at <= until)
    reminders = select(reminder.id).where(due, reminder.removed_at.is_(None)).exists()
    slots = select(slot.id).where(slot.state.in_(("planned", "running"))).exists()
    return select(jobs, reminders, slots)
