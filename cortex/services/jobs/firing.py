"""Fires jobs: what becomes of the slots that are due is written down with the next time, in one commit, once.

No turn begins here: planned slots are begun by `starts.py`. A process that dies in between leaves them planned.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.errors import ToolFailed
from cortex.base.zone import moment
from cortex.schedule.policies import QUEUE_MOST, MissedPolicy, on_overlap
from cortex.schedule.slots import MADE_UP, DueSlots, MissedSlot, due
from cortex.services.jobs.starts import path_of
from cortex.services.notifier import Notifier, PendingNotice
from cortex.services.runtime import Runtime
from cortex.storage.db import Opener
from cortex.storage.job_rows import ArmedJob, JobRow
from cortex.storage.jobs import AllJobsRepository, JobsRepository
from cortex.storage.notices import NoticesRepository, NoticeValues
from cortex.storage.slots import SlotRow, SlotsRepository, slot_id

if TYPE_CHECKING:
    from cortex.services.jobs.appointments import JobAppointments

STILL_GOING = "an earlier run was still going"
QUEUE_FULL = f"{QUEUE_MOST} earlier ones were waiting still"
ARMED_MOST = 25  # what became due meanwhile, of others, comes behind no more than these
_JUST_BEFORE = timedelta(microseconds=1)

log = logging.getLogger(__name__)


class SlotOutcome(Struct, frozen=True, kw_only=True):
    """The fate of a decision's slots: they begin or wait, are left out beside an earlier run, or are missed.

    `lost`: those of the missed that no other run stands in for.
    """

    begun: tuple[datetime, ...]
    skipped: tuple[datetime, ...]
    missed: tuple[MissedSlot, ...]
    lost: tuple[MissedSlot, ...]


class _ChangedMeanwhileError(Exception):
    """A calendar changed while it was decided what is due: nothing of that decision stands."""


class JobFiring(Struct, frozen=True, kw_only=True):
    """Decides slots, keeps the decision, and says what nobody will run.

    `appointments_of`: loads what reads a person's appointments, for jobs that stand beside these.
    """

    runtime: Runtime
    notifier: Notifier
    appointments_of: Callable[[str], "JobAppointments"]

    async def armed(self, until: datetime) -> Sequence[ArmedJob]:
        """The jobs that are due by then, of a long line the first ones."""
        return await self.runtime.db.repository(AllJobsRepository).armed(until, ARMED_MOST)

    async def fire(self, armed: ArmedJob) -> bool:
        """Decide what is due of this job now; False when nothing is, or another process was first."""
        now = self.runtime.clock()
        async with self.runtime.db.one_view():
            job = await self.runtime.db.repository(JobsRepository, armed.owner_id).lately(armed.id)
            if job is None or job.removed_at is not None:
                return False
            if not job.is_enabled or job.next_at is None or job.next_at > now:  # changed since it was armed
                return False
            try:
                decision = await self._due(job, job.next_at, now)
            except ToolFailed as error:  # a zone that the machine no longer knows, a line of an older build
                await self.runtime.db.repository(JobsRepository, job.owner_id).pause(job.id, job.version, error.message)
                return True
            going = await self.runtime.db.repository(SlotsRepository, job.owner_id).open_of(job.id)
            outcome = outcome_of(policy_of(job), decision, going)
            draft = await self.missed_notice(job, outcome.lost, and_more=decision.unlisted is not None)
        try:
            async with self.runtime.db.transaction(job.owner_id) as repository:
                # Compare and set, first of all: who loses it writes nothing.
                if not await repository(JobsRepository).advance(job.id, job.next_at, job.version, decision.next_at):
                    return False
                if job.timing_kind == "appointment" and decision != await self._due(job, job.next_at, now, repository):
                    raise _ChangedMeanwhileError
                await _write(repository, job, outcome, decision.unlisted)
                if draft is not None:
                    await draft.write(repository)
        except _ChangedMeanwhileError:
            return False  # it is due still, and decided anew
        if draft is not None:
            self.notifier.wake(job.owner_id)
        return True

    async def _due(self, job: JobRow, next_at: datetime, now: datetime, open: Opener | None = None) -> DueSlots:
        """Return what is due. `open`: the transaction in which appointments are read."""
        if job.timing_kind == "appointment":
            appointments = self.appointments_of(job.owner_id)
            appointments = replace(appointments, open=open) if open else appointments
            return await appointments.due(job, now, policy_of(job))
        # `due` takes what is strictly after a moment, and `next_at` itself is due.
        return due(job.timing, next_at - _JUST_BEFORE, now, policy_of(job))

    async def missed_notice(
        self, job: JobRow, lost: Sequence[MissedSlot], *, and_more: bool = False
    ) -> PendingNotice | None:
        """The notice of these, in order, with those of the last one while that is unread; None where none is wanted.

        Write it with the slots. `and_more`: there were others, too many to name.
        """
        if job.notify_on == "never" or not lost:
            return None
        tag, this = f"missed:{job.id}", slot_id(job.id, lost[0].slot)
        unread = await self.runtime.db.repository(NoticesRepository, job.owner_id).unread_of(tag)
        since = unread.subject_id if unread and unread.subject_id != this else ""
        before = (
            await self.runtime.db.repository(SlotsRepository, job.owner_id).missed_since(since, but=MADE_UP)
            if since
            else None
        )
        count = len(lost) + (before.count if before else 0)
        whys = "; ".join(dict.fromkeys(one.why for one in lost))
        more = " and more" if and_more else ""
        reach = f" since {moment(before.first, job.time_zone)}, of late because" if before else ":"
        values = NoticeValues(
            kind="job",
            title=f"{job.name}: {'a run was missed' if count == 1 else f'{count}{more} runs were missed'}",
            text=f"{'A run was' if count == 1 else f'{count}{more} runs were'} missed{reach} {whys}.",
            path=path_of(job),
            tag=tag,
            urgency="low",
            subject_id=since or this,
            is_tainted=job.is_tainted,
        )
        return await self.notifier.draft(job.owner_id, f"missed:{this}", values, job.deliver_to or None)


def outcome_of(policy: MissedPolicy, decision: DueSlots, going: Sequence[SlotRow]) -> SlotOutcome:
    """Return what becomes of each slot beside the job's slots that have not ended."""
    begun, skipped, missed = list[datetime](), list[datetime](), list(decision.missed)
    is_running = any(slot.state == "running" for slot in going)
    waiting = sum(slot.state == "planned" for slot in going)
    for at in decision.run:
        choice = on_overlap(
            policy, is_running=is_running, waiting=waiting + len(begun), is_catching_up=len(decision.run) > 1
        )
        if choice != "skip":
            begun.append(at)
        elif policy.overlap == "queue":
            missed.append(MissedSlot(slot=at, why=QUEUE_FULL))
        else:
            skipped.append(at)
    if not begun:
        missed = [replace(one, why=STILL_GOING) if one.why == MADE_UP else one for one in missed]
    lost = () if policy.on_miss == "once" and begun else tuple(missed)
    return SlotOutcome(begun=tuple(begun), skipped=tuple(skipped), missed=tuple(missed), lost=lost)


async def _write(
    repository: Opener, job: JobRow, outcome: SlotOutcome, unlisted: tuple[datetime, datetime] | None
) -> None:
    """Every slot under its own id; one that stands already stays as it is."""
    slots = repository(SlotsRepository)
    missed = {one.slot: one.why for one in outcome.missed}
    if unlisted is not None:
        after, until = unlisted
        missed[after + _JUST_BEFORE] = f"so were all from here to {until:%Y-%m-%d %H:%M} UTC: too many to name"
    await slots.miss(job.id, missed)
    for at in outcome.begun:
        await slots.write_down(job.id, at)
    for at in outcome.skipped:
        await slots.write_down(job.id, at, state="skipped", why=STILL_GOING)


def policy_of(job: JobRow) -> MissedPolicy:
    """The job's rules, with the server's own beside them."""
    # An appointment is a thing of its own: no later one stands in for it.
    is_each = job.timing_kind == "appointment" and job.on_miss == "once"
    return MissedPolicy(
        on_miss="catchup" if is_each else job.on_miss,
        fire_within_s=job.fire_within_s,
        overlap=job.overlap,
        retries=job.retries,
        pause_after=job.pause_after,
        timeout_s=job.timeout_s,
    )
