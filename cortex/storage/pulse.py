"""One look at all tables that go by the clock: whether anything stirs at all. The alarm asks every two seconds.

An idle server pays for this one query; what stirs is then read by `jobs.py`, `reminders.py` and `slots.py`.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import or_, select

from cortex.storage.repository import SharedRepository, reading
from cortex.storage.schema import JobTable, ReminderTable, SlotTable


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatRow:
    """The heartbeat of a server: whether jobs or reminders are due soon, and whether slots wait or run."""

    jobs: bool
    reminders: bool
    slots: bool


class HeartbeatsRepository(SharedRepository):
    """The heartbeat over everybody's jobs, reminders and slots."""

    @reading
    async def beat(self, until: datetime) -> HeartbeatRow:
        """Return what is due by then, or open now. It may say yes for what a closed account has."""
        due = or_(ReminderTable.next_at <= until, ReminderTable.again_at <= until)
        jobs = select(JobTable.id).where(JobTable.next_at <= until, JobTable.removed_at.is_(None)).exists()
        reminders = select(ReminderTable.id).where(due, ReminderTable.removed_at.is_(None)).exists()
        slots = select(SlotTable.id).where(SlotTable.state.in_(("planned", "running"))).exists()
        row = (await self.session.execute(select(jobs, reminders, slots))).one()
        return HeartbeatRow(jobs=row[0], reminders=row[1], slots=row[2])
