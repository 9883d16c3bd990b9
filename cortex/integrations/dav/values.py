"""What a DAV server says, as values. Opens nothing and loads no library of its own."""

from collections.abc import Sequence

from msgspec import Struct


class Changed(Struct, frozen=True, kw_only=True):
    """A resource that is new, changed or gone. `etag`: its version, "" where it is gone or the server says none."""

    href: str
    etag: str = ""
    is_gone: bool = False


class CollectionChanges(Struct, frozen=True, kw_only=True):
    """Changes. `token`: to ask from next time, or "". `is_all`: what is not named is gone."""

    changed: Sequence[Changed]
    token: str = ""
    is_all: bool = False


class Resource(Struct, frozen=True, kw_only=True):
    """An appointment or a contact as it stands on the server."""

    href: str
    etag: str
    data: str


class Collection(Struct, frozen=True, kw_only=True):
    """A calendar or an address book. `color`: as #rrggbb, "" without. `can_write`: whether the server lets us."""

    url: str
    name: str
    is_contacts: bool = False
    color: str = ""
    can_write: bool = True


class Account(Struct, frozen=True, kw_only=True):
    """All that a server has for one. `addresses`: by which invitations know them; `schedules`: it sends them."""

    collections: Sequence[Collection]
    addresses: Sequence[str] = ()
    schedules: bool = False
