"""The first page of a day: what waits for a yes, what is due, what comes next, what happened since last night.

Each part is asked for by itself: one that fails is named, and the rest stands. Changes nothing; ticking and putting off
are `content/tasks.py`'s and `reminders/reminders.py`'s.
"""

import logging
from collections.abc import Awaitable, Sequence
from datetime import date, datetime, time, timedelta
from typing import Literal, TypeVar
from zoneinfo import ZoneInfo

from msgspec import Struct

from cortex.base.user import User
from cortex.ports.calendars import Occasion
from cortex.ports.channels import NoticeKind
from cortex.services.calendars.agenda import AgendaService
from cortex.services.runtime import Runtime
from cortex.services.today.weather import Weather
from cortex.services.turns.approval_weight import Weight
from cortex.services.turns.approvals import ApprovalsService
from cortex.storage.approvals import ApprovalRow
from cortex.storage.due_tasks import DueTasksRepository
from cortex.storage.job_rows import JobFilter
from cortex.storage.jobs import JobsRepository
from cortex.storage.notices import NoticeFilter, NoticesRepository
from cortex.storage.reminders import ReminderRow, RemindersRepository
from cortex.storage.tasks import TaskRow

log = logging.getLogger(__name__)
T = TypeVar("T")

DUE_MOST, COMING_MOST, NEWS_MOST = 60, 3, 3
EVENING = time(18)  # of yesterday: what came since is news of this morning
SAID: tuple[NoticeKind, ...] = ("job", "message")  # what these bring is the news, not their title
GIST_CHARACTERS = 120
NEWS: tuple[NoticeKind, ...] = ("job", "agent", "system", "message", "digest")  # the others stand under what is due
TRIES = (  # each works on an empty house, by whatever model
    "Remind me tomorrow at eight to take the bins out",
    "Add milk and eggs to my shopping list",
    "Every weekday at half past seven, read me my shopping list",
)
LOOKED_AHEAD = timedelta(days=14)
Part = Literal["asks", "due", "calendar", "coming", "news"]


class DayAsk(Struct, frozen=True, kw_only=True):
    """A question that waits, and how heavy the deed is: a heavy one is not allowed from here."""

    row: ApprovalRow
    weight: Weight


class DueLine(Struct, frozen=True, kw_only=True):
    """A line of what the day holds. `at`: when, None for a task and for a whole day; `day`: in the reader's zone.

    is_told: the reminder came due and waits for an answer. `note`: of an appointment, until when, whose, and where.
    """

    kind: Literal["task", "reminder", "appointment"]
    id: str
    text: str
    day: date
    at: datetime | None = None
    list_label: str = ""
    is_late: bool = False
    is_told: bool = False
    is_tainted: bool = False
    begins: datetime | None = None
    note: str = ""


class ComingLine(Struct, frozen=True, kw_only=True):
    """A job, a reminder or an appointment of a later day that comes next. `zone`: of the job, if not the reader's."""

    kind: Literal["job", "reminder", "appointment"]
    id: str
    text: str
    at: datetime
    zone: str = ""
    is_once: bool = False


class NewsLine(Struct, frozen=True, kw_only=True):
    """Something that happened. `who`: the person who ticked a task off, "" for a notice."""

    at: datetime
    text: str
    path: str
    note: str = ""
    who: str = ""


class Today(Struct, frozen=True, kw_only=True):
    """A person's day. `done`: how many that were due were ticked off today; `failed`: parts that did not answer.

    `weather`: in words, "" where none is known.
    """

    day: date
    asks: Sequence[DayAsk]
    due: Sequence[DueLine]
    done: int
    coming: Sequence[ComingLine]
    news: Sequence[NewsLine]
    failed: tuple[Part, ...] = ()
    weather: str = ""


class TodayService(Struct, frozen=True, kw_only=True):
    """Gathers the parts for one person at a time."""

    runtime: Runtime
    approvals: ApprovalsService
    weather: Weather
    agenda: AgendaService

    async def of(self, user: User) -> Today:
        """The day as it stands now in this person's zone."""
        failed: list[Part] = []

        async def part(name: Part, look: Awaitable[T], otherwise: T) -> T:
            try:
                return await look
            except Exception:  # whatever one part raises, the others stand
                log.exception("today: %s did not answer", name)
                failed.append(name)
                return otherwise

        now = self.runtime.clock().astimezone(ZoneInfo(user.time_zone))
        nothing: tuple[Sequence[DueLine], int] = ((), 0)
        due, done = await part("due", self._due(user, now), nothing)
        today, later = await part("calendar", self._calendar(user, now), ((), ()))
        return Today(
            day=now.date(),
            asks=await part("asks", self._asks(user), ()),
            due=sorted([*due, *today], key=_place)[:DUE_MOST],
            done=done,
            coming=_first([*await part("coming", self._coming(user, now), ()), *later]),
            news=await part("news", self._news(user, now), ()),
            failed=tuple(failed),
            weather=await self.weather.of(user.id),
        )

    async def _asks(self, user: User) -> Sequence[DayAsk]:
        waiting = await self.approvals.pending(user)
        return [DayAsk(row=row, weight=self.approvals.weigh(row).weight) for row in waiting]

    async def _due(self, user: User, now: datetime) -> tuple[Sequence[DueLine], int]:
        """Return what is due by the end of the day, and how many tasks of it are done."""
        tasks = self.runtime.db.repository(DueTasksRepository, user.id)
        midnight = datetime.combine(now.date(), time(), now.tzinfo)
        lines = [_task(row, now.date()) for row in await tasks.due(now.date(), DUE_MOST)]
        for row in await self._reminders(user):
            at = _due_at(row)
            if at is not None and at.astimezone(now.tzinfo).date() <= now.date():
                lines.append(_reminder(row, at.astimezone(now.tzinfo), now.date()))
        return sorted(lines, key=_place)[:DUE_MOST], await tasks.count_done(now.date(), midnight)

    async def _coming(self, user: User, now: datetime) -> Sequence[ComingLine]:
        jobs = self.runtime.db.repository(JobsRepository, user.id)
        lines = [
            ComingLine(
                kind="job",
                id=job.id,
                text=job.name,
                at=job.next_at,
                zone="" if job.time_zone == user.time_zone else job.time_zone,
                is_once=job.timing_kind == "at",
            )
            for job in await jobs.list(JobFilter(state="enabled"), by="next", limit=COMING_MOST)
            if job.next_at is not None
        ]
        for row in await self._reminders(user):
            at = _due_at(row)
            if at is not None and at.astimezone(now.tzinfo).date() > now.date():
                is_once = row.timing_kind == "at"
                lines.append(ComingLine(kind="reminder", id=row.id, text=row.text, at=at, is_once=is_once))
        return _first(lines)

    async def _calendar(self, user: User, now: datetime) -> tuple[Sequence[DueLine], Sequence[ComingLine]]:
        """Return the appointments of the rest of the day, and the next ones of later days."""
        tomorrow = datetime.combine(now.date() + timedelta(days=1), time(), now.tzinfo)
        found = await self.agenda.appointments(user, now, now + LOOKED_AHEAD)
        later = [
            ComingLine(kind="appointment", id=one.id, text=one.title, at=one.starts_at, is_once=not one.repeats)
            for one in found
            if one.starts_at >= tomorrow
        ]
        return [_appointment(one, now) for one in found if one.starts_at < tomorrow], later[:COMING_MOST]

    async def _news(self, user: User, now: datetime) -> Sequence[NewsLine]:
        since = datetime.combine(now.date() - timedelta(days=1), EVENING, now.tzinfo)
        wanted = NoticeFilter(kinds=NEWS, since=since)
        notices = await self.runtime.db.repository(NoticesRepository, user.id).list(wanted, limit=NEWS_MOST)
        tasks = self.runtime.db.repository(DueTasksRepository, user.id)
        lines = [
            NewsLine(at=one.created_at, text=one.title, path=one.path, note=_gist(one.text) if one.kind in SAID else "")
            for one in notices
            if not (one.kind == "message" and one.acknowledged_at)  # an offer that was answered
        ]
        lines += [
            NewsLine(at=one.done_at, text=one.title, path=f"/tasks/{one.id}", note=one.list_label, who=one.doer)
            for one in await tasks.ticked_by_others(since, NEWS_MOST)
            if one.done_at is not None
        ]
        return sorted(lines, key=lambda line: line.at)[-NEWS_MOST:]

    async def _reminders(self, user: User) -> Sequence[ReminderRow]:
        return await self.runtime.db.repository(RemindersRepository, user.id).list(("planned", "due", "snoozed"))


def _due_at(row: ReminderRow) -> datetime | None:
    """Return when it is due: what waits for an answer was, what is put off is when that is over."""
    return row.due_at if row.state == "due" else row.wakes_at


def _gist(text: str) -> str:
    """Return the beginning of what a notice says, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= GIST_CHARACTERS else line[: GIST_CHARACTERS - 1].rstrip() + "…"


def _task(row: TaskRow, today: date) -> DueLine:
    day = row.due or today
    return DueLine(
        kind="task",
        id=row.id,
        text=row.title,
        day=day,
        list_label=row.list_label,
        is_late=day < today,
        is_tainted=row.is_from_outside,
    )


def _reminder(row: ReminderRow, at: datetime, today: date) -> DueLine:
    return DueLine(
        kind="reminder",
        id=row.id,
        text=row.text,
        day=at.date(),
        at=at,
        is_late=at.date() < today,
        is_told=row.state == "due",
        is_tainted=row.is_tainted,
    )


def _appointment(one: Occasion, now: datetime) -> DueLine:
    ends = one.ends_at.astimezone(now.tzinfo)
    until = "" if one.day or ends.date() != now.date() else f"until {ends:%H:%M}"
    return DueLine(
        kind="appointment",
        id=one.id,
        text=one.title or "No title",
        day=now.date(),
        at=None if one.day else one.starts_at.astimezone(now.tzinfo),
        begins=one.starts_at,
        note=" · ".join(filter(None, (one.calendar.owner, until, one.place))),
    )


def _first(lines: Sequence[ComingLine]) -> Sequence[ComingLine]:
    return sorted(lines, key=lambda line: (line.at, line.id))[:COMING_MOST]


def _place(line: DueLine) -> tuple[date, bool, float]:
    """By day, then by time; what has none behind what has."""
    return line.day, line.at is None, line.at.timestamp() if line.at else 0
