"""One person's contacts: found in the local copy; changes are written to the server and then read back.

A change is made ready first: the whole resource as it will be, against the version that stands there. Implements the
port `Contacts`.
"""

import io
import json
from collections.abc import Mapping, Sequence
from urllib.parse import urljoin

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field

from cortex.base.clock import Clock
from cortex.base.errors import NotFound, ToolFailed, UserError
from cortex.base.record import as_dict
from cortex.ports.calendars import Written
from cortex.ports.contacts import Contact, ContactBook, ContactDraft
from cortex.ports.foreign import ForeignReader, all_of
from cortex.services.calendars.accounts import CalendarAccounts
from cortex.services.calendars.sync import Stamps
from cortex.services.calendars.writes import written_once
from cortex.services.contacts.copy import contact_of
from cortex.services.contacts.sync import ContactSync
from cortex.storage.contacts import AddressBookRow, AddressBooksRepository, ContactRow, ContactsRepository, SeenBook
from cortex.storage.db import Database
from cortex.storage.words import fold

MEDIA = "text/vcard"
CHANGED_BYTES = 2_000_000
NONE = "No address book is connected. Connect one on the page Contacts."
READ_ONLY = "Cortex may read the address book {name}, but not write there. That is set on the page Contacts."
NOT_YOURS = "{name} is another person's address book: only they can change it."
GONE = "This contact is not on the server any more."
TOO_LARGE = "This contact carries a photo of more than 2 MB, so it is not changed here. Change it on your phone."


class _Edited(BaseModel):
    model_config = ConfigDict(extra="forbid")
    data: str = Field(max_length=CHANGED_BYTES + 100_000)


class UserContacts(Struct, frozen=True, kw_only=True):
    """The contacts of one person."""

    db: Database
    accounts: CalendarAccounts
    sync: ContactSync
    stamps: Stamps
    foreign: ForeignReader
    clock: Clock
    user_id: str

    async def books(self) -> Sequence[ContactBook]:
        """Every address book that they may read, their own first."""
        return [_book(one) for one in await self._books.seen()]

    async def find(self, words: str, *, most: int = 20, offset: int = 0) -> Sequence[Contact]:
        """Those in which each word stands (name, organization, address, number), by name; all of them for ""."""
        books = await self._by_id()
        rows = await self._contacts.find(list(books), fold(words), offset=offset, most=most)
        return [contact_of(row, books[row.book_id]) for row in rows]

    async def count(self, words: str = "") -> int:
        """Return how many that are."""
        return await self._contacts.count(list(await self._by_id()), fold(words))

    async def get(self, id: str) -> Contact:
        """One of them; NotFound."""
        books = await self._by_id()
        row = await self._contacts.readable(id, list(books))
        return contact_of(row, books[row.book_id])

    async def of_id(self, end: str) -> Sequence[Contact]:
        """Those whose id is this, or ends so."""
        books = await self._by_id()
        rows = await self._contacts.ending(list(books), end)
        return [contact_of(row, books[row.book_id]) for row in rows]

    async def born_on(self, days: Sequence[str]) -> Sequence[Contact]:
        """Those whose birthday is one of these days, each as 05-09."""
        books = await self._by_id()
        rows = await self._contacts.born_on(list(books), days)
        return [contact_of(row, books[row.book_id]) for row in rows]

    async def ready_new(self, book_id: str, uid: str, draft: ContactDraft) -> Written:
        """A new contact, ready to be written. ToolFailed where nothing may be written there."""
        book = await self._writable(book_id)
        name = "".join(sign for sign in uid if sign.isalnum() or sign in "-_")
        return await self._ready(book, f"{book.url.rstrip('/')}/{name}.vcf", "", "", uid, draft)

    async def ready_change(self, contact: Contact, draft: ContactDraft) -> Written:
        """A change of one, ready to be written."""
        book, row, etag, before = await self._stands(contact)
        return await self._ready(book, urljoin(book.url, row.href), etag, before, row.uid, draft)

    async def ready_removal(self, contact: Contact) -> Written:
        """Taking one away, ready to be written."""
        book, row, etag, before = await self._stands(contact)
        return Written(calendar_id=book.id, url=urljoin(book.url, row.href), etag=etag, data="", before=before)

    async def write(self, written: Written) -> str:
        """Write it, once however often it is called; the version that stands there then.

        Conflict where the contact was changed meanwhile; ServiceDown, unknown, where the answer was lost.
        """
        book = await self._writable(written.calendar_id)
        connection = await self.accounts.connection(self.user_id, book.account_id)
        try:
            version = await written_once(connection, written, MEDIA)
            await self.sync.refresh(book, connection, written.url)
        finally:
            await connection.close()
        return version

    async def put_back(self, written: Written, version: str) -> str:
        """Have it as it was before; the version then. Conflict where it was changed since `version`."""
        return await self.write(replace(written, data=written.before, before="", etag=version, stamp=""))

    async def _stands(self, contact: Contact) -> tuple[AddressBookRow, ContactRow, str, str]:
        """The book and the row of a contact, and what the server has of it now, with its version."""
        if contact.book.owner:
            raise ToolFailed(NOT_YOURS.format(name=contact.book.label))
        book = await self._writable(contact.book.id)
        row = await self._contacts.readable(contact.id, [book.id])
        connection = await self.accounts.connection(self.user_id, book.account_id)
        try:
            found = await connection.get(urljoin(book.url, row.href), most_bytes=2 * CHANGED_BYTES)
        except NotFound:
            raise ToolFailed(GONE) from None
        finally:
            await connection.close()
        if len(found.data) > CHANGED_BYTES:
            raise ToolFailed(TOO_LARGE)
        return book, row, found.etag, found.data

    async def _ready(
        self, book: AddressBookRow, url: str, etag: str, before: str, uid: str, draft: ContactDraft
    ) -> Written:
        now = self.stamps.next(self.clock())
        order = {"data": before, "uid": uid, "fields": _fields(draft), "now": now.isoformat()}
        try:
            made = await all_of(self.foreign, "contacts", io.BytesIO(json.dumps(order).encode()), _Edited)
        except UserError as error:
            raise ToolFailed(error.message) from error
        stamp = now.strftime("%Y%m%dT%H%M%SZ")
        return Written(calendar_id=book.id, url=url, etag=etag, data=made[0].data, before=before, stamp=stamp)

    async def _writable(self, book_id: str) -> AddressBookRow:
        try:
            row = await self._books.book(book_id)
        except NotFound:
            raise ToolFailed(NONE) from None
        if row.access != "write":
            raise ToolFailed(READ_ONLY.format(name=row.name))
        return row

    async def _by_id(self) -> Mapping[str, ContactBook]:
        return {one.id: one for one in await self.books()}

    @property
    def _books(self) -> AddressBooksRepository:
        return self.db.repository(AddressBooksRepository, self.user_id)

    @property
    def _contacts(self) -> ContactsRepository:
        return self.db.repository(ContactsRepository, self.user_id)


def _fields(draft: ContactDraft) -> dict[str, object]:
    return {name: value for name, value in as_dict(draft).items() if value is not None}


def _book(one: SeenBook) -> ContactBook:
    return ContactBook(
        id=one.id,
        name=one.name,
        owner=one.owner,
        access=one.access,
        account=one.account,
        readers=f"contacts:{one.id}" if one.is_shared and not one.owner else "",
        is_stale=one.failure,
    )
