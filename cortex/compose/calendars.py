"""Calendars. What speaks with servers and reads what they say is loaded by whoever has one, and by nobody else."""

from functools import cached_property
from typing import TYPE_CHECKING, cast

from cortex.base import scan
from cortex.base.web_address import host_ports
from cortex.compose.foundation import Foundation
from cortex.services.calendars.watch import CalendarWatch

if TYPE_CHECKING:
    from cortex.integrations.dav.server import DavServer
    from cortex.ports.calendars import Calendars
    from cortex.services.calendars.accounts import CalendarAccounts, DavConnection
    from cortex.services.calendars.sync import CalendarSync


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


def _connected(server: "DavServer") -> "DavConnection":
    return cast("DavConnection", scan.load("cortex.integrations.dav.discovery").DavDiscovery(server))
