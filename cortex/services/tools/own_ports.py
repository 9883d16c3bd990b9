"""Ports that people open for themselves: who has no calendar is not offered its tools, and hears where to get one."""

from collections.abc import Mapping

from msgspec.structs import replace

from cortex.ports.integrations import Setup
from cortex.services.integrations.access import PortAccess, PortRule
from cortex.storage.calendars import CalendarSeersRepository
from cortex.storage.contacts import BookSeersRepository
from cortex.storage.db import Database

CALENDARS, CONTACTS = "Calendars", "Contacts"
OWN: Mapping[str, Setup] = {
    CALENDARS: Setup(
        title="Calendar",
        text="No calendar is connected. Connect one on the page Calendar.",
        page="/calendar",
        state="not connected",
        is_own=True,
    ),
    CONTACTS: Setup(
        title="Contacts",
        text="No address book is connected. Connect one on the page Contacts.",
        page="/contacts",
        state="not connected",
        is_own=True,
    ),
}
_SEERS: Mapping[str, type[CalendarSeersRepository] | type[BookSeersRepository]] = {
    CALENDARS: CalendarSeersRepository,
    CONTACTS: BookSeersRepository,
}


async def with_own_ports(access: PortAccess, db: Database) -> PortAccess:
    """The access with these ports, each open to whoever has something behind it now."""
    rules, closed = dict(access.rules), {**access.closed, **OWN}
    missing = dict(access.setups)
    for port, seers in _SEERS.items():
        owners, is_shared = await db.repository(seers).owners()
        if owners:
            rules[port] = (PortRule(people=() if is_shared else tuple(sorted(owners))),)
        else:
            missing[port] = OWN[port]
    return replace(access, rules=rules, setups=missing, closed=closed)
