"""Ports that people open for themselves: who has no calendar is not offered its tools, and hears where to get one."""

from collections.abc import Mapping

from msgspec.structs import replace

from cortex.ports.integrations import Setup
from cortex.services.integrations.access import PortAccess, PortRule
from cortex.storage.calendars import CalendarSeersRepository
from cortex.storage.db import Database

CALENDARS = "Calendars"
OWN: Mapping[str, Setup] = {
    CALENDARS: Setup(
        title="Calendar",
        text="No calendar is connected. Connect one on the page Calendar.",
        page="/calendar",
        state="not connected",
        is_own=True,
    )
}


async def with_own_ports(access: PortAccess, db: Database) -> PortAccess:
    """The access with these ports, open to whoever has something behind them now."""
    owners, is_shared = await db.repository(CalendarSeersRepository).owners()
    closed = {**access.closed, **OWN}
    if not owners:
        return replace(access, setups={**access.setups, **OWN}, closed=closed)
    rule = PortRule(people=() if is_shared else tuple(sorted(owners)))
    return replace(access, rules={**access.rules, CALENDARS: (rule,)}, closed=closed)
