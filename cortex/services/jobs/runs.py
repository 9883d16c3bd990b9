"""The runner of jobs: fires what is due, begins what waits, ends what is over, whenever it is woken.

The alarm wakes it every two seconds while a slot is open. The truth is the ledger of slots; what one process leaves
undone, another, or the next start, takes up.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from msgspec import Struct
from sqlalchemy.exc import SQLAlchemyError

from cortex.base.errors import CortexError
from cortex.base.turn import LOOP_ENDS
from cortex.schedule.policies import is_too_late
from cortex.schedule.slots import MissedSlot
from cortex.services.jobs.endings import JobEndings
from cortex.services.jobs.firing import JobFiring, policy_of
from cortex.services.jobs.starts import JobStarts
from cortex.services.jobs.tools import JobTools
from cortex.services.notifier import Notifier
from cortex.services.runtime import Runtime
from cortex.services.turns.queue import TurnQueue
from cortex.storage.job_rows import ArmedJob, JobRow
from cortex.storage.jobs import AllJobsRepository
from cortex.storage.slot_line import SlotLineRepository
from cortex.storage.slots import AllSlotsRepository, RunningSlot, SlotRow, SlotsRepository

if TYPE_CHECKING:
    from cortex.services.jobs.appointments import JobAppointments

LOOK_EVERY_S = 30.0  # a safety net: the alarm, and turns that end here, wake it sooner
TAKEN_MOST = 1_000
SAID_AT_ONCE = 25  # messages, between two looks at what else is due
WAITED_TOO_LONG = "it waited too long to start"

log = logging.getLogger(__name__)


class OpenSlots(Struct, frozen=True, kw_only=True):
    """The slots that run, those that may begin, and the jobs of the latter by id; none that was deleted just now."""

    running: Sequence[RunningSlot]
    waiting: Sequence[SlotRow]
    jobs: Mapping[str, JobRow]


class SlotSignal:
    """Set while there may be a slot to begin or to end."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    def turn_ended(self, turn_id: str) -> None:
        """A job's slot ends with its turn."""
        if turn_id.startswith("cron:"):
            self.event.set()


class JobRuns:
    """Jobs as they run."""

    def __init__(
        self,
        *,
        runtime: Runtime,
        turns: TurnQueue,
        tools: JobTools,
        notifier: Notifier,
        signal: SlotSignal,
        appointments_of: Callable[[str], "JobAppointments"],
    ) -> None:
        """`signal`: set by whoever ends turns in this process."""
        self._runtime = runtime
        self._notifier = notifier
        self._firing = JobFiring(runtime=runtime, notifier=notifier, appointments_of=appointments_of)
        self._starts = JobStarts(
            runtime=runtime, turns=turns, tools=tools, notifier=notifier, appointments_of=appointments_of
        )
        self._endings = JobEndings(runtime=runtime, turns=turns, notifier=notifier)
        self._woken = signal.event
        self._here: set[str] = set()

    async def armed(self, until: datetime) -> Sequence[ArmedJob]:
        """The jobs that are due by then, for the alarm."""
        return await self._firing.armed(until)

    async def fire(self, armed: ArmedJob) -> None:
        """Its time has come."""
        if await self._firing.fire(armed):
            self.wake()

    def wake(self) -> None:
        """There is something to begin or to end: look now."""
        self._woken.set()

    async def look_after_slots(self) -> None:
        """Until cancelled: look. A database that does not answer is asked again."""
        while True:
            try:
                await self.settle_slots()
            except (CortexError, SQLAlchemyError) as error:
                log.warning("job runner: database error, retrying: %s", error)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._woken.wait()
            self._woken.clear()

    async def settle_slots(self) -> None:
        """End the slots whose turns have ended, then begin those that may begin."""
        found = await self._open_slots()
        for slot in found.running:
            try:
                await (self._endings.settle if _has_ended(slot) else self._endings.watch)(slot)
            except CortexError as error:
                log.warning("job runner: cannot look after run %s, retrying: %s", slot.id, error)
        if any(map(_has_ended, found.running)):
            found = await self._open_slots()
        if found.waiting and not await self._begin(found, await self._in_time(found.jobs, found.waiting)):
            await self._line_up()

    async def _open_slots(self) -> OpenSlots:
        """Read at once what is to be looked after."""
        async with self._runtime.db.read_transaction() as repository:
            running = await repository(AllSlotsRepository).running()
            waiting = await repository(AllSlotsRepository).ready(TAKEN_MOST)
            jobs = await repository(AllJobsRepository).of({slot.job_id for slot in waiting}) if waiting else ()
        return OpenSlots(running=running, waiting=waiting, jobs={job.id: job for job in jobs})

    async def _in_time(self, jobs: Mapping[str, JobRow], waiting: Sequence[SlotRow]) -> Sequence[SlotRow]:
        """Those that may still begin: in line nobody is too late. The others are missed, with one notice a job."""
        kept, late = list[SlotRow](), dict[str, list[SlotRow]]()
        for slot in (one for one in waiting if one.job_id in jobs):
            is_first = slot.attempt == 0 and not slot.is_by_hand and slot.in_line_at is None
            is_late = is_first and is_too_late(policy_of(jobs[slot.job_id]), slot.due_at, self._runtime.clock())
            (late.setdefault(slot.job_id, []) if is_late else kept).append(slot)
        for job_id, slots in late.items():
            await self._miss(jobs[job_id], slots)
        return kept

    async def _miss(self, job: JobRow, late: Sequence[SlotRow]) -> None:
        lost = [MissedSlot(slot=slot.due_at, why=WAITED_TOO_LONG) for slot in late]
        draft = await self._firing.missed_notice(job, lost)
        async with self._runtime.db.transaction(job.owner_id) as repository:
            is_ours = await repository(SlotsRepository).give_up([slot.id for slot in late], WAITED_TOO_LONG)
            if is_ours and draft is not None:
                await draft.write(repository)
        self._notifier.wake(job.owner_id)

    async def _begin(self, found: OpenSlots, waiting: Sequence[SlotRow]) -> bool:
        """Begin the oldest of each job that has none running, as far as there is room; then some plain messages.

        False where one that could begin was left.
        """
        busy = {slot.job_id for slot in found.running}
        at_work, most = self._at_work(found.running), self._runtime.settings.jobs_at_once_here
        are_all_begun = len(found.waiting) < TAKEN_MOST
        messages = list[tuple[JobRow, SlotRow]]()
        for slot in waiting:
            job = found.jobs[slot.job_id]
            if job.id in busy:
                continue
            if job.kind == "message":
                messages.append((job, slot))
                continue
            busy.add(job.id)
            if at_work >= most:
                are_all_begun = False
                continue
            has_begun = await self._start(job, slot)
            at_work += has_begun is not False
            are_all_begun &= has_begun is not None
        return await self._say(messages) and are_all_begun

    def _at_work(self, running: Sequence[RunningSlot]) -> int:
        """The turns of jobs that this process has at work; a parked one does not count."""
        self._here &= {slot.turn_id for slot in running if slot.turn_id}
        if not self._runtime.settings.is_postgresql:  # nobody else has any: these are of the life before too
            self._here |= {slot.turn_id for slot in running if slot.turn_id}
        return sum(slot.turn_id in self._here and slot.turn_state in ("queued", "running") for slot in running)

    async def _line_up(self) -> None:
        """Whoever could begin and found no place waits in line from now on: however long that takes, it runs."""
        line = self._runtime.db.repository(SlotLineRepository)
        now = self._runtime.clock()
        found = await line.newcomers()
        new = [one.id for one in found if one.attempt or now - one.due_at <= timedelta(seconds=one.fire_within_s)]
        for start in range(0, len(new), TAKEN_MOST):
            await line.join(new[start : start + TAKEN_MOST])

    async def _say(self, messages: Sequence[tuple[JobRow, SlotRow]]) -> bool:
        """Say the first of them, a commit a person; the others after another look. False where one was not said."""
        now = messages[:SAID_AT_ONCE]
        has_said, are_all_said = False, len(now) == len(messages)
        for owner_id in dict.fromkeys(job.owner_id for job, _ in now):
            try:
                await self._starts.say(owner_id, [one for one in now if one[0].owner_id == owner_id])
                has_said = True
            except CortexError as error:
                log.warning("job runner: cannot tell messages of %s, retrying: %s", owner_id, error)
                are_all_said = False
        if has_said and len(now) < len(messages):
            self.wake()
        return are_all_said

    async def _start(self, job: JobRow, slot: SlotRow) -> bool | None:
        """Put its turn to work; False when another process did, None for one that failed and may stand as begun."""
        try:
            turn_id = await self._starts.begin(job, slot)
        except CortexError as error:
            log.warning("job runner: cannot start run %s, retrying: %s", slot.id, error)
            return None
        self._here |= {turn_id} if turn_id else set()
        return bool(turn_id)


def _has_ended(slot: RunningSlot) -> bool:
    """Tell whether its turn has ended, or is gone."""
    return slot.turn_state is None or slot.turn_state in LOOP_ENDS
