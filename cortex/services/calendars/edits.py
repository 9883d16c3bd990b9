"""What a person changes in their calendars by the page: added, changed, taken away, answered, and taken back again.

The last change is kept, sealed like every text of theirs that names others, until the next one: that is what *Undo*
has. A form that is sent twice adds once: it names the appointment.
"""

import hashlib
import secrets
from collections.abc import Awaitable, Callable
from datetime import date, datetime, time, timedelta
from typing import TypeVar

import msgspec
from msgspec import Struct

from cortex.base.clock import Clock
from cortex.base.crypto import Vault
from cortex.base.errors import Conflict, NotFound, ServiceDown, ToolFailed, UserError
from cortex.base.ids import derived_id
from cortex.base.user import User
from cortex.base.zone import local
from cortex.ports.calendars import Answer, Calendars, Details, Draft, Occasion, Written
from cortex.services.calendars.last_change import LastChanges
from cortex.storage.db import Database

T = TypeVar("T")
LAST = "calendar-undo"
TITLE_CHARACTERS, PLACE_CHARACTERS, TEXT_CHARACTERS = 300, 300, 4_000
LONGEST = timedelta(days=366)
RULES = {"": "", "daily": "FREQ=DAILY", "weekly": "FREQ=WEEKLY", "monthly": "FREQ=MONTHLY", "yearly": "FREQ=YEARLY"}
GONE = "This appointment is not there any more, or it was moved. Look at the calendar again."
CHANGED = "This appointment was changed while you were writing. What stands now is above; saving replaces it."


class AppointmentForm(Struct, frozen=True, kw_only=True):
    """An appointment as a form gives it, all of it text: days as ISO dates, times as 09:30."""

    title: str = ""
    calendar: str = ""
    day: str = ""
    starts: str = ""
    last_day: str = ""
    ends: str = ""
    is_all_day: bool = False
    place: str = ""
    text: str = ""
    repeat: str = ""


class ShownDate(Struct, frozen=True, kw_only=True):
    """One date of an appointment with what else it says. `version`: of both, to tell that it was changed meanwhile."""

    occasion: Occasion
    details: Details

    @property
    def version(self) -> str:
        """A digest of all that is shown."""
        return hashlib.sha256(repr((self.occasion, self.details)).encode()).hexdigest()[:16]

    @property
    def may_change(self) -> bool:
        """Tell whether this person may write it."""
        calendar = self.occasion.calendar
        return calendar.access == "write" and not calendar.owner and not self.details.is_invitation


class MadeChange(Struct, frozen=True, kw_only=True):
    """A change that was made. `undo`: by which key it is taken back."""

    title: str
    starts_at: datetime | None
    undo: str


class CalendarEdits(Struct, frozen=True, kw_only=True):
    """The changes of everybody by the page."""

    db: Database
    vault: Vault
    clock: Clock
    calendars_of: Callable[[str], Calendars]

    async def find(self, user: User, id: str, at: datetime) -> ShownDate:
        """The date of this appointment that begins then; NotFound."""
        calendars = self.calendars_of(user.id)
        found = await calendars.between(at, at + timedelta(seconds=1))
        for one in found:
            if one.id == id and one.starts_at == at:
                return ShownDate(occasion=one, details=await calendars.details(one))
        raise NotFound(GONE)

    async def add(self, user: User, once: str, form: AppointmentForm) -> MadeChange:
        """Write a new one. `once`: names it, so that a form that is sent twice adds one."""
        draft = draft_of(form, user.time_zone)
        if form.repeat not in RULES:
            raise UserError("Choose how it repeats.", field="repeat")
        calendars = self.calendars_of(user.id)
        open_ones = [one for one in await calendars.names() if one.access == "write" and not one.owner]
        if not open_ones:
            raise UserError("Cortex may write to none of your calendars: connect one, or choose *Read and write*.")
        chosen = next((one for one in open_ones if one.id == form.calendar), None if form.calendar else open_ones[0])
        if chosen is None:
            raise UserError("Choose one of your calendars that Cortex may write to.", field="calendar")
        draft = msgspec.structs.replace(draft, rule=RULES[form.repeat] or None)
        uid = f"{derived_id('appointment', user.id, once or secrets.token_hex(12))}@cortex"
        written = await spoken(calendars.ready_new(chosen.id, uid, draft))
        try:
            return await self._write(user, calendars, written, form.title.strip(), begin_of(draft))
        except Conflict:  # the same form a second time
            return MadeChange(title=form.title.strip(), starts_at=begin_of(draft), undo="")

    async def change(
        self, user: User, id: str, at: datetime, version: str, form: AppointmentForm, *, all_dates: bool
    ) -> MadeChange:
        """Change one date, or the whole series; Conflict where it is another than the one that was shown."""
        shown = await self.find(user, id, at)
        if shown.version != version:
            raise Conflict(CHANGED)
        stands = msgspec.structs.replace(form_of(shown, user.time_zone), title=form.title)
        draft, was = draft_of(form, user.time_zone), draft_of(stands, user.time_zone)
        if (draft.starts, draft.ends) == (was.starts, was.ends):  # one of another zone keeps it
            draft = msgspec.structs.replace(draft, starts=None, ends=None)
        calendars = self.calendars_of(user.id)
        written = await spoken(calendars.ready_change(shown.occasion, draft, all_dates=all_dates))
        return await self._write(user, calendars, written, form.title.strip(), begin_of(draft))

    async def remove(self, user: User, id: str, at: datetime, *, all_dates: bool) -> MadeChange:
        """Take one date away, or all of it."""
        shown = await self.find(user, id, at)
        calendars = self.calendars_of(user.id)
        whole = all_dates or not shown.occasion.key
        written = await spoken(calendars.ready_removal(shown.occasion, all_dates=whole))
        return await self._write(user, calendars, written, shown.occasion.title, None)

    async def answer(self, user: User, id: str, at: datetime, answer: Answer) -> MadeChange:
        """Answer an invitation; its sender is told by the server."""
        shown = await self.find(user, id, at)
        calendars = self.calendars_of(user.id)
        written = await spoken(calendars.ready_answer(shown.occasion, answer))
        return await self._write(user, calendars, written, shown.occasion.title, at)

    async def undo(self, user: User, key: str) -> None:
        """Have it as it was ahead of the last change. NotFound where that is not the last one any more."""
        kept = await self._last.of(user.id, key)
        await spoken(self.calendars_of(user.id).put_back(kept.written, kept.version))
        await self._last.forget(user.id)

    async def _write(
        self, user: User, calendars: Calendars, written: Written, title: str, starts_at: datetime | None
    ) -> MadeChange:
        version = await spoken(calendars.write(written))
        key = await self._last.keep(user.id, written, version)
        return MadeChange(title=title, starts_at=starts_at, undo=key)

    @property
    def _last(self) -> LastChanges:
        return LastChanges(db=self.db, vault=self.vault, name=LAST)


def draft_of(form: AppointmentForm, zone: str) -> Draft:
    """Return what a form wants written, in the wall time of this zone. UserError names the field."""
    title = " ".join(form.title.split())
    if not 0 < len(title) <= TITLE_CHARACTERS:
        raise UserError(f"Give it a title of at most {TITLE_CHARACTERS} characters.", field="title")
    if len(form.place) > PLACE_CHARACTERS:
        raise UserError(f"That is too long: at most {PLACE_CHARACTERS} characters.", field="place")
    if len(form.text) > TEXT_CHARACTERS:
        raise UserError(f"That is too long: at most {TEXT_CHARACTERS:,} characters.", field="text")
    first, last = _day(form.day, "day"), _day(form.last_day or form.day, "last_day")
    said = Draft(title=title, place=form.place.strip(), text=form.text.replace("\r\n", "\n").strip())
    if form.is_all_day:
        if last < first or last - first > LONGEST:
            raise UserError("The last day cannot be ahead of the first one.", field="last_day")
        return msgspec.structs.replace(said, starts=first.isoformat(), ends=last.isoformat(), is_all_day=True)
    starts = datetime.combine(first, _time(form.starts, "starts"))
    ends = datetime.combine(last, _time(form.ends, "ends")) if form.ends else starts + timedelta(hours=1)
    if ends < starts or ends - starts > LONGEST:
        raise UserError("It cannot end before it starts.", field="ends")
    return msgspec.structs.replace(
        said,
        starts=starts.isoformat(timespec="minutes"),
        ends=ends.isoformat(timespec="minutes"),
        zone=zone or "UTC",
    )


def form_of(shown: ShownDate, zone: str) -> AppointmentForm:
    """The form as it is filled of what stands."""
    one, said = shown.occasion, shown.details
    begins, ends = local(one.starts_at, zone), local(one.ends_at, zone)
    return AppointmentForm(
        title=one.title,
        calendar=one.calendar.id,
        day=one.day or begins.date().isoformat(),
        starts="09:00" if one.day else f"{begins:%H:%M}",
        last_day=one.last_day or ends.date().isoformat(),
        ends="10:00" if one.day else f"{ends:%H:%M}",
        is_all_day=bool(one.day),
        place=one.place,
        text=said.text,
    )


def begin_of(draft: Draft) -> datetime | None:
    """When it begins, in its own wall time; None where no time is changed."""
    return datetime.fromisoformat(draft.starts) if draft.starts else None


def _day(typed: str, field: str) -> date:
    try:
        found = date.fromisoformat(typed.strip())
    except ValueError:
        raise UserError("Choose a day, such as 2026-12-24.", field=field) from None
    if not date(1950, 1, 1) <= found <= date(2200, 1, 1):
        raise UserError("Choose a day between 1950 and 2200.", field=field)
    return found


def _time(typed: str, field: str) -> time:
    try:
        return time.fromisoformat(typed.strip()).replace(second=0, microsecond=0, tzinfo=None)
    except ValueError:
        raise UserError("Choose a time, such as 09:30.", field=field) from None


async def spoken(asked: Awaitable[T]) -> T:
    """Return what a calendar answers; what it refuses is said beside the form."""
    try:
        return await asked
    except ServiceDown as error:
        raise UserError(f"{error.message} Nothing you typed is lost: try again in a moment.") from error
    except ToolFailed as error:
        raise UserError(error.message) from error
