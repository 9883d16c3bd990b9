"""What a server has for an account by now: collections that came, went, or are said otherwise than before."""

from msgspec import Struct

from cortex.base.clock import Clock
from cortex.base.ids import new_id
from cortex.integrations.dav.values import Account, Collection
from cortex.services.calendars.accounts import book_row, calendar_row
from cortex.storage.calendars import CalendarAccountRow, CalendarRow, CalendarsRepository
from cortex.storage.contacts import AddressBookRow, AddressBooksRepository
from cortex.storage.db import Database
from cortex.storage.tool_settings import ToolSettingsRepository


class FoundCollections(Struct, frozen=True, kw_only=True):
    """Takes in what a server says that an account has."""

    db: Database
    clock: Clock

    async def take_in(self, account: CalendarAccountRow, said: Account) -> None:
        """Keep what came, and who one is there; let go what is gone. Tools are offered anew where that changes them."""
        who = {"addresses": ",".join(said.addresses), "schedules": said.schedules}
        async with self.db.transaction(account.owner_id) as repository:
            await repository(CalendarsRepository).set_account(account.id, **who)
            is_other = await self._calendars(repository(CalendarsRepository), account, said)
            is_other |= await self._books(repository(AddressBooksRepository), account, said)
            if is_other:
                await repository(ToolSettingsRepository).changed()

    async def _calendars(self, calendars: CalendarsRepository, account: CalendarAccountRow, said: Account) -> bool:
        found = {one.url: one for one in said.collections if not one.is_contacts}
        known = {one.url: one for one in await calendars.of_account(account.id)}
        for url, row in known.items():
            if url not in found:
                await calendars.remove_calendar(row.id)
            elif values := _renewed(row, found[url]):
                await calendars.set_calendar(row.id, **values)
        new = [calendar_row(account, one, new_id(self.clock)) for url, one in found.items() if url not in known]
        await calendars.add_calendars(new)
        return bool(new or known.keys() - found.keys())

    async def _books(self, books: AddressBooksRepository, account: CalendarAccountRow, said: Account) -> bool:
        found = {one.url: one for one in said.collections if one.is_contacts}
        known = {one.url: one for one in await books.of_account(account.id)}
        gone = [row for url, row in known.items() if url not in found] if said.is_whole else []
        for row in gone:
            await books.remove(row.id)
        for url in known.keys() & found.keys():
            if values := _renewed(known[url], found[url]):
                await books.set(known[url].id, **values)
        new = [book_row(account, one, new_id(self.clock)) for url, one in found.items() if url not in known]
        await books.add(new)
        return bool(new or gone)


def _renewed(row: CalendarRow | AddressBookRow, found: Collection) -> dict[str, object]:
    """Return what the server says otherwise by now; where nobody may write any more, it is read from then on."""
    now: dict[str, object] = {"name": found.name, "color": found.color, "can_write": found.can_write}
    if row.access == "write" and not found.can_write:
        now["access"] = "read"
    return {name: value for name, value in now.items() if value != getattr(row, name, value)}
