"""One person's calendars: what is when, from the local copy, and changes, written to the server and then read back.

A change is made ready first: the whole resource as it will be, against the version that stands there. Written a second
time, after a kill or a lost answer, it finds itself and is done. Implements the port `Calendars`.
"""

import io
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from urllib.parse import urljoin

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field

from cortex.base.clock import Clock
from cortex.base.errors import NotFound, ToolFailed, UserError
from cortex.base.record import as_dict
from cortex.ports.calendars import Answer, CalendarName, Details, Draft, Occasion, Person, Written
from cortex.ports.foreign import ForeignReader, all_of
from cortex.services.calendars.accounts import CalendarAccounts
from cortex.services.calendars.birthdays import Birthdays
from cortex.services.calendars.copy import AppointmentRest
from cortex.services.calendars.sync import CalendarSync
from cortex.services.calendars.writes import written_once
from cortex.storage.accounts import AccountsRepository
from cortex.storage.appointments import AppointmentRow, AppointmentsRepository, DateOfAppointment
from cortex.storage.calendars import CalendarRow, CalendarsRepository, SeenCalendar
from cortex.storage.db import Database

BUSY = "Busy"
MEDIA = "text/calendar"
READ_ONLY = "Cortex may read the calendar {name}, but not write there. That is set on the page Calendar, Accounts."
NOT_YOURS = "{name} is another person's calendar: only they can change it."
NONE = "No calendar is connected. Connect one on the page Calendar."


class _Edited(BaseModel):
    model_config = ConfigDict(extra="forbid")
    data: str = Field(max_length=2_000_000)


class UserCalendars(Struct, frozen=True, kw_only=True):
    """The calendars of one person."""

    db: Database
    accounts: CalendarAccounts
    sync: CalendarSync
    foreign: ForeignReader
    clock: Clock
    user_id: str

    async def names(self) -> Sequence[CalendarName]:
        """Every calendar that they may see, their own first; that of birthdays last."""
        return [*(_name(one) for one in await self._calendars.seen()), *await self._birthdays.calendars()]

    async def between(self, since: datetime, until: datetime, *, words: str = "") -> Sequence[Occasion]:
        """The dates in this time, by their begin, from the local copy. Words are looked for where one may read."""
        seen = {one.id: one for one in await self._calendars.seen()}
        asked = [id for id, one in seen.items() if not words or one.access != "busy"]
        rows = await self._appointments.between(asked, since, until, words=words)
        person = await self.db.repository(AccountsRepository).get(self.user_id)
        born = await self._birthdays.between(since, until, person.time_zone, words=words)
        return sorted([*(_occasion(seen[row.calendar_id], row) for row in rows), *born], key=lambda one: one.starts_at)

    async def details(self, occasion: Occasion) -> Details:
        """Return what else it says; nothing of one that is only seen as busy."""
        if not occasion.id:
            return Details()
        row = await self._appointments.readable(occasion.id, occasion.calendar.id)
        rest = AppointmentRest.model_validate_json(row.rest)
        account = await self._own_addresses(occasion.calendar)
        return Details(
            text=rest.text,
            rule=row.rule,
            zone=rest.zone,
            starts=rest.starts,
            note=rest.note,
            organizer=rest.organizer,
            people=[Person(address=one.address, name=one.name, answer=one.answer) for one in rest.people],
            is_private=rest.is_private,
            is_tentative=rest.is_tentative,
            is_invitation=bool(rest.organizer) and rest.organizer not in account,
            is_foreign=occasion.calendar.is_outside
            or bool(occasion.calendar.owner)
            or (bool(rest.organizer) and rest.organizer not in account),
        )

    async def ready_new(self, calendar_id: str, uid: str, draft: Draft) -> Written:
        """A new appointment, ready to be written. ToolFailed where nothing may be written there."""
        calendar = await self._writable(calendar_id)
        edit = {"kind": "add", "uid": uid, "fields": await self._fields(calendar, draft)}
        name = "".join(sign for sign in uid if sign.isalnum() or sign in "-_")
        url = f"{calendar.url.rstrip('/')}/{name}.ics"
        return await self._ready(calendar, url, "", "", edit)

    async def ready_change(self, occasion: Occasion, draft: Draft, *, all_dates: bool) -> Written:
        """A change of one date, or of the whole series, which moves by as much as this date; ready to be written."""
        calendar, row = await self._row(occasion)
        key = "" if all_dates else occasion.key
        fields = await self._fields(calendar, draft)
        edit = {"kind": "change", "uid": row.uid, "key": key, "of": occasion.key, "fields": fields}
        return await self._against(calendar, row, edit)

    async def ready_removal(self, occasion: Occasion, *, all_dates: bool) -> Written:
        """Taking away one date, or the whole of it, ready to be written."""
        calendar, row = await self._row(occasion)
        key = "" if all_dates else occasion.key
        return await self._against(calendar, row, {"kind": "remove", "uid": row.uid, "key": key} if key else None)

    async def ready_answer(self, occasion: Occasion, answer: Answer) -> Written:
        """The answer to an invitation, ready to be written."""
        calendar, row = await self._row(occasion)
        own = sorted(await self._own_addresses(occasion.calendar))
        edit = {"kind": "answer", "uid": row.uid, "key": "", "addresses": own, "answer": answer}
        return await self._against(calendar, row, edit)

    async def write(self, written: Written) -> str:
        """Write it, once however often it is called; the version that stands there then.

        Conflict where the appointment was changed meanwhile; ServiceDown, unknown, where the answer was lost.
        """
        calendar = await self._calendars.calendar(written.calendar_id)
        connection = await self.accounts.connection(self.user_id, calendar.account_id)
        try:
            version = await written_once(connection, written, MEDIA)
            await self.sync.refresh(self.user_id, calendar, connection, written.url)
        finally:
            await connection.close()
        return version

    async def put_back(self, written: Written, version: str) -> str:
        """Have it as it was before; the version then. Conflict where it was changed since `version`."""
        calendar = await self._calendars.calendar(written.calendar_id)
        connection = await self.accounts.connection(self.user_id, calendar.account_id)
        try:
            back = replace(written, data=written.before, before="", etag=version, stamp="")
            stands = await written_once(connection, back, MEDIA)
            await self.sync.refresh(self.user_id, calendar, connection, written.url)
        finally:
            await connection.close()
        return stands

    async def _against(self, calendar: CalendarRow, row: AppointmentRow, edit: Mapping[str, object] | None) -> Written:
        """The edit of what stands on the server now; None removes the whole resource."""
        url = urljoin(calendar.url, row.href)
        connection = await self.accounts.connection(self.user_id, calendar.account_id)
        try:
            found = await connection.get(url)
        except NotFound:
            raise ToolFailed("This appointment is not on the server any more.") from None
        finally:
            await connection.close()
        if edit is None:
            return Written(calendar_id=calendar.id, url=url, etag=found.etag, data="", before=found.data)
        return await self._ready(calendar, url, found.etag, found.data, edit)

    async def _ready(
        self, calendar: CalendarRow, url: str, etag: str, before: str, edit: Mapping[str, object]
    ) -> Written:
        person = await self.db.repository(AccountsRepository).get(self.user_id)
        now = self.sync.stamps.next(self.clock())
        order = {"data": before, "edit": edit, "zone": person.time_zone or "UTC", "now": now.isoformat()}
        try:
            made = await all_of(self.foreign, "calendar_edit", io.BytesIO(json.dumps(order).encode()), _Edited)
        except UserError as error:
            raise ToolFailed(error.message) from error
        stamp = now.strftime("%Y%m%dT%H%M%SZ")
        return Written(calendar_id=calendar.id, url=url, etag=etag, data=made[0].data, before=before, stamp=stamp)

    async def _fields(self, calendar: CalendarRow, draft: Draft) -> dict[str, object]:
        """Return what the edit sets: of times all or none."""
        given = {name: value for name, value in as_dict(draft).items() if value is not None}
        if "starts" not in given:
            for name in ("zone", "is_all_day", "ends"):
                given.pop(name, None)
        if draft.people is not None:
            account = await self._calendars.account(calendar.account_id)
            given["organizer"] = account.addresses.partition(",")[0]
        return given

    async def _row(self, occasion: Occasion) -> tuple[CalendarRow, AppointmentRow]:
        if occasion.calendar.owner:
            raise ToolFailed(NOT_YOURS.format(name=occasion.calendar.label))
        calendar = await self._writable(occasion.calendar.id)
        return calendar, await self._appointments.get(occasion.id)

    async def _writable(self, calendar_id: str) -> CalendarRow:
        try:
            row = await self._calendars.calendar(calendar_id)
        except NotFound:
            raise ToolFailed(NONE) from None
        if row.access != "write":
            raise ToolFailed(READ_ONLY.format(name=row.name))
        return row

    async def _own_addresses(self, calendar: CalendarName) -> frozenset[str]:
        if calendar.owner:
            return frozenset()
        row = await self._calendars.calendar(calendar.id)
        account = await self._calendars.account(row.account_id)
        named = [*account.addresses.split(","), account.username if "@" in account.username else ""]
        return frozenset(one.lower() for one in named if one)

    @property
    def _birthdays(self) -> Birthdays:
        return Birthdays(db=self.db, user_id=self.user_id)

    @property
    def _calendars(self) -> CalendarsRepository:
        return self.db.repository(CalendarsRepository, self.user_id)

    @property
    def _appointments(self) -> AppointmentsRepository:
        return self.db.repository(AppointmentsRepository, self.user_id)


def _name(one: SeenCalendar) -> CalendarName:
    return CalendarName(
        id=one.id,
        name=one.name,
        owner=one.owner,
        access=one.access,
        account=one.account,
        readers="" if not one.shared_as or one.owner else f"calendar:{one.id}:{one.shared_as}",
        is_stale=one.failure,
        invites=one.schedules,
        is_outside=one.kind == "ics",
    )


def _occasion(calendar: SeenCalendar, row: DateOfAppointment) -> Occasion:
    is_busy = calendar.access == "busy"
    return Occasion(
        id="" if is_busy else row.appointment_id,
        key="" if is_busy else row.key,
        calendar=_name(calendar),
        starts_at=row.starts_at,
        ends_at=row.ends_at,
        title=BUSY if is_busy else row.title,
        day=row.day,
        last_day=row.last_day,
        place="" if is_busy else row.place,
        repeats=not is_busy and bool(row.key),
        is_free=row.is_free,
        has_organizer=not is_busy and row.has_organizer,
    )
