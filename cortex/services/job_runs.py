"""The runner of jobs: fires what is due, begins what waits, ends what is over, whenever it is rung.

The alarm rings it every two seconds while a slot is open. The truth is the ledger of slots; what one process leaves
undone, another, or the next start, takes up.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from sqlalchemy.exc import SQLAlchemyError

from cortex.base.errors import CortexError
from cortex.base.turn import LOOP_ENDS
from cortex.schedule.policies import is_too_late
from cortex.services.house import House
from cortex.services.job_endings import JobEndings
from cortex.services.job_firing import JobFiring, policy_of
from cortex.services.job_starts import JobStarts
from cortex.services.job_tools import JobTools
from cortex.services.tell import Tell
from cortex.services.turns import TurnRuns
from cortex.storage.job_rows import ArmedJob, JobRow
from cortex.storage.jobs import Jobs
from cortex.storage.slots import AllSlots, RunningSlot, SlotRow, Slots

LOOK_EVERY_S = 30.0
AT_ONCE = 2  # turns of jobs that this process has at work; a parked one does not count
TAKEN_MOST = 1_000
WAITED_TOO_LONG = "it waited too long to begin"

log = logging.getLogger(__name__)


class JobRuns:
    """Jobs as they run."""

    def __init__(self, *, house: House, runs: TurnRuns, tools: JobTools, tell: Tell) -> None:
        """Hears of turns that end in this process."""
        self._house = house
        self._firing = JobFiring(house=house, tell=tell)
        self._starts = JobStarts(house=house, runs=runs, tools=tools, tell=tell)
        self._endings = JobEndings(house=house, runs=runs, tell=tell)
        self._bell = asyncio.Event()
        self._here: set[str] = set()
        runs.sudden.on_closed(self._heard)

    async def armed(self, until: datetime) -> Sequence[ArmedJob]:
        """The jobs that are due by then, for the alarm."""
        return await self._firing.armed(until)

    async def fire(self, armed: ArmedJob) -> None:
        """Its time has come."""
        if await self._firing.fire(armed):
            self.ring()

    def ring(self) -> None:
        """There is something to begin or to end: look now."""
        self._bell.set()

    async def run(self) -> None:
        """For ever: look. A database that does not answer is asked again."""
        while True:
            try:
                await self.look()
            except (CortexError, SQLAlchemyError) as error:
                log.warning("cannot look after jobs: %s", error)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._bell.wait()
            self._bell.clear()

    async def look(self) -> None:
        """End the slots whose turns have ended, then begin those that may begin."""
        for slot in await self._house.db.open(AllSlots).running():
            if slot.turn_state is None or slot.turn_state in LOOP_ENDS:
                await self._settle(slot)
            else:
                await self._watch(slot)
        waiting = await self._house.db.open(AllSlots).ready(TAKEN_MOST)
        if waiting:
            await self._begin(waiting)

    async def _settle(self, slot: RunningSlot) -> None:
        try:
            await self._endings.settle(slot)
        except CortexError as error:
            log.warning("the run %s could not be ended yet: %s", slot.id, error)

    async def _watch(self, slot: RunningSlot) -> None:
        try:
            await self._endings.watch(slot)
        except CortexError as error:
            log.warning("the run %s could not be looked after: %s", slot.id, error)

    async def _begin(self, waiting: Sequence[SlotRow]) -> None:
        """The oldest of each job that has none running, as far as there is room; plain messages need none."""
        running = await self._house.db.open(AllSlots).running()
        busy = {slot.job_id for slot in running}
        self._here &= {slot.turn_id for slot in running if slot.turn_id}
        at_work = sum(slot.turn_id in self._here and slot.turn_state in ("queued", "running") for slot in running)
        jobs: dict[str, JobRow] = {}
        for slot in waiting:
            if slot.job_id in busy:
                continue
            try:
                if slot.job_id not in jobs:
                    jobs[slot.job_id] = await self._house.db.open(Jobs, slot.owner_id).get(slot.job_id)
                if not await self._pass(jobs[slot.job_id], slot):
                    busy.add(slot.job_id)
                    at_work += at_work < AT_ONCE and await self._start(jobs[slot.job_id], slot)
            except CortexError as error:
                busy.add(slot.job_id)
                log.warning("the run %s could not begin: %s", slot.id, error)

    async def _pass(self, job: JobRow, slot: SlotRow) -> bool:
        """Whether that was all of this slot: it waited too long, or it is a plain message, told."""
        is_first = slot.attempt == 0 and not slot.is_by_hand
        if is_first and is_too_late(policy_of(job), slot.due_at, self._house.clock()):
            await self._house.db.open(Slots, slot.owner_id).end(slot.id, "missed", why=WAITED_TOO_LONG)
        elif job.kind == "message":
            await self._starts.begin(job, slot)
        else:
            return False
        return True

    async def _start(self, job: JobRow, slot: SlotRow) -> bool:
        """Put its turn to work; False when another process did."""
        turn_id = await self._starts.begin(job, slot)
        self._here |= {turn_id} if turn_id else set()
        return bool(turn_id)

    def _heard(self, turn_id: str) -> None:
        if turn_id.startswith("cron:"):
            self.ring()
