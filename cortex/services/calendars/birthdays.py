"""Birthdays of contacts as whole days of a calendar of their own, which nobody has to keep."""

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta, tzinfo

import msgspec
from msgspec import Struct

from cortex.base.zone import local
from cortex.ports.calendars import CalendarName, Occasion
from cortex.storage.contacts import AddressBooksRepository, ContactRow, ContactsRepository
from cortex.storage.db import Database

CALENDAR = CalendarName(id="birthdays", name="Birthdays", is_outside=True)
LEAP, AHEAD_OF_IT = "02-29", "02-28"
DAYS_MOST = 400


class _Born(Struct):
    birthday: str = ""


class Birthdays(Struct, frozen=True, kw_only=True):
    """Birthdays in the address books that one person reads. `key` of each is the contact's id."""

    db: Database
    user_id: str

    async def calendars(self) -> Sequence[CalendarName]:
        """The calendar of birthdays, where any address book is read."""
        return [CALENDAR] if await self._books() else []

    async def between(self, since: datetime, until: datetime, zone: str, *, words: str = "") -> Sequence[Occasion]:
        """Those in this time, by their day. `words`: all stand in the title."""
        books = await self._books()
        if not books:
            return []
        here = local(since, zone)
        first, last = here.date(), local(until - timedelta(microseconds=1), zone).date()
        days = [first + timedelta(days=count) for count in range(min((last - first).days + 1, DAYS_MOST))]
        named = {f"{day:%m-%d}" for day in days}
        rows = await self.db.repository(ContactsRepository, self.user_id).born_on(
            books, sorted(named | {LEAP} if AHEAD_OF_IT in named else named)
        )
        made = [_occasion(row, day, here.tzinfo) for day in days for row in rows if _is_on(row, day)]
        wanted = words.casefold().split()
        return [one for one in made if all(word in one.title.casefold() for word in wanted)]

    async def _books(self) -> list[str]:
        return [one.id for one in await self.db.repository(AddressBooksRepository, self.user_id).seen()]


def _is_on(row: ContactRow, day: date) -> bool:
    """Tell whether it is kept that day: one of a leap day the day before, in years that have none."""
    if f"{day:%m-%d}" == row.birthday:
        return True
    is_short = (day + timedelta(days=1)).month == 3
    return row.birthday == LEAP and f"{day:%m-%d}" == AHEAD_OF_IT and is_short


def _occasion(row: ContactRow, day: date, zone: tzinfo | None) -> Occasion:
    born = msgspec.json.decode(row.rest, type=_Born).birthday
    age = "" if born.startswith("--") or not born else f" ({day.year - int(born[:4])})"
    return Occasion(
        id="",
        key=row.id,
        calendar=CALENDAR,
        starts_at=datetime.combine(day, time(), zone),
        ends_at=datetime.combine(day + timedelta(days=1), time(), zone),
        title=f"Birthday: {row.name}{age}",
        day=day.isoformat(),
        last_day=day.isoformat(),
        repeats=True,
        is_free=True,
    )
