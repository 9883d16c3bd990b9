"""What a person is told of the runs of a job that nobody will make: one notice, which counts on until it was read."""

from collections.abc import Sequence
from dataclasses import dataclass

from cortex.base.zone import moment
from cortex.schedule.slots import MADE_UP, Missed
from cortex.services.context import House
from cortex.services.notifier import Draft, Tell
from cortex.storage.job_rows import JobRow
from cortex.storage.notices import Notices, NoticeValues
from cortex.storage.slots import Slots, slot_id


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMisses:
    """Words for missed runs."""

    house: House
    tell: Tell

    async def draft(self, job: JobRow, lost: Sequence[Missed], *, and_more: bool = False) -> Draft | None:
        """The notice of these, in order, with those of the last one while that is unread; None where none is wanted.

        Write it with the slots. `and_more`: there were others, too many to name.
        """
        if job.notify_on == "never" or not lost:
            return None
        tag, this = f"missed:{job.id}", slot_id(job.id, lost[0].slot)
        unread = await self.house.db.open(Notices, job.owner_id).unread_of(tag)
        since = unread.subject_id if unread and unread.subject_id != this else ""
        before = await self.house.db.open(Slots, job.owner_id).missed_since(since, but=MADE_UP) if since else None
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
        return await self.tell.draft(job.owner_id, f"missed:{this}", values, job.deliver_to or None)


def path_of(job: JobRow) -> str:
    """The job's page."""
    return f"/jobs/{job.id}"
