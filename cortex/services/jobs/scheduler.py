"""Everything that happens by the clock, over the runtime: jobs, reminders, and the alarm that fires them.

`app.py` makes it once, lets `run` go on beside the rest, and opens the tools' ports with `open_ports`; pages take the
parts. What wakes up when is in the tables alone.
"""

from datetime import datetime
from typing import Self, cast

from cortex.base import scan
from cortex.base.background import background_tasks
from cortex.ports.schedule import Jobs, Reminders, Timing, Timings
from cortex.schedule import moments
from cortex.services.accounts.accounts import Accounts
from cortex.services.jobs.alarm import Alarm
from cortex.services.jobs.book import JobBook
from cortex.services.jobs.jobs import JobsService
from cortex.services.jobs.runs import JobRuns
from cortex.services.jobs.tools import JobTools
from cortex.services.models.models import Models
from cortex.services.notices.notices import Notices
from cortex.services.reminders.due import DueReminders
from cortex.services.reminders.reminders import RemindersService
from cortex.services.roles.roles import Roles
from cortex.services.runtime import Runtime
from cortex.services.scope import ToolScope
from cortex.services.tools.tools import ToolsService
from cortex.services.turns.turns import TurnRuns
from cortex.storage.jobs import AllJobsRepository
from cortex.storage.pulse import HeartbeatsRepository
from cortex.storage.reminders import AllRemindersRepository
from cortex.storage.slots import AllSlotsRepository

_READING = "cortex.schedule.reading"


class LazyReader:
    """The port `Timings`, as `schedule.reading.Reader`: the grammar is loaded with the first words. Holds nothing.

    Its nine modules are 1 % of the start (2026-11-21). What follows a timing is worked out without them.
    """

    def read(self, words: str, now: datetime, time_zone: str) -> Timing:
        """What the words mean, seen from `now` in that zone; ToolFailed says what could not be read, and what can."""
        return cast("Timings", scan.load(_READING).Reader()).read(words, now, time_zone)

    def following(self, timing: Timing, after: datetime, count: int) -> tuple[datetime, ...]:
        """The next moments after this one, aware UTC, at most `count`; () when it is never due again."""
        return moments.following(timing, after, count)


def open_ports(runtime: Runtime, scope: ToolScope, notices: Notices) -> RemindersService:
    """Let tools read times, and reach jobs and reminders; the reminders, which hear of their notices from now on."""
    timings = LazyReader()
    reminders = RemindersService(runtime=runtime, timings=timings, notifier=notices)
    notices.on_acknowledged("reminder", reminders.answered)
    scope.add(Timings, lambda _: timings)
    scope.add(Reminders, reminders.for_user)
    scope.add(Jobs, lambda user_id: JobBook(runtime=runtime, timings=timings, user_id=user_id))
    return reminders


class Scheduler:
    """The parts: `jobs` for pages and commands, `runs` and the alarm for the clock."""

    def __init__(
        self, *, runtime: Runtime, jobs: JobTools, runs: JobRuns, roles: Roles, models: Models, due: DueReminders
    ):
        """Use `over`."""
        self._runtime = runtime
        self._due = due
        self._alarm = Alarm(runtime.clock, self._pulse, self._is_still)
        self._has_open_slots = True
        self.runs = runs
        self.jobs = JobsService(
            runtime=runtime, timings=LazyReader(), roles=roles, models=models, tools=jobs, changed=self.wake
        )

    @classmethod
    def over(
        cls,
        runtime: Runtime,
        notices: Notices,
        accounts: Accounts,
        roles: Roles,
        models: Models,
        tools: ToolsService,
        runs: TurnRuns,
    ) -> Self:
        """All of it over the runtime."""
        job_tools = JobTools(runtime=runtime, accounts=accounts, roles=roles, tools=tools)
        return cls(
            runtime=runtime,
            jobs=job_tools,
            runs=JobRuns(runtime=runtime, runs=runs, tools=job_tools, notifier=notices),
            roles=roles,
            models=models,
            due=DueReminders(runtime=runtime, timings=LazyReader(), notifier=notices),
        )

    async def keep_time(self) -> None:
        """For ever: fire what is due and look after what runs."""
        self._alarm.add("job", self.runs.armed, self.runs.fire)
        self._alarm.add("reminder", self._due.armed, self._due.fire)
        async with background_tasks(self.runs.look_after_slots()):
            await self._alarm.fire_due()

    async def _pulse(self, until: datetime) -> frozenset[str]:
        """Which kinds have anything due by then. Where slots are open, the runner looks after them."""
        beat = await self._runtime.db.repository(HeartbeatsRepository).beat(until)
        self._has_open_slots = beat.slots
        if beat.slots:
            self.runs.wake()
        return frozenset(["job"] * beat.jobs + ["reminder"] * beat.reminders)

    async def _is_still(self) -> bool:
        """Whether there is nothing to look for: no slot is open, and nobody wrote anything, in whatever process."""
        return not await self._runtime.db.commits.are_new() and not self._has_open_slots

    def wake(self) -> None:
        """Something was changed in this process: do not wait for the next look."""
        self.runs.wake()
        self._alarm.wake()

    async def sweep(self) -> None:
        """Forget removed jobs, old slots and reminders that are long over."""
        await self._runtime.db.repository(AllJobsRepository).prune()
        while await self._runtime.db.repository(AllSlotsRepository).prune():
            pass
        await self._runtime.db.repository(AllRemindersRepository).prune()
