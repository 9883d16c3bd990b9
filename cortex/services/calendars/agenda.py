"""What stands in a stretch of time for one person: appointments, their own and those they may see, reminders, jobs.

Reminders and jobs that repeat are followed from now on, a few a day: one of each minute would fill the page.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct

from cortex.base.user import User
from cortex.base.zone import local
from cortex.ports.calendars import Calendars, Occasion
from cortex.ports.schedule import Timing, Timings
from cortex.services.calendars.birthdays import Birthdays
from cortex.services.runtime import Runtime
from cortex.storage.calendars import CalendarsRepository
from cortex.storage.calendars import SeenCalendar as SeenCalendar
from cortex.storage.job_rows import JobFilter
from cortex.storage.jobs import JobsRepository
from cortex.storage.reminders import RemindersRepository

A_DAY_MOST = 4  # times of one job or reminder
JOBS_MOST = 200
SHORT = timedelta(minutes=15)


class AgendaLine(Struct, frozen=True, kw_only=True):
    """One thing in time. `occasion`: of an appointment; else a reminder's or a job's `id` and `text` stand alone."""

    kind: Literal["appointment", "reminder", "job"]
    id: str
    text: str
    starts_at: datetime
    ends_at: datetime
    occasion: Occasion | None = None


class Agenda(Struct, frozen=True, kw_only=True):
    """All that stands in a time, by its begin. `calendars`: those that are seen."""

    lines: Sequence[AgendaLine]
    calendars: Sequence[SeenCalendar] = ()

    @property
    def stale(self) -> Sequence[SeenCalendar]:
        """Those whose server is silent, one of each account."""
        return list({one.account_id: one for one in self.calendars if one.failure}.values())


class AgendaService(Struct, frozen=True, kw_only=True):
    """Gathers it. `calendars_of` loads what reads appointments: asked only for whoever sees a calendar."""

    runtime: Runtime
    timings: Timings
    calendars_of: Callable[[str], Calendars]

    async def of(self, user: User, since: datetime, until: datetime) -> Agenda:
        """All that stands in this time at least in part."""
        calendars = await self.calendars(user)
        lines = list(await self.timed(user, since, until))
        occasions = self._occasions(user, since, until) if calendars else self._birthdays(user, since, until)
        lines += map(_appointment, await occasions)
        return Agenda(lines=sorted(lines, key=lambda line: (line.starts_at, line.text)), calendars=calendars)

    async def calendars(self, user: User) -> Sequence[SeenCalendar]:
        """Every calendar that this person sees, their own first."""
        return await self.runtime.db.repository(CalendarsRepository, user.id).seen()

    async def appointments(self, user: User, since: datetime, until: datetime) -> Sequence[Occasion]:
        """The appointments alone; nothing that reads them is loaded for whoever sees no calendar."""
        if await self.calendars(user):
            return await self._occasions(user, since, until)
        return await self._birthdays(user, since, until)

    async def _occasions(self, user: User, since: datetime, until: datetime) -> Sequence[Occasion]:
        return await self.calendars_of(user.id).between(since, until)

    async def _birthdays(self, user: User, since: datetime, until: datetime) -> Sequence[Occasion]:
        """Birthdays alone, of whoever reads an address book and sees no calendar."""
        found = Birthdays(db=self.runtime.db, user_id=user.id)
        return await found.between(since, until, user.time_zone)

    async def timed(self, user: User, since: datetime, until: datetime) -> Sequence[AgendaLine]:
        """Reminders and jobs, from now on; what waits for an answer stands where it came due."""
        found: list[AgendaLine] = []
        for row in await self.runtime.db.repository(RemindersRepository, user.id).list(("planned", "due", "snoozed")):
            first = row.due_at if row.state == "due" else row.wakes_at
            for at in self._times(row.timing, first, user.time_zone, since, until):
                found.append(AgendaLine(kind="reminder", id=row.id, text=row.text, starts_at=at, ends_at=at + SHORT))
        jobs = self.runtime.db.repository(JobsRepository, user.id)
        for job in await jobs.list(JobFilter(state="enabled"), by="next", limit=JOBS_MOST):
            for at in self._times(job.timing, job.next_at, user.time_zone, since, until):
                found.append(AgendaLine(kind="job", id=job.id, text=job.name, starts_at=at, ends_at=at + SHORT))
        return found

    def _times(
        self, timing: Timing, first: datetime | None, zone: str, since: datetime, until: datetime
    ) -> Sequence[datetime]:
        """When it comes within this time: its next moment, then those that follow, so many a day at most."""
        if first is None or first >= until:
            return ()
        found = [first] if first >= since else []
        if timing.kind in ("every", "cron"):
            at = max(first, since - timedelta(microseconds=1))
            while at < until:
                times = self.timings.following(timing, at, A_DAY_MOST)
                found += [one for one in times if one < until]
                if len(times) < A_DAY_MOST:
                    break
                is_often = local(times[0], zone).date() == local(times[-1], zone).date()
                at = _day_after(times[-1], zone) if is_often else times[-1]
        return found


def _day_after(at: datetime, zone: str) -> datetime:
    """The last moment ahead of the next day there."""
    there = local(at, zone)
    return there.replace(hour=23, minute=59, second=59, microsecond=999_999)


def _appointment(one: Occasion) -> AgendaLine:
    return AgendaLine(
        kind="appointment", id=one.id, text=one.title, starts_at=one.starts_at, ends_at=one.ends_at, occasion=one
    )
