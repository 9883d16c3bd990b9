"""What a person lets Cortex do with each of their address books, and whether the household reads it."""

from collections.abc import Sequence

from msgspec import Struct

from cortex.base.errors import UserError
from cortex.base.user import User
from cortex.services.calendars.accounts import CalendarAccounts
from cortex.storage.audit import AuditRepository
from cortex.storage.contacts import AddressBookRow as AddressBookRow
from cortex.storage.contacts import AddressBooksRepository, BookAccess, ContactsRepository
from cortex.storage.db import Database
from cortex.storage.tool_settings import ToolSettingsRepository


class ContactBooks(Struct, frozen=True, kw_only=True):
    """The address books of everybody."""

    db: Database
    accounts: CalendarAccounts

    async def of_account(self, user: User, account_id: str) -> Sequence[AddressBookRow]:
        """The address books of an account of theirs, by name."""
        return await self.db.repository(AddressBooksRepository, user.id).of_account(account_id)

    async def get(self, user: User, book_id: str) -> AddressBookRow:
        """One of theirs; NotFound."""
        return await self.db.repository(AddressBooksRepository, user.id).book(book_id)

    async def set_access(self, user: User, book_id: str, access: BookAccess, *, is_shared: bool) -> None:
        """Say what Cortex may do with an address book, and whether others here read it; UserError where it may not."""
        async with self.db.transaction(user.id) as repository:
            books = repository(AddressBooksRepository)
            row = await books.book(book_id)
            if access == "write" and not row.can_write:
                raise UserError("The server lets nobody write there: choose to read it.")
            shared = is_shared and access != "off"
            await books.set(book_id, access=access, is_shared=shared)
            if "off" in (access, row.access):  # nothing stays here, nor what a reading that went on had left behind it
                await repository(ContactsRepository).forget(book_id)
                await books.set(book_id, token="", worked_at=None)
            if shared != row.is_shared:
                detail = {"book": book_id, "shared": shared}
                await repository(AuditRepository).add(user.id, "contacts.shared", row.name, detail)
            await repository(ToolSettingsRepository).changed()
        if row.access == "off" != access:
            await self.accounts.refresh(user, row.account_id)
