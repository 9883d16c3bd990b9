"""Ports that people open for themselves: who has no calendar or mail is offered no tools of it, but told the way."""

from collections.abc import Mapping

from msgspec.structs import replace

from cortex.ports.integrations import Setup
from cortex.services.integrations.access import PortAccess, PortRule
from cortex.storage.calendars import CalendarSeersRepository
from cortex.storage.contacts import BookSeersRepository
from cortex.storage.db import Database
from cortex.storage.mail import DueMailRepository

CALENDARS, CONTACTS, MAILBOXES = "Calendars", "Contacts", "Mailboxes"
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
    MAILBOXES: Setup(
        title="Mail",
        text="No mail account is connected. Connect one on the page Mail accounts.",
        page="/mail",
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
    seen = {port: await db.repository(seers).owners() for port, seers in _SEERS.items()}
    seen[MAILBOXES] = (await db.repository(DueMailRepository).owners(), False)
    for port, (owners, is_shared) in seen.items():
        if owners:
            rules[port] = (PortRule(people=() if is_shared else tuple(sorted(owners))),)
        else:
            missing[port] = OWN[port]
    return replace(access, rules=rules, setups=missing, closed=closed)
