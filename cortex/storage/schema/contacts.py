"""Address books of people's accounts, and the copy of what is in them. Columns, keys and indexes only."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from cortex.storage.table import Table, owner


class AddressBookTable(Table):
    """One address book of an account (`calendar_accounts`). `access`: off, read or write."""

    __tablename__ = "address_books"
    __table_args__ = (UniqueConstraint("account_id", "url"), Index("ix_address_books_owner_id", "owner_id"))
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    account_id: Mapped[str] = mapped_column(ForeignKey("calendar_accounts.id", ondelete="CASCADE"))
    url: Mapped[str]
    name: Mapped[str]
    can_write: Mapped[bool]
    access: Mapped[str]
    is_shared: Mapped[bool]
    token: Mapped[str] = mapped_column(default="")
    worked_at: Mapped[datetime | None]


class ContactTable(Table):
    """A contact, as it was read last. `words`: by which it is found; `birthday`: 05-09 or ""; `rest`: as JSON."""

    __tablename__ = "contacts"
    __table_args__ = (UniqueConstraint("book_id", "href"), Index("ix_contacts_book_id_key", "book_id", "key"))
    id: Mapped[str] = mapped_column(primary_key=True)
    owner_id: Mapped[str] = owner()
    book_id: Mapped[str] = mapped_column(ForeignKey("address_books.id", ondelete="CASCADE"))
    href: Mapped[str]
    etag: Mapped[str]
    uid: Mapped[str]
    name: Mapped[str]
    key: Mapped[str]
    words: Mapped[str]
    birthday: Mapped[str]
    rest: Mapped[str]
