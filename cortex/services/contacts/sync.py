"""Keeps the local copy of address books in step: asks an account's server what changed, and reads only that.

Called for each account that is due (`services/calendars/sync.py`), over its connection. A book's token is kept behind
all that it stands for, so a kill in between has it asked again.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from urllib.parse import urlsplit

from msgspec import Struct

from cortex.base.errors import NotFound, ServiceDown, ToolFailed
from cortex.integrations.dav.values import CONTACT_BYTES, Resource, gone_of, place_in
from cortex.ports.foreign import ForeignReader
from cortex.services.calendars.accounts import CalendarAccountRow, DavConnection
from cortex.services.contacts.copy import read_cards, row_of
from cortex.storage.contacts import AddressBookRow, AddressBooksRepository, ContactsRepository
from cortex.storage.db import Database

CARDDAV = "urn:ietf:params:xml:ns:carddav"
AT_ONCE = 100  # resources in one commit: others write in between
CONTACTS_MOST = 20_000  # of one address book
TOO_MANY = "The address book {name} has more than {most:,} contacts, which is more than Cortex keeps."

log = logging.getLogger(__name__)


class ContactSync(Struct, frozen=True, kw_only=True):
    """The copies of everybody."""

    db: Database
    foreign: ForeignReader
    clock: Callable[[], datetime]

    async def sync(self, account: CalendarAccountRow, connection: DavConnection) -> None:
        """Bring the address books of an account up to date. What fails is raised, in words, behind the other books."""
        failed: ToolFailed | None = None
        for book in await self.db.repository(AddressBooksRepository, account.owner_id).of_account(account.id):
            if book.access == "off":  # it may have been switched off while it was read
                await self.db.repository(ContactsRepository, account.owner_id).forget(book.id)
                continue
            try:
                await self._read_changes(book, connection)
            except ServiceDown:
                raise
            except ToolFailed as error:
                failed = failed or error
        if failed:
            raise failed

    async def refresh(self, book: AddressBookRow, connection: DavConnection, url: str) -> None:
        """Read one resource again, which was written just now."""
        try:
            found: Sequence[Resource] = [await connection.get(url, most_bytes=CONTACT_BYTES)]
        except NotFound:
            found = []
        etags = await self.db.repository(ContactsRepository, book.owner_id).etags(book.id)
        known = {place_in(book.url, one): one for one in etags}
        href = known.get(place_in(book.url, url)) or urlsplit(url).path
        await self._put(book, [href], [Resource(href=href, etag=one.etag, data=one.data) for one in found])

    async def _read_changes(self, book: AddressBookRow, connection: DavConnection) -> None:
        changes = await connection.changes(book.url, "" if book.worked_at is None else book.token)
        contacts = self.db.repository(ContactsRepository, book.owner_id)
        known = dict(await contacts.etags(book.id))
        wanted = sorted(
            one.href for one in changes.changed if not one.is_gone and known.get(one.href) != (one.etag or None)
        )
        gone = gone_of(book.url, changes, known)
        if len({*known, *wanted} - {*gone}) > CONTACTS_MOST:
            raise ToolFailed(TOO_MANY.format(name=book.name, most=CONTACTS_MOST))
        if gone:
            await contacts.replace(book.id, gone, [])
        for start in range(0, len(wanted), AT_ONCE):
            part = wanted[start : start + AT_ONCE]
            await self._put(book, part, await connection.resources(book.url, CARDDAV, part))
        await self.db.repository(AddressBooksRepository, book.owner_id).stand(book, changes.token, self.clock())

    async def _put(self, book: AddressBookRow, hrefs: Sequence[str], resources: Sequence[Resource]) -> None:
        etags = {one.href: one.etag for one in resources}
        made = []
        for read in await read_cards(self.foreign, resources):
            if read.fault:
                log.info("contacts: a resource cannot be read: %s", read.fault)
            if (row := row_of(book.owner_id, book.id, etags.get(read.href, ""), read)) is not None:
                made.append(row)
        await self.db.repository(ContactsRepository, book.owner_id).replace(book.id, hrefs, made)
