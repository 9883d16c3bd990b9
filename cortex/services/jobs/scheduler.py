"""Everything that happens by the clock, over the runtime: jobs, reminders, and the alarm that fires them.

`app.py` lets `keep_time` go on beside the rest. What wakes up when is in the tables alone.
"""

from datetime import datetime

from cortex.base.background import background_tasks
from cortex.services.jobs.alarm import Alarm
from cortex.services.jobs.runs import JobRuns
from cortex.services.reminders.due import DueReminders
from cortex.services.runtime import Runtime
from cortex.storage.pulse import HeartbeatsRepository


class Scheduler:
    """The alarm that fires jobs and reminders, and the look after what runs."""

    def __init__(self, *, runtime: Runtime, runs: JobRuns, due: DueReminders) -> None:
        self._runtime = runtime
        self._runs = runs
        self._alarm = Alarm(runtime.clock, self._pulse, self._is_still)
        self._alarm.add("job", runs.armed, runs.fire)
        self._alarm.add("reminder", due.armed, due.fire)
        self._has_open_slots = True

    async def keep_time(self) -> None:
        """Until cancelled: fire what is due and look after what runs."""
        async with background_tasks(self._runs.look_after_slots):
            await self._alarm.fire_due()

    async def _pulse(self, until: datetime) -> frozenset[str]:
        """Return which kinds have anything due by then. Where slots are open, the runner looks after them."""
        beat = await self._runtime.db.repository(HeartbeatsRepository).beat(until)
        self._has_open_slots = beat.slots
        if beat.slots:
            self._runs.wake()
        return frozenset(["job"] * beat.jobs + ["reminder"] * beat.reminders)

    async def _is_still(self) -> bool:
        """Tell whether nothing is to be looked for: no slot is open, and nobody wrote anything, in whatever process."""
        return not await self._runtime.db.commits.are_new() and not self._has_open_slots

    def wake(self) -> None:
        """Something was changed in this process: do not wait for the next look."""
        self._runs.wake()
        self._alarm.wake()
