"""Calendars and contacts. What speaks with servers and reads what they say is loaded by whoever has any alone."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from cortex.base import scan
from cortex.base.web_address import host_ports
from cortex.compose.foundation import Foundation
from cortex.ports.calendars import Calendars
from cortex.ports.contacts import Contacts
from cortex.services.calendars.agenda import AgendaService
from cortex.services.calendars.watch import CalendarWatch
from cortex.services.timings import LazyReader
from cortex.storage.contacts import AddressBooksRepository

if TYPE_CHECKING:
    from cortex.integrations.dav.server import DavServer
    from cortex.services.calendars.accounts import CalendarAccounts, DavConnection
    from cortex.services.calendars.edits import CalendarEdits
    from cortex.services.calendars.feed import CalendarFeed
    from cortex.services.calendars.sync import CalendarSync
    from cortex.services.contacts.books import ContactBooks
    from cortex.services.contacts.edits import ContactEdits
    from cortex.services.contacts.sync import ContactSync
    from cortex.services.jobs.appointments import JobAppointments
    from cortex.storage.calendars import CalendarAccountRow


class CalendarServices(Foundation):
    """The accounts of people, their local copies, and what tools open."""

    @cached_property
    def calendar_watch(self) -> CalendarWatch:
        return CalendarWatch(db=self.runtime.db, clock=self.runtime.clock, opened=lambda: self.calendar_sync)

    @cached_property
    def calendar_accounts(self) -> "CalendarAccounts":
        made = scan.load("cortex.services.calendars.accounts").CalendarAccounts(
            db=self.runtime.db,
            vault=self.vault,
            clock=self.runtime.clock,
            connect=_connected,
            inside=lambda: frozenset(host_ports(self.settings.calendar_servers)),
            changed=self.calendar_watch.wake,
        )
        return cast("CalendarAccounts", made)

    @cached_property
    def calendar_sync(self) -> "CalendarSync":
        made = scan.load("cortex.services.calendars.sync").CalendarSync(
            db=self.runtime.db,
            accounts=self.calendar_accounts,
            foreign=self.foreign,
            clock=self.runtime.clock,
            books=self._books,
        )
        return cast("CalendarSync", made)

    async def _books(self, account: "CalendarAccountRow", connection: "DavConnection") -> None:
        """Bring an account's address books up to date; whoever has none loads nothing that reads them."""
        if await self.runtime.db.repository(AddressBooksRepository, account.owner_id).of_account(account.id):
            await self.contact_sync.sync(account, connection)

    @cached_property
    def contact_sync(self) -> "ContactSync":
        made = scan.load("cortex.services.contacts.sync").ContactSync(
            db=self.runtime.db, foreign=self.foreign, clock=self.runtime.clock
        )
        return cast("ContactSync", made)

    @cached_property
    def contact_books(self) -> "ContactBooks":
        made = scan.load("cortex.services.contacts.books").ContactBooks(
            db=self.runtime.db, accounts=self.calendar_accounts
        )
        return cast("ContactBooks", made)

    def contacts_of(self, user_id: str) -> "Contacts":
        """The contacts of one person, for tools and pages."""
        made = scan.load("cortex.services.contacts.contacts").UserContacts(
            db=self.runtime.db,
            accounts=self.calendar_accounts,
            sync=self.contact_sync,
            stamps=self.calendar_sync.stamps,
            foreign=self.foreign,
            clock=self.runtime.clock,
            user_id=user_id,
        )
        return cast("Contacts", made)

    @cached_property
    def contact_edits(self) -> "ContactEdits":
        made = scan.load("cortex.services.contacts.edits").ContactEdits(
            db=self.runtime.db, vault=self.vault, contacts_of=self.contacts_of
        )
        return cast("ContactEdits", made)

    def calendars_of(self, user_id: str) -> "Calendars":
        """The calendars of one person, for tools and pages."""
        made = scan.load("cortex.services.calendars.calendars").UserCalendars(
            db=self.runtime.db,
            accounts=self.calendar_accounts,
            sync=self.calendar_sync,
            foreign=self.foreign,
            clock=self.runtime.clock,
            user_id=user_id,
        )
        return cast("Calendars", made)

    def job_appointments(self, user_id: str) -> "JobAppointments":
        """The appointments of one person, for jobs that stand beside them."""
        made = scan.load("cortex.services.jobs.appointments").JobAppointments(
            open=lambda kind: self.runtime.db.repository(kind, user_id), clock=self.runtime.clock
        )
        return cast("JobAppointments", made)

    @property
    def own_ports(self) -> Mapping[type[Any], Callable[[str], Any]]:
        """Return what tools open for a user of what people connect for themselves."""
        return {Calendars: self.calendars_of, Contacts: self.contacts_of}

    @cached_property
    def agenda(self) -> AgendaService:
        return AgendaService(runtime=self.runtime, timings=LazyReader(), calendars_of=self.calendars_of)

    @cached_property
    def calendar_edits(self) -> "CalendarEdits":
        made = scan.load("cortex.services.calendars.edits").CalendarEdits(
            db=self.runtime.db, vault=self.vault, clock=self.runtime.clock, calendars_of=self.calendars_of
        )
        return cast("CalendarEdits", made)

    @cached_property
    def calendar_feed(self) -> "CalendarFeed":
        made = scan.load("cortex.services.calendars.feed").CalendarFeed(
            runtime=self.runtime, vault=self.vault, agenda=self.agenda
        )
        return cast("CalendarFeed", made)


def _connected(server: "DavServer") -> "DavConnection":
    return cast("DavConnection", scan.load("cortex.integrations.dav.discovery").DavDiscovery(server))
