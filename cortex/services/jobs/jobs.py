"""Scheduled jobs for pages and commands: show, make, change, switch, delete with a way back, run now, preview, import.

What a job does when it is due is `runs.py`'s. Tools reach jobs through `user_jobs.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.errors import Conflict, ToolFailed, UserError
from cortex.base.job import SlotState
from cortex.base.role import Channel
from cortex.base.user import User
from cortex.ports.foreign import ForeignReader
from cortex.ports.mcp import FAMILY
from cortex.ports.schedule import Timing, Timings
from cortex.schedule.clock_changes import ClockChange, clock_changes
from cortex.services.jobs.crontab import CrontabLine, read_crontab, values_of
from cortex.services.jobs.forms import JobChoices, JobForm, checked
from cortex.services.jobs.tools import JobToolPlan, JobToolRequest, JobTools
from cortex.services.jobs.user_jobs import looked_at
from cortex.services.models.models import Models
from cortex.services.notices.channels import Channels
from cortex.services.notifier import notice_id
from cortex.services.roles.preferences import DEFAULT_ROLE
from cortex.services.roles.roles import Roles
from cortex.services.runtime import Runtime
from cortex.services.zones import zone_named
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.deliveries import DeliveriesRepository, DeliveryRow
from cortex.storage.hooks import HooksRepository
from cortex.storage.job_rows import JobCounts, JobRow
from cortex.storage.job_rows import JobFilter as JobFilter
from cortex.storage.jobs import JobsRepository
from cortex.storage.slot_history import RunBar as RunBar
from cortex.storage.slot_history import RunMean, SlotHistoryRepository
from cortex.storage.slot_line import SlotLineRepository
from cortex.storage.slots import SlotRow, SlotsRepository, slot_id
from cortex.storage.turns import TurnsRepository

if TYPE_CHECKING:
    from cortex.services.jobs.appointments import JobAppointments

PAGE = 40
PREVIEWED = 10
HISTORY = 50
LEAST_GAP = timedelta(minutes=1)
CALLED = "only when it is called"  # by its web address or by hand
_CALLED = frozenset({CALLED, "only when called", "when called", "only by hand", "by hand", "only by webhook", "never"})
_SECONDS_TRIED = 30


class JobView(Struct, frozen=True, kw_only=True):
    """A job as a page shows it. `last`: its newest ended slot; `bars`: its last slots, oldest first.

    `chat`: the conversation that it posts into, "" while there is none or after it was deleted.
    `before`: of its slots in line by id, how many stand before each.
    """

    job: JobRow
    chat: str
    last: SlotRow | None
    bars: tuple[RunBar, ...]
    mean: RunMean | None
    before: Mapping[str, int]


class JobList(Struct, frozen=True, kw_only=True):
    """A page of jobs."""

    jobs: tuple[JobView, ...]
    counts: JobCounts
    page: int
    has_more: bool


class Preview(Struct, frozen=True, kw_only=True):
    """When it comes next, in its zone, with a sentence for each day on which the clock changes.

    `titles`: of the appointments behind each of the times, where it stands beside appointments.
    """

    timing: Timing
    times: tuple[datetime, ...]
    changes: tuple[ClockChange, ...]
    titles: tuple[str, ...] = ()


class JobRun(Struct, frozen=True, kw_only=True):
    """A slot of the history. `deliveries`: how its notice went out. `is_called`: the job's web address began it.

    `chat`: the conversation that has its transcript, "" where it has none (any more). `is_told`: a notice of it stands.
    `before`: how many stand in line before it; None where it does not wait for a free place.
    """

    slot: SlotRow
    chat: str
    is_told: bool
    is_called: bool
    before: int | None
    deliveries: tuple[DeliveryRow, ...]


class JobsService(Struct, frozen=True, kw_only=True):
    """One person's jobs at a time. `changed`: lets the clock and the runner of this process look at once."""

    runtime: Runtime
    timings: Timings
    roles: Roles
    models: Models
    tools: JobTools
    channels: Channels
    changed: Callable[[], None]
    foreign: ForeignReader
    appointments_of: Callable[[str], "JobAppointments"]

    # --- looking ------------------------------------------------------------------------------------------------

    async def list(self, user: User, wanted: JobFilter | None = None, *, page: int = 1) -> JobList:
        """The jobs by their next run, 40 a page."""
        wanted, page = wanted or JobFilter(), max(1, page)
        jobs = self._jobs(user)
        rows = await jobs.list(wanted, by="next", skip=(page - 1) * PAGE, limit=PAGE + 1)
        return JobList(
            jobs=await self._views(user, rows[:PAGE]),
            counts=await jobs.count(wanted.words),
            page=page,
            has_more=len(rows) > PAGE,
        )

    async def get(self, user: User, job_id: str) -> JobView:
        """One job; NotFound."""
        return (await self._views(user, [await self._jobs(user).get(job_id)]))[0]

    async def history(
        self, user: User, job_id: str, *, states: Sequence[SlotState] = (), before: datetime | None = None
    ) -> tuple[JobRun, ...]:
        """Its slots, the newest first, 50 at a time; `before`: the `due_at` of the last one shown."""
        await self._jobs(user).get(job_id)
        history = self.runtime.db.repository(SlotHistoryRepository, user.id)
        slots = await history.list(job_id, states=states, before=before, limit=HISTORY)
        noticed = await history.with_notice([slot.id for slot in slots])
        called = await self.runtime.db.repository(HooksRepository, user.id).begun([slot.id for slot in slots])
        notices = {slot.id: notice_id(user.id, f"slot:{slot.id}") for slot in slots}
        deliveries = await self.runtime.db.repository(DeliveriesRepository, user.id).of_notices(list(notices.values()))
        chats = await self.runtime.db.repository(TurnsRepository, user.id).places(
            [slot.turn_id for slot in slots if slot.turn_id]
        )
        places = await self._places(slots)
        return tuple(
            JobRun(
                slot=slot,
                chat=chats.get(slot.turn_id or "", ""),
                is_told=slot.id in noticed,
                is_called=slot.id in called,
                before=places.get(slot.id),
                deliveries=deliveries.get(notices[slot.id], ()),
            )
            for slot in slots
        )

    async def slot(self, user: User, id: str) -> SlotRow:
        """One run; NotFound."""
        return await self.runtime.db.repository(SlotsRepository, user.id).get(id)

    async def preview(self, user: User, when: str, time_zone: str = "", *, count: int = PREVIEWED) -> Preview:
        """Read the words, and when they are next; UserError with its field for what is not read or never comes."""
        zone = zone_named(time_zone or user.time_zone)
        if " ".join(when.casefold().strip(" .").split()) in _CALLED:
            timing = Timing(kind="called", expression="", time_zone=zone, words=CALLED)
            return Preview(timing=timing, times=(), changes=())
        try:
            beside = self.timings.by_appointments(when, zone)
            timing = beside or self.timings.read(when, self.runtime.clock(), zone)
        except ToolFailed as error:
            raise UserError(error.message, field="when") from error
        found = await self._next_times(user, timing, count)
        if beside:
            return found  # none may be to come today, and some tomorrow
        if not found.times:
            raise UserError(f"{when!r} never happens. Enter a time in the future.", field="when")
        if any(later - sooner < LEAST_GAP for sooner, later in pairwise(found.times)):
            raise UserError("A job can run at most once per minute. Choose a longer interval.", field="when")
        return found

    async def coming(self, user: User, job: JobRow) -> Preview:
        """When a job as it stands comes next, were it on; no times for one that is over. UserError: an unknown zone."""
        return await self._next_times(user, job.timing, PREVIEWED)

    async def carried(self, user: User, form: JobForm) -> JobToolPlan:
        """Return what a run of this job would carry of its own tools: all of them, or what its prompt picks."""
        words = form.tools.replace(",", " ").split()
        channel: Channel = "maker" if form.may_make_jobs else "cron"
        found = await self.tools.carried(user, words, channel)
        if found.is_whole or form.kind != "prompt" or form.mode not in ("", "auto") or not form.prompt:
            return found
        role = form.role or DEFAULT_ROLE
        wanted = JobToolRequest(user=user, words=words, prompt=form.prompt, role=role, channel=channel)
        return replace(found, chosen=await self.tools.chosen(wanted))

    async def known(self, user: User) -> JobChoices:
        """Return what there is to choose from: roles, models, tools and their categories."""
        names = await self.tools.tools.grantable(user, channel="cron")
        categories = {self.runtime.registry.tools[name].category for name in names}
        return JobChoices(
            registry=self.runtime.registry,
            roles=await self.roles.names(user),
            models=tuple(entry.name for entry in (await self.models.shown(user)).entries),
            tools=names,
            words=names | categories | {"all", FAMILY},
            channels=tuple(self.channels.kinds),
        )

    # --- changing -----------------------------------------------------------------------------------------------

    async def add(self, user: User, form: JobForm, *, is_enabled: bool = True) -> JobRow:
        """A new job. UserError with its field for what cannot be."""
        found = await self.preview(user, form.when, form.time_zone, count=3)
        values = checked(form, found.timing, await self.known(user))
        row = await self._jobs(user).add(None, values, self._looked_at(found.timing), is_enabled=is_enabled)
        self.changed()
        return await self._shown(user, await self.tools.settle(row))

    async def change(self, user: User, job_id: str, version: int, form: JobForm) -> JobRow:
        """Give it what the form says; Conflict when it was changed meanwhile. Other times count from now on."""
        before = await self._jobs(user).get(job_id)
        shown = JobForm.of(before)
        if (form.when, form.time_zone) == (shown.when, shown.time_zone):
            timing, next_at = before.timing, before.next_at
        else:
            timing = (await self.preview(user, form.when, form.time_zone, count=3)).timing
            next_at = self._looked_at(timing)
        values = checked(form, timing, await self.known(user))
        # Changed words of others stay theirs: which of them were typed anew cannot be told.
        values = replace(values, is_tainted=before.is_tainted, is_private=before.is_private)
        row = await self._jobs(user).change(job_id, version, values, next_at)
        self.changed()
        return await self._shown(user, await self.tools.settle(row))

    async def enable(self, user: User, job_id: str, version: int, *, is_enabled: bool) -> JobRow:
        """Switch it on, with no failure counted and from now on, or off; Conflict when it was changed meanwhile."""
        jobs = self._jobs(user)
        if not is_enabled:
            row = await jobs.pause(job_id, version)
        else:
            row = await jobs.enable(job_id, version, self._looked_at((await jobs.get(job_id)).timing))
        self.changed()
        return await self._shown(user, row)

    async def remove(self, user: User, job_id: str, version: int) -> JobRow:
        """Delete it with its coming runs; `restore` brings it back for a day. What it was."""
        row = await self._jobs(user).remove(job_id, version)
        self.changed()
        return row

    async def restore(self, user: User, job_id: str) -> JobRow:
        """Put a deleted job back; what it missed meanwhile stays missed."""
        jobs = self._jobs(user)
        row = await jobs.restore(job_id, self._looked_at((await jobs.removed(job_id)).timing))
        self.changed()
        return row

    async def run_now(self, user: User, job_id: str) -> str:
        """Note a run by hand, which begins within 2 s wherever Cortex runs; its slot's id."""
        now = self.runtime.clock()
        slots = self.runtime.db.repository(SlotsRepository, user.id)
        for seconds in range(_SECONDS_TRIED):  # a slot's id is its second: one that is taken leaves the next
            at = now + timedelta(seconds=seconds)
            if await slots.write_down(job_id, at, is_by_hand=True):
                self.changed()
                return slot_id(job_id, at)
        raise Conflict("It was started many times just now. Wait a moment.")

    async def withdraw(self, user: User, id: str, why: str) -> bool:
        """Take back a run that was noted; False when it was begun before, or has ended."""
        return await self.runtime.db.repository(SlotsRepository, user.id).withdraw(id, why)

    # --- crontabs -----------------------------------------------------------------------------------------------

    async def crontab(self, user: User, text: str, time_zone: str = "") -> tuple[CrontabLine, ...]:
        """Return what the lines of a crontab would be as jobs, or why not; nothing is saved. UserError."""
        return await read_crontab(self.foreign, text, self.timings, self.runtime.clock(), time_zone or user.time_zone)

    async def add_crontab(
        self, user: User, text: str, time_zone: str = "", *, numbers: Sequence[int] | None = None
    ) -> tuple[JobRow, ...]:
        """Save those lines that are jobs (None: all of them), switched off, so that each is looked at once."""
        made = []
        for line in await self.crontab(user, text, time_zone):
            if line.timing is not None and line.next_at is not None and (numbers is None or line.number in numbers):
                made.append(await self._jobs(user).add(None, values_of(line, line.timing), None, is_enabled=False))
        return tuple(made)

    async def _views(self, user: User, rows: Sequence[JobRow]) -> tuple[JobView, ...]:
        ids = [row.id for row in rows]
        chats = [row.conversation_id for row in rows if row.conversation_id]
        history = self.runtime.db.repository(SlotHistoryRepository, user.id)
        latest, bars, means = await history.latest(ids), await history.bars(ids), await history.means(ids)
        places = await self._places([bar for each in bars.values() for bar in each])
        standing = await self.runtime.db.repository(ConversationsRepository, user.id).standing(chats)
        return tuple(
            JobView(
                job=row,
                chat=row.conversation_id if row.conversation_id in standing else "",
                last=latest.get(row.id),
                bars=bars.get(row.id, ()),
                mean=means.get(row.id),
                before={bar.id: places[bar.id] for bar in bars.get(row.id, ()) if bar.id in places},
            )
            for row in rows
        )

    async def _places(self, slots: Sequence[SlotRow | RunBar]) -> Mapping[str, int]:
        """Return how many stand in line before each of these that wait."""
        waiting = [slot.id for slot in slots if slot.in_line_at is not None and slot.state == "planned"]
        return await self.runtime.db.repository(SlotLineRepository).places(waiting) if waiting else {}

    def _jobs(self, user: User) -> JobsRepository:
        return self.runtime.db.repository(JobsRepository, user.id)

    async def _next_times(self, user: User, timing: Timing, count: int) -> Preview:
        now, titles = self.runtime.clock(), tuple[str, ...]()
        try:
            if timing.kind == "appointment":
                appointments = self.appointments_of(user.id)
                times = await appointments.following(timing, count)
                titles = await appointments.titles(timing, times)
            else:
                times = self.timings.following(timing, now, count)
            here = tuple(at.astimezone(ZoneInfo(timing.time_zone)) for at in times)
            return Preview(timing=timing, times=here, changes=clock_changes(timing, times, now), titles=titles)
        except ToolFailed as error:
            raise UserError(error.message, field="when") from error

    def _looked_at(self, timing: Timing) -> datetime | None:
        return looked_at(self.timings, timing, self.runtime.clock())

    async def _shown(self, user: User, row: JobRow) -> JobRow:
        """The row with the next time that will be found: as it is kept, one beside appointments is looked at first."""
        if row.timing_kind != "appointment" or row.next_at is None:
            return row
        try:
            times = (await self._next_times(user, row.timing, 1)).times
        except UserError:  # it waits for a calendar
            times = ()
        return replace(row, next_at=next(iter(times), None))
