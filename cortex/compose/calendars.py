"""Calendars. What speaks with servers and reads what they say is loaded by whoever has one, and by nobody else."""

from functools import cached_property
from typing import TYPE_CHECKING, cast

from cortex.base import scan
from cortex.base.web_address import host_ports
from cortex.compose.foundation import Foundation
from cortex.services.calendars.agenda import AgendaService
from cortex.services.calendars.watch import CalendarWatch
from cortex.services.timings import LazyReader

if TYPE_CHECKING:
    from cortex.integrations.dav.server import DavServer
    from cortex.ports.calendars import Calendars
    from cortex.services.calendars.accounts import CalendarAccounts, DavConnection
    from cortex.services.calendars.edits import CalendarEdits
    from cortex.services.calendars.feed import CalendarFeed
    from cortex.services.calendars.sync import CalendarSync
    from cortex.services.jobs.appointments import JobAppointments


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
        )
        return cast("CalendarSync", made)

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
