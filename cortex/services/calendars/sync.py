"""Keeps the local copy of calendars in step: asks a server what changed, and reads only that.

A calendar's token is kept behind all that it stands for, so a kill in between has it asked again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from msgspec import Struct, field

from cortex.base.errors import ConfigError, CortexError, DatabaseUnavailable, NotFound
from cortex.integrations.dav.values import Resource, gone_of, place_in
from cortex.ports.foreign import ForeignReader
from cortex.services.calendars.accounts import CalendarAccounts, DavConnection
from cortex.services.calendars.copy import AT_LEAST_AHEAD, CopyWindow, read_resources, rows_of, window_at
from cortex.services.calendars.found import FoundCollections
from cortex.storage.accounts import AccountsRepository
from cortex.storage.appointments import AppointmentsRepository, Read
from cortex.storage.calendars import CalendarAccountRow, CalendarRow, CalendarsRepository
from cortex.storage.db import Database

EVERY = timedelta(minutes=15)
ADDRESS_EVERY = timedelta(hours=1)
AT_LEAST = timedelta(hours=6)  # how long a server that fails is left alone at most
AT_ONCE = 50  # resources in one commit, each of up to 2,500 dates: others write in between
CALDAV = "urn:ietf:params:xml:ns:caldav"
ADDRESS_BYTES = 5_000_000
WHOLE = ""  # the one resource of an address

log = logging.getLogger(__name__)


class Stamps(Struct):
    """Gives each change a second of its own, by which it finds itself when it is tried again."""

    _last: datetime = field(default_factory=lambda: datetime.min.replace(tzinfo=UTC))

    def next(self, now: datetime) -> datetime:
        """Now, to the second; later by seconds where that one was given already."""
        self._last = max(now.replace(microsecond=0), self._last + timedelta(seconds=1))
        return self._last


class CalendarSync(Struct, frozen=True, kw_only=True):
    """The copies of everybody. `books`: brings the address books of an account up to date."""

    db: Database
    accounts: CalendarAccounts
    foreign: ForeignReader
    clock: Callable[[], datetime]
    books: Callable[[CalendarAccountRow, DavConnection], Awaitable[None]]
    stamps: Stamps = field(default_factory=Stamps)
    _one: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    async def sync(self, owner_id: str, account_id: str) -> None:
        """Ask one server now. What fails is kept with the account, in words, and tried again later."""
        async with self._one.setdefault(account_id, asyncio.Lock()):
            await self._ask(owner_id, account_id)

    async def _ask(self, owner_id: str, account_id: str) -> None:
        repository = self.db.repository(CalendarsRepository, owner_id)
        try:
            account = await repository.account(account_id)
        except NotFound:
            return  # removed meanwhile
        failure = ""
        try:
            connection = self.accounts.connect(await self.accounts.server(owner_id, account))
            try:
                await self._sync(account, connection)
            finally:
                await connection.close()
        except (CortexError, ConfigError) as error:
            if isinstance(error, DatabaseUnavailable):
                raise
            failure = error.message
        await self._book(account, failure)

    async def refresh(self, owner_id: str, calendar: CalendarRow, connection: DavConnection, url: str) -> None:
        """Read one resource again, which was written just now."""
        try:
            found: Sequence[Resource] = [await connection.get(url)]
        except NotFound:
            found = []
        known = {place_in(calendar.url, one): one for one in await self._hrefs(owner_id, calendar.id)}
        href = known.get(place_in(calendar.url, url)) or urlsplit(url).path
        named = [Resource(href=href, etag=one.etag, data=one.data) for one in found]
        await self._put(calendar, [href], named, await self._window(owner_id))

    async def _sync(self, account: CalendarAccountRow, connection: DavConnection) -> None:
        window = await self._window(account.owner_id)
        if account.kind == "caldav" and (account.worked_at is None or account.failures or self.clock().hour == 3):
            await self._found.take_in(account, await connection.account())
        for calendar in await self.db.repository(CalendarsRepository, account.owner_id).of_account(account.id):
            if calendar.access == "off":
                continue
            if account.kind == "ics":
                await self._read_address(account, calendar, connection, window)
            else:
                await self._read_changes(calendar, connection, window)
        if account.kind == "caldav":
            await self.books(account, connection)

    async def _read_changes(self, calendar: CalendarRow, connection: DavConnection, window: CopyWindow) -> None:
        is_new, is_short = self._is_new(calendar, window), self._is_short(calendar)
        changes = await connection.changes(calendar.url, "" if is_new else calendar.token)
        appointments = self.db.repository(AppointmentsRepository, calendar.owner_id)
        known = dict(await appointments.etags(calendar.id))
        moved = bool(calendar.zone) and is_new  # all of the copy is meant in another zone
        wanted = {
            one.href
            for one in changes.changed
            if not one.is_gone and (moved or known.get(one.href) != (one.etag or None))
        }
        if is_short:  # their dates end too soon
            wanted |= set(await appointments.going_on(calendar.id))
        gone = gone_of(calendar.url, changes, known)
        hrefs = sorted(wanted)
        for start in range(0, len(hrefs), AT_ONCE):
            part = hrefs[start : start + AT_ONCE]
            await self._put(calendar, part, await connection.resources(calendar.url, CALDAV, part), window)
        if gone:
            await appointments.replace(calendar.id, gone, [])
        await self._stand(calendar, changes.token, window if is_new or is_short else None)

    async def _read_address(
        self, account: CalendarAccountRow, calendar: CalendarRow, connection: DavConnection, window: CopyWindow
    ) -> None:
        server = await self.accounts.server(account.owner_id, account)
        found = await connection.get(server.url, most_bytes=ADDRESS_BYTES)
        is_short = self._is_new(calendar, window) or self._is_short(calendar)
        if not found.etag or found.etag != calendar.token or is_short:
            await self._put(calendar, [WHOLE], [Resource(href=WHOLE, etag=found.etag, data=found.data)], window)
        await self._stand(calendar, found.etag, window)

    def _is_new(self, calendar: CalendarRow, window: CopyWindow) -> bool:
        """Tell whether all of it is to be read: there is no copy yet, or one that is meant in another time zone."""
        return calendar.unfolded_until is None or calendar.zone != window.zone

    def _is_short(self, calendar: CalendarRow) -> bool:
        return calendar.unfolded_until is None or calendar.unfolded_until < self.clock() + AT_LEAST_AHEAD

    async def _put(
        self, calendar: CalendarRow, hrefs: Sequence[str], resources: Sequence[Resource], window: CopyWindow
    ) -> None:
        etags = {one.href: one.etag for one in resources}
        made: list[Read] = []
        for read in await read_resources(self.foreign, resources, window):
            if read.fault:
                log.info("calendars: a resource cannot be read: %s", read.fault)
            made += rows_of(calendar.owner_id, calendar.id, etags.get(read.href, ""), read)
        await self.db.repository(AppointmentsRepository, calendar.owner_id).replace(calendar.id, hrefs, made)

    async def _stand(self, calendar: CalendarRow, token: str, window: CopyWindow | None) -> None:
        """Note how far the copy of a calendar is."""
        until = {} if window is None else {"unfolded_until": window.until, "zone": window.zone}
        await self.db.repository(CalendarsRepository, calendar.owner_id).set_calendar(
            calendar.id, token=token, worked_at=self.clock(), **until
        )

    async def _book(self, account: CalendarAccountRow, failure: str) -> None:
        now = self.clock()
        usual = ADDRESS_EVERY if account.kind == "ics" else EVERY
        failures = account.failures + 1 if failure else 0
        values = {
            "failure": failure,
            "failures": failures,
            "next_at": now + min(usual * 2 ** min(failures, 6), AT_LEAST),
        }
        if not failure:
            values["worked_at"] = now
        try:
            await self.db.repository(CalendarsRepository, account.owner_id).set_account(account.id, **values)
        except NotFound:
            log.info("calendars: an account was removed while it was asked")

    @property
    def _found(self) -> FoundCollections:
        return FoundCollections(db=self.db, clock=self.clock)

    async def _window(self, owner_id: str) -> CopyWindow:
        person = await self.db.repository(AccountsRepository).get(owner_id)
        return window_at(self.clock(), person.time_zone)

    async def _hrefs(self, owner_id: str, calendar_id: str) -> Sequence[str]:
        return list(await self.db.repository(AppointmentsRepository, owner_id).etags(calendar_id))
