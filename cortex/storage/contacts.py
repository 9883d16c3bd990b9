"""Address books of people, each with what may be done with it, and the contacts in them as they were read last."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct
from sqlalchemy import ColumnElement, Select, and_, func, or_, select

from cortex.storage.repository import Repository, SharedRepository, as_row, reading, selected
from cortex.storage.schema import AccountTable, AddressBookTable, CalendarAccountTable, ContactTable
from cortex.storage.table import each_word

BookAccess = Literal["off", "read", "write"]  # what Cortex may do with an address book
NO_BOOK = "There is no such address book."
NO_CONTACT = "There is no such contact."
ROWS_AT_ONCE, NAMED_MOST, BORN_MOST = 500, 10, 1_000


class AddressBookRow(Struct, frozen=True, kw_only=True):
    """An address book. `token`: from where it is asked what changed; `is_shared`: the household reads it."""

    id: str
    owner_id: str
    account_id: str
    url: str
    name: str
    can_write: bool
    access: BookAccess
    is_shared: bool
    token: str
    worked_at: datetime | None


class SeenBook(Struct, frozen=True, kw_only=True):
    """An address book as one person sees it. `owner`: whose, "" for their own; `failure`: why it is old, or ""."""

    id: str
    owner_id: str
    owner: str
    account_id: str
    account: str
    name: str
    access: BookAccess
    is_shared: bool
    worked_at: datetime | None
    failure: str


class ContactRow(Struct, frozen=True, kw_only=True):
    """A contact. `key`: its name as it is sorted; `rest`: the rest, as JSON (`services/contacts/copy.py`)."""

    id: str
    owner_id: str
    book_id: str
    href: str
    etag: str
    uid: str
    name: str
    key: str
    words: str
    birthday: str
    rest: str


class AddressBooksRepository(Repository):
    """The address books of one person, and those that others let them read."""

    @reading
    async def of_account(self, account_id: str) -> Sequence[AddressBookRow]:
        """The address books of an account of theirs, by name."""
        return await self._where(AddressBookRow, AddressBookTable, "name", account_id=account_id)

    @reading
    async def book(self, id: str) -> AddressBookRow:
        """One of theirs; NotFound."""
        return await self._get(AddressBookRow, AddressBookTable, id, NO_BOOK)

    @reading
    async def seen(self) -> Sequence[SeenBook]:
        """Every address book that they may read: their own that are on, then others', by owner and name."""
        names = [name for name in SeenBook.__struct_fields__ if hasattr(AddressBookTable, name)]
        is_given = and_(AddressBookTable.is_shared, AccountTable.is_active)
        statement = (
            select(
                *(getattr(AddressBookTable, name) for name in names),
                AccountTable.name.label("owner"),
                CalendarAccountTable.title.label("account"),
                CalendarAccountTable.failure,
            )
            .join(CalendarAccountTable, CalendarAccountTable.id == AddressBookTable.account_id)
            .join(AccountTable, AccountTable.id == AddressBookTable.owner_id)
            .where(AddressBookTable.access != "off", or_(self._reach(AddressBookTable), is_given))
        )
        rows = (await self.session.execute(statement)).mappings().all()
        made = [self._as_seen(dict(row)) for row in rows]
        return sorted(made, key=lambda one: (one.owner != "", one.owner, one.name.casefold()))

    async def add(self, books: Sequence[AddressBookRow]) -> None:
        """Keep address books that came to an account of theirs."""
        await self._add(AddressBookTable, [as_row(one) for one in books])

    async def set(self, id: str, **values: Any) -> None:
        """Change an address book; NotFound."""
        change = self._change(AddressBookTable).where(AddressBookTable.id == id).values(**values)
        await self._must_touch(change, AddressBookTable.id, NO_BOOK)

    async def stand(self, read: AddressBookRow, token: str, at: datetime) -> None:
        """Note how far the copy is; not of one that was switched off, or off and on again, since it was `read`."""
        is_same = (
            AddressBookTable.worked_at == read.worked_at if read.worked_at else AddressBookTable.worked_at.is_(None)
        )
        change = self._change(AddressBookTable).where(
            AddressBookTable.id == read.id, AddressBookTable.access != "off", is_same
        )
        await self.session.execute(change.values(token=token, worked_at=at))

    async def remove(self, id: str) -> None:
        """Forget an address book that the server has no more; NotFound."""
        remove = self._remove(AddressBookTable).where(AddressBookTable.id == id)
        await self._must_touch(remove, AddressBookTable.id, NO_BOOK)

    def _as_seen(self, row: Mapping[str, Any]) -> SeenBook:
        """As this person sees it: another's is read, and no word of its server is theirs to know."""
        if row["owner_id"] == self.owner_id:
            return SeenBook(**{**row, "owner": ""})
        return SeenBook(**{**row, "access": "read", "account": "", "failure": ""})


class ContactsRepository(Repository):
    """Contacts of one person's books, and of those of others that whoever asks has found to be shared."""

    @reading
    async def find(self, book_ids: Sequence[str], words: str, *, offset: int = 0, most: int = 50) -> list[ContactRow]:
        """Those in which each of the words stands, by name; all of them for ""."""
        statement = selected(ContactRow, ContactTable).where(*self._found(book_ids, words))
        ordered = statement.order_by(ContactTable.key, ContactTable.id).offset(offset).limit(most)
        return await self._all(ContactRow, ordered)

    @reading
    async def count(self, book_ids: Sequence[str], words: str = "") -> int:
        """Return how many that are."""
        statement = select(func.count()).select_from(ContactTable).where(*self._found(book_ids, words))
        return int((await self.session.execute(statement)).scalar_one())

    @reading
    async def readable(self, id: str, book_ids: Sequence[str]) -> ContactRow:
        """One of the books that whoever asks has found to be readable for this person; NotFound."""
        return await self._one(ContactRow, self._of(book_ids).where(ContactTable.id == id), NO_CONTACT)

    @reading
    async def ending(self, book_ids: Sequence[str], end: str) -> Sequence[ContactRow]:
        """Those whose id is this, or ends so."""
        where = ContactTable.id.endswith(end, autoescape=True)
        return await self._all(ContactRow, self._of(book_ids).where(where).limit(NAMED_MOST))

    @reading
    async def born_on(self, book_ids: Sequence[str], days: Sequence[str]) -> Sequence[ContactRow]:
        """Those whose birthday is one of these days, each as 05-09."""
        where = ContactTable.birthday.in_(days), ContactTable.birthday != ""
        return await self._all(ContactRow, self._of(book_ids).where(*where).order_by(ContactTable.key).limit(BORN_MOST))

    @reading
    async def etags(self, book_id: str) -> Mapping[str, str]:
        """Version by resource, of a book of their own."""
        statement = select(ContactTable.href, ContactTable.etag).where(
            self._reach(ContactTable), ContactTable.book_id == book_id
        )
        return {row[0]: row[1] for row in (await self.session.execute(statement)).all()}

    async def replace(self, book_id: str, hrefs: Sequence[str], made: Sequence[ContactRow]) -> None:
        """Have these resources hold exactly what was read of them now; those that are not in `made` are gone."""
        for start in range(0, len(hrefs), ROWS_AT_ONCE):
            where = ContactTable.book_id == book_id, ContactTable.href.in_(hrefs[start : start + ROWS_AT_ONCE])
            await self.session.execute(self._remove(ContactTable).where(*where))
        for start in range(0, len(made), ROWS_AT_ONCE):
            await self._add(ContactTable, [as_row(row) for row in made[start : start + ROWS_AT_ONCE]])

    async def forget(self, book_id: str) -> None:
        """Forget all that was read of a book of their own."""
        await self.session.execute(self._remove(ContactTable).where(ContactTable.book_id == book_id))

    def _of(self, book_ids: Sequence[str]) -> Select[Any]:
        return selected(ContactRow, ContactTable).where(ContactTable.book_id.in_(book_ids))

    def _found(self, book_ids: Sequence[str], words: str) -> list[ColumnElement[bool]]:
        return [ContactTable.book_id.in_(book_ids), *each_word(words, ContactTable.words)]


class BookSeersRepository(SharedRepository):
    """The people who may read an address book here at all."""

    @reading
    async def owners(self) -> tuple[frozenset[str], bool]:
        """Return whoever has an address book that is on; and whether one of them is shared, which everybody reads."""
        statement = (
            select(AddressBookTable.owner_id, AddressBookTable.is_shared)
            .join(AccountTable, AccountTable.id == AddressBookTable.owner_id)
            .where(AddressBookTable.access != "off", AccountTable.is_active)
            .distinct()
        )
        rows = (await self.session.execute(statement)).all()
        return frozenset(row[0] for row in rows), any(row[1] for row in rows)
