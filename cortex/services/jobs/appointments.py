"""When jobs are due that stand beside appointments: worked out of the local copies, as they are at that moment.

Nothing of it is kept but the next time: each commit that changes a copy has the jobs look again (`look_again`). What
ran is known by its slot, so a date runs once at its time; one that is moved runs at its new time.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec import Struct

from cortex.base.clock import Clock
from cortex.base.errors import ToolFailed
from cortex.base.zone import local
from cortex.ports.schedule import Timing
from cortex.schedule.appointment_words import Beside, beside_of
from cortex.schedule.policies import MissedPolicy
from cortex.schedule.slots import LISTED_MOST, DueSlots, decided
from cortex.storage.appointments import AppointmentsRepository, DateOfAppointment
from cortex.storage.calendars import CalendarSeersRepository, CalendarsRepository, SeenCalendar
from cortex.storage.db import Opener
from cortex.storage.job_rows import JobRow
from cortex.storage.slots import SlotsRepository

NONE = "You see no calendar that a job could follow. Connect one on the page Calendar."
LOOKED_AHEAD = tuple(timedelta(days=days) for days in (31, 93, 400, 800))
READ_AT_ONCE = 2_000
TOLD_MOST = 10
A_MINUTE = timedelta(minutes=1)
ANSWERED = ("accepted", "tentative")
_JUST_BEFORE = timedelta(microseconds=1)


class _Invited(Struct):
    address: str = ""
    answer: str = ""


class _Said(Struct):
    organizer: str = ""
    people: list[_Invited] = msgspec.field(default_factory=list)


class ToldAppointments(Struct, frozen=True, kw_only=True):
    """The appointments that a run is for, in lines. `is_tainted`: words of others are among them."""

    text: str
    is_tainted: bool


class JobAppointments(Struct, frozen=True, kw_only=True):
    """The appointments that one person sees. `open`: opens repositories of theirs."""

    open: Opener
    clock: Clock

    async def following(self, timing: Timing, count: int) -> tuple[datetime, ...]:
        """The next moments of the timing from now on, at most `count`. ToolFailed where no calendar is seen."""
        if not await self._calendars():
            raise ToolFailed(NONE)
        return await self._following(timing, self.clock(), count)

    async def due(self, job: JobRow, now: datetime, policy: MissedPolicy) -> DueSlots:
        """Return what becomes of the moments that are due by now and have no slot yet, and the next one to come.

        What came into a copy late is caught up as far as the job allows a delay, but not from before its last change.
        """
        since = max(job.updated_at, now - timedelta(seconds=policy.fire_within_s))
        if job.next_at is not None:
            since = min(job.next_at - _JUST_BEFORE, since)
        found = await self._between(job.timing, since, now)
        stand = await self.open(SlotsRepository).standing(job.id, since)
        slots = tuple(at for at in found if at not in stand)[-LISTED_MOST:]
        return decided(slots, now, policy, next(iter(await self._following(job.timing, now, 1)), None))

    async def told(self, timing: Timing, at: datetime) -> ToldAppointments | None:
        """The appointments by which the timing is due at that moment; None where there is none (any more)."""
        calendars = await self._calendars()
        found = (await self._between(timing, at - A_MINUTE, at)).get(at)
        if not found:
            return None
        lines = [_line(one, timing.time_zone) for one in found[:TOLD_MOST]]
        if len(found) > TOLD_MOST:
            lines.append(f"... and {len(found) - TOLD_MOST} more")
        is_tainted = any([await self._is_of_others(one, calendars[one.calendar_id]) for one in found[:TOLD_MOST]])
        return ToldAppointments(text="\n".join(lines), is_tainted=is_tainted)

    async def titles(self, timing: Timing, times: Sequence[datetime]) -> tuple[str, ...]:
        """The titles behind each of these moments."""
        if not times:
            return ()
        found = await self._between(timing, times[0] - _JUST_BEFORE, times[-1])
        return tuple(", ".join(one.title or "No title" for one in found.get(at, ())) for at in times)

    async def _following(self, timing: Timing, after: datetime, count: int) -> tuple[datetime, ...]:
        found: list[datetime] = []
        since = after
        for ahead in LOOKED_AHEAD:
            found += await self._between(timing, since, after + ahead)
            if len(found) >= count:
                break
            since = after + ahead
        return tuple(found[:count])

    async def _between(
        self, timing: Timing, after: datetime, until: datetime
    ) -> Mapping[datetime, Sequence[DateOfAppointment]]:
        """The moments after the first and not after the second, in order, with their appointments; to the minute."""
        beside, calendars = beside_of(timing.expression), await self._calendars()
        away = timedelta(seconds=beside.seconds)
        appointments, found = self.open(AppointmentsRepository), dict[datetime, list[DateOfAppointment]]()
        since, last = after - away, until - away + A_MINUTE
        while calendars:
            rows = await appointments.at_edge(list(calendars), beside.edge, since, last, READ_AT_ONCE)
            for row in rows:
                at = (_edge(beside, row) + away).replace(second=0, microsecond=0)
                is_meant = after < at <= until and beside.fits(row.title)
                if is_meant and not await self._is_unanswered(row, calendars[row.calendar_id]):
                    found.setdefault(at, []).append(row)
            if len(rows) < READ_AT_ONCE or _edge(beside, rows[-1]) == since:
                break
            since = _edge(beside, rows[-1])
        return dict(sorted(found.items()))

    async def _calendars(self) -> Mapping[str, SeenCalendar]:
        """The calendars whose appointments have a title for this person."""
        seen = await self.open(CalendarsRepository).seen()
        return {one.id: one for one in seen if one.access != "busy"}

    async def _is_unanswered(self, row: DateOfAppointment, calendar: SeenCalendar) -> bool:
        """Tell whether it is an invitation that was not taken: whoever may invite could start the job else."""
        if not row.has_organizer:
            return False
        own, said = await self._own(calendar), await self._said(row)
        if said.organizer.lower() in own:
            return False
        answers = [one.answer.lower() for one in said.people if one.address.lower() in own]
        return bool(answers) and not any(answer in ANSWERED for answer in answers)

    async def _is_of_others(self, row: DateOfAppointment, calendar: SeenCalendar) -> bool:
        if calendar.owner or calendar.kind == "ics":
            return True
        return row.has_organizer and (await self._said(row)).organizer.lower() not in await self._own(calendar)

    async def _said(self, row: DateOfAppointment) -> _Said:
        kept = await self.open(AppointmentsRepository).readable(row.appointment_id, row.calendar_id)
        return msgspec.json.decode(kept.rest, type=_Said)

    async def _own(self, calendar: SeenCalendar) -> frozenset[str]:
        return await self.open(CalendarSeersRepository).addresses(calendar.account_id)


def _edge(beside: Beside, row: DateOfAppointment) -> datetime:
    return row.starts_at if beside.edge == "start" else row.ends_at


def _line(one: DateOfAppointment, zone: str) -> str:
    """One in a line: what, when, where."""
    starts, ends = local(one.starts_at, zone), local(one.ends_at, zone)
    if one.day:
        when = one.day if one.day == one.last_day else f"{one.day} to {one.last_day}"
    else:
        until = f"{ends:%H:%M}" if ends.date() == starts.date() else f"{ends:%Y-%m-%d %H:%M}"
        when = f"{starts:%a %Y-%m-%d %H:%M} to {until}"
    return "; ".join(filter(None, (one.title or "No title", when, one.place)))
