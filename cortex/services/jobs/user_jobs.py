"""One user's jobs as tools see them: implements the port `Jobs`. Pages have `jobs.py`."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.errors import ToolFailed
from cortex.ports.schedule import Job, Timing, Timings
from cortex.services.runtime import Runtime
from cortex.storage.job_rows import JobRow, JobValues
from cortex.storage.jobs import JobsRepository
from cortex.storage.slot_history import SlotHistoryRepository
from cortex.storage.slots import SlotRow

if TYPE_CHECKING:
    from cortex.services.jobs.appointments import JobAppointments


class UserJobs(Struct, frozen=True, kw_only=True):
    """Implements the port `Jobs`."""

    runtime: Runtime
    timings: Timings
    user_id: str
    appointments_of: Callable[[str], "JobAppointments"]

    async def list(self) -> Sequence[Job]:
        """All of them, by name."""
        rows = await self._jobs.list()
        latest = await self.runtime.db.repository(SlotHistoryRepository, self.user_id).latest([row.id for row in rows])
        return [_job(row, latest.get(row.id)) for row in rows]

    async def add(
        self, id: str, name: str, prompt: str, timing: Timing, role: str, *, is_tainted: bool, is_private: bool
    ) -> Job:
        """A new job, switched on; the one that stands under this id already is handed back."""
        values = JobValues(
            name=name,
            prompt=prompt,
            timing_kind=timing.kind,
            expression=timing.expression,
            time_zone=timing.time_zone,
            words=timing.words,
            typed=timing.typed,
            role=role,
            is_tainted=is_tainted,
            is_private=is_private,
        )
        return await self._shown(await self._jobs.add(id, values, self._looked_at(timing)))

    async def enable(self, id: str, is_enabled: bool, expected_version: int) -> Job:
        """Switch it on or off; Conflict when it no longer stands at that version."""
        if not is_enabled:
            return _job(await self._jobs.pause(id, expected_version))
        row = await self._jobs.get(id)
        return await self._shown(await self._jobs.enable(id, expected_version, self._looked_at(row.timing)))

    async def remove(self, id: str, expected_version: int) -> None:
        """Take it off with its coming slots, kept for `restore` a day long; Conflict as above."""
        await self._jobs.remove(id, expected_version)

    async def restore(self, id: str) -> Job:
        """Put a removed job back as it was; slots that were missed meanwhile stay missed."""
        row = await self._jobs.lately(id)
        return await self._shown(await self._jobs.restore(id, self._looked_at(row.timing) if row else None))

    @property
    def _jobs(self) -> JobsRepository:
        return self.runtime.db.repository(JobsRepository, self.user_id)

    async def following(self, timing: Timing, count: int) -> Sequence[datetime]:
        """The next moments of a timing beside appointments; ToolFailed where no calendar is seen."""
        return await self.appointments_of(self.user_id).following(timing, count)

    def _looked_at(self, timing: Timing) -> datetime | None:
        return looked_at(self.timings, timing, self.runtime.clock())

    async def _shown(self, row: JobRow) -> Job:
        """The job with its next time as it will be found."""
        if row.timing_kind != "appointment" or not row.is_enabled:
            return _job(row)
        try:
            times = await self.following(row.timing, 1)
        except ToolFailed:  # it waits for a calendar
            times = ()
        return _job(replace(row, next_at=next(iter(times), None)))


def looked_at(timings: Timings, timing: Timing, now: datetime) -> datetime | None:
    """Return when the job is looked at first: beside appointments at once, so that none is missed that comes now."""
    return now if timing.kind == "appointment" else next(iter(timings.following(timing, now, 1)), None)


def _job(row: JobRow, last: SlotRow | None = None) -> Job:
    return Job(
        id=row.id,
        name=row.name,
        prompt=row.prompt or f"call {row.tool}",
        timing=row.timing,
        role=row.role,
        is_enabled=row.is_enabled,
        next_at=row.next_at,
        last=said(last) if last else "",
        is_tainted=row.is_tainted,
        version=row.version,
    )


def said(slot: SlotRow) -> str:
    """Return how a slot ended, in a few words."""
    return f"{slot.state}: {slot.why}" if slot.why else slot.state
