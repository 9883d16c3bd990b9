"""The local copy of appointments: replaced resource by resource as servers say what changed, and asked by time.

Another person's are seen by the calendar that is shared (`storage/calendars.py: seen`), which whoever asks has read.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct
from sqlalchemy import ColumnElement, Select, exists, func, or_, select

from cortex.storage.jobs import AllJobsRepository
from cortex.storage.repository import Repository, as_row, reading, selected
from cortex.storage.schema import AppointmentDateTable, AppointmentTable
from cortex.storage.table import each_word

NO_APPOINTMENT = "There is no such appointment."
ROWS_AT_ONCE = 500


class AppointmentRow(Struct, frozen=True, kw_only=True):
    """An appointment or a series. `rest`: its other fields, as JSON (`services/calendars/copy.py`)."""

    id: str
    owner_id: str
    calendar_id: str
    href: str
    etag: str
    uid: str
    title: str
    place: str
    rule: str
    is_free: bool
    rest: str


class AppointmentDateRow(Struct, frozen=True, kw_only=True):
    """One date. `title`, `place`: what it says otherwise than its series, None where it says the same."""

    appointment_id: str
    key: str
    owner_id: str
    calendar_id: str
    starts_at: datetime
    ends_at: datetime
    day: str
    last_day: str
    title: str | None
    place: str | None


class DateOfAppointment(Struct, frozen=True, kw_only=True):
    """One date with what its appointment says. `day`, `last_day`: of a whole day, its days, else ""."""

    appointment_id: str
    calendar_id: str
    key: str
    starts_at: datetime
    ends_at: datetime
    day: str
    last_day: str
    title: str
    place: str
    rule: str
    is_free: bool
    has_organizer: bool


Read = tuple[AppointmentRow, Sequence[AppointmentDateRow]]


class AppointmentsRepository(Repository):
    """Appointments of one person's calendars, and of those of others that whoever asks has found to be shared."""

    @reading
    async def between(
        self, calendar_ids: Sequence[str], since: datetime, until: datetime, *, words: str = "", most: int = 2_000
    ) -> Sequence[DateOfAppointment]:
        """The dates that lie in this time at least in part, by their begin. `words`: all stand in title or place."""
        statement = self._dates(calendar_ids).where(
            AppointmentDateTable.starts_at < until,
            or_(AppointmentDateTable.ends_at > since, AppointmentDateTable.starts_at >= since),
            *each_word(words, AppointmentTable.title, AppointmentTable.place),
        )
        return await self._all(DateOfAppointment, statement.order_by(AppointmentDateTable.starts_at).limit(most))

    @reading
    async def at_edge(
        self, calendar_ids: Sequence[str], edge: Literal["start", "end"], since: datetime, until: datetime, most: int
    ) -> Sequence[DateOfAppointment]:
        """The dates that start, or end, from then to then, in this order."""
        table = AppointmentDateTable
        at = table.starts_at if edge == "start" else table.ends_at
        statement = self._dates(calendar_ids).where(table.starts_at <= until, at >= since, at <= until)
        order = (at, table.appointment_id, table.key)
        return await self._all(DateOfAppointment, statement.order_by(*order).limit(most))

    @reading
    async def get(self, id: str) -> AppointmentRow:
        """One of their own; NotFound."""
        return await self._get(AppointmentRow, AppointmentTable, id, NO_APPOINTMENT)

    @reading
    async def readable(self, id: str, calendar_id: str) -> AppointmentRow:
        """One of a calendar that whoever asks has found to be readable for this person; NotFound."""
        where = AppointmentTable.id == id, AppointmentTable.calendar_id == calendar_id
        return await self._one(AppointmentRow, selected(AppointmentRow, AppointmentTable).where(*where), NO_APPOINTMENT)

    @reading
    async def at(self, calendar_id: str, uid: str) -> AppointmentRow | None:
        """The one of this id in the format, in a calendar of their own."""
        found = await self._where(AppointmentRow, AppointmentTable, calendar_id=calendar_id, uid=uid)
        return found[0] if found else None

    @reading
    async def etags(self, calendar_id: str) -> Mapping[str, str]:
        """Version by resource, of a calendar of their own."""
        statement = select(AppointmentTable.href, AppointmentTable.etag).where(
            self._reach(AppointmentTable), AppointmentTable.calendar_id == calendar_id
        )
        return {row[0]: row[1] for row in (await self.session.execute(statement)).all()}

    @reading
    async def going_on(self, calendar_id: str) -> Sequence[str]:
        """The resources of a calendar of their own whose dates are not all in the copy: what repeats, what is far."""
        has_date = exists().where(AppointmentDateTable.appointment_id == AppointmentTable.id)
        statement = select(AppointmentTable.href).where(
            self._reach(AppointmentTable),
            AppointmentTable.calendar_id == calendar_id,
            or_(AppointmentTable.rule != "", ~has_date),
        )
        return (await self.session.execute(statement.distinct())).scalars().all()

    @reading
    async def count(self, calendar_id: str) -> int:
        """Return how many there are in a calendar of their own."""
        statement = select(func.count()).select_from(AppointmentTable)
        where = self._reach(AppointmentTable), AppointmentTable.calendar_id == calendar_id
        return int((await self.session.execute(statement.where(*where))).scalar_one())

    async def replace(
        self,
        calendar_id: str,
        hrefs: Sequence[str],
        made: Sequence[Read],
    ) -> None:
        """Have these resources hold exactly what was read of them now; those that are not in `made` are gone."""
        for start in range(0, len(hrefs), ROWS_AT_ONCE):
            part = hrefs[start : start + ROWS_AT_ONCE]
            where = AppointmentTable.calendar_id == calendar_id, AppointmentTable.href.in_(part)
            await self.session.execute(self._remove(AppointmentTable).where(*where))
        for start in range(0, len(made), ROWS_AT_ONCE):
            await self._add(AppointmentTable, [as_row(row) for row, _ in made[start : start + ROWS_AT_ONCE]])
        dates = [as_row(one) for _, found in made for one in found]
        for start in range(0, len(dates), ROWS_AT_ONCE):
            await self._add(AppointmentDateTable, dates[start : start + ROWS_AT_ONCE])
        await AllJobsRepository(self.session, clock=self.clock).look_again()

    async def forget(self, calendar_id: str) -> None:
        """Forget all that was read of a calendar of their own."""
        await self.session.execute(self._remove(AppointmentTable).where(AppointmentTable.calendar_id == calendar_id))
        await AllJobsRepository(self.session, clock=self.clock).look_again()

    def _dates(self, calendar_ids: Sequence[str] | None) -> Select[Any]:
        dates = AppointmentDateTable
        names = ("appointment_id", "calendar_id", "key", "starts_at", "ends_at", "day", "last_day")
        own = [getattr(dates, name) for name in names]
        said: list[ColumnElement[Any]] = [
            func.coalesce(dates.title, AppointmentTable.title).label("title"),
            func.coalesce(dates.place, AppointmentTable.place).label("place"),
        ]
        # What others wrote into a text stands there with its quotation marks escaped: it cannot look like the key.
        has_organizer = AppointmentTable.rest.contains('"organizer":', autoescape=True).label("has_organizer")
        statement = select(*own, *said, AppointmentTable.rule, AppointmentTable.is_free, has_organizer).join(
            AppointmentTable, AppointmentTable.id == dates.appointment_id
        )
        return statement if calendar_ids is None else statement.where(dates.calendar_id.in_(calendar_ids))
