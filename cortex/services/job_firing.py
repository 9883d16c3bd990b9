"""Fires jobs: what becomes of the slots that are due is written down with the next time, in one commit, once.

No turn begins here: planned slots are begun by `job_starts.py`. A process that dies in between leaves them planned.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cortex.base.errors import NotFound, ToolFailed
from cortex.schedule.policies import Policy, on_overlap
from cortex.schedule.slots import Decision, due
from cortex.services.house import House
from cortex.services.tell import Draft, Tell
from cortex.storage.db import Opener
from cortex.storage.job_rows import ArmedJob, JobRow
from cortex.storage.jobs import AllJobs, Jobs
from cortex.storage.notices import NoticeValues
from cortex.storage.slots import SlotRow, Slots, slot_id

STILL_GOING = "an earlier run was still going"
_JUST_BEFORE = timedelta(microseconds=1)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFiring:
    """Decides slots and keeps the decision."""

    house: House
    tell: Tell

    async def armed(self, until: datetime) -> Sequence[ArmedJob]:
        """The jobs that are due by then."""
        return await self.house.db.open(AllJobs).armed(until)

    async def fire(self, armed: ArmedJob) -> bool:
        """Decide what is due of this job now; False when nothing is, or another process was first."""
        now = self.house.clock()
        try:
            job = await self.house.db.open(Jobs, armed.owner_id).get(armed.id)
        except NotFound:
            return False
        if not job.is_enabled or job.next_at is None or job.next_at > now:
            return False
        try:
            decision = due(job.timing, job.next_at - _JUST_BEFORE, now, policy_of(job))
        except ToolFailed as error:  # a zone that the machine no longer knows, a line of an older build
            await self.house.db.open(Jobs, job.owner_id).pause(job.id, job.version, error.message)
            return True
        draft = await self._missed(job, decision)
        async with self.house.db.together(job.owner_id) as opened:
            if not await opened(Jobs).advance(job.id, job.next_at, job.version, decision.next_at):
                return False
            await self._write(opened, job, decision)
            if draft is not None:
                await draft.write(opened)
        if draft is not None:
            self.tell.ring(job.owner_id)
        return True

    async def _write(self, opened: Opener, job: JobRow, decision: Decision) -> None:
        """Every slot of the decision under its own id; one that stands already stays as it is."""
        slots = opened(Slots)
        missed = {one.slot: one.why for one in decision.missed}
        if decision.unlisted is not None:
            after, until = decision.unlisted
            missed[after + _JUST_BEFORE] = f"so were all from here to {until:%Y-%m-%d %H:%M} UTC: too many to name"
        await slots.miss(job.id, missed)
        going = await slots.open_of(job.id)
        for at in decision.run:
            if await self._takes(job, decision, going):
                await slots.open(job.id, at)
                going = await slots.open_of(job.id)
            else:
                await slots.open(job.id, at, state="skipped", why=STILL_GOING)

    async def _takes(self, job: JobRow, decision: Decision, going: Sequence[SlotRow]) -> bool:
        """Whether one more slot may begin or wait beside these."""
        told = on_overlap(
            policy_of(job),
            is_running=any(slot.state == "running" for slot in going),
            waiting=sum(slot.state == "planned" for slot in going),
            is_catching_up=len(decision.run) > 1,
        )
        return told != "skip"

    async def _missed(self, job: JobRow, decision: Decision) -> Draft | None:
        """What the person is told of slots that nobody will run; nothing where a later one ran in their place."""
        is_made_up = job.on_miss == "once" and bool(decision.run)
        count = len(decision.missed)
        if job.notify_on == "never" or is_made_up or not count:
            return None
        first = decision.missed[0]
        often = "A run was" if count == 1 else f"{count}{' and more' if decision.unlisted else ''} runs were"
        values = NoticeValues(
            kind="job",
            title=f"{job.name}: missed",
            text=f"{often} missed: {first.why}.",
            path=path_of(job),
            tag=f"missed:{job.id}",
            urgency="low",
            subject_id=slot_id(job.id, first.slot),
            is_tainted=job.is_tainted,
        )
        return await self.tell.draft(job.owner_id, f"missed:{values.subject_id}", values, job.deliver_to or None)


def policy_of(job: JobRow) -> Policy:
    """The job's rules, with the house's own beside them."""
    return Policy(
        on_miss=job.on_miss,
        fire_within_s=job.fire_within_s,
        overlap=job.overlap,
        retries=job.retries,
        pause_after=job.pause_after,
        timeout_s=job.timeout_s,
    )


def path_of(job: JobRow) -> str:
    """The job's page."""
    return f"/jobs/{job.id}"
