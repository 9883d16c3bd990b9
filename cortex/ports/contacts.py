"""Contacts as tools see them: one person's, with what others share with them. Implemented in `services/contacts/`."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from cortex.ports.calendars import Written


class ContactBook(Struct, frozen=True, kw_only=True):
    """An address book. `owner`: whose it is, "" for one's own; `access`: read or write.

    `readers`: a key of it where the household reads what is written there, "" else; `is_stale`: why its copy is old.
    """

    id: str
    name: str
    owner: str = ""
    access: str = "read"
    account: str = ""
    readers: str = ""
    is_stale: str = ""

    @property
    def label(self) -> str:
        """Return what it is called: its name, and whose it is."""
        return f"{self.name} ({self.owner})" if self.owner else self.name


class ContactValue(Struct, frozen=True, kw_only=True):
    """A number or an address. `label`: such as home or work, "" without."""

    value: str
    label: str = ""


class Contact(Struct, frozen=True, kw_only=True):
    """Somebody in an address book. `birthday`: 1980-12-24, or --12-24 without a year, "" where it is not known."""

    id: str
    book: ContactBook
    name: str
    nickname: str = ""
    organization: str = ""
    role: str = ""
    emails: Sequence[ContactValue] = ()
    phones: Sequence[ContactValue] = ()
    addresses: Sequence[ContactValue] = ()
    birthday: str = ""
    note: str = ""


class ContactDraft(Struct, frozen=True, kw_only=True):
    """A contact to be written. None: as it is; values that stand keep their labels."""

    name: str | None = None
    nickname: str | None = None
    organization: str | None = None
    role: str | None = None
    emails: Sequence[str] | None = None
    phones: Sequence[str] | None = None
    addresses: Sequence[str] | None = None
    birthday: str | None = None
    note: str | None = None


class Contacts(Protocol):
    """The contacts of one person. ToolFailed, in words, where a server cannot be asked."""

    async def books(self) -> Sequence[ContactBook]:
        """Every address book that they may read, their own first."""
        ...

    async def find(self, words: str, *, most: int = 20, offset: int = 0) -> Sequence[Contact]:
        """Those in which each word stands (name, organization, address, number), by name; all of them for ""."""
        ...

    async def count(self, words: str = "") -> int:
        """Return how many that are."""
        ...

    async def get(self, id: str) -> Contact:
        """One of them; NotFound."""
        ...

    async def of_id(self, end: str) -> Sequence[Contact]:
        """Those whose id is this, or ends so."""
        ...

    async def born_on(self, days: Sequence[str]) -> Sequence[Contact]:
        """Those whose birthday is one of these days, each as 05-09."""
        ...

    async def ready_new(self, book_id: str, uid: str, draft: ContactDraft) -> Written:
        """A new contact, ready to be written."""
        ...

    async def ready_change(self, contact: Contact, draft: ContactDraft) -> Written:
        """A change of one, ready to be written."""
        ...

    async def ready_removal(self, contact: Contact) -> Written:
        """Taking one away, ready to be written."""
        ...

    async def write(self, written: Written) -> str:
        """Write it, once however often it is called; the version that stands there then."""
        ...

    async def put_back(self, written: Written, version: str) -> str:
        """Have it as it was before; the version then. Conflict where it was changed since `version`."""
        ...
