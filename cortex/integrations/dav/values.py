"""What a DAV server says, as values, and where a resource is. Opens nothing and loads no library of its own."""

from collections.abc import Mapping, Sequence
from urllib.parse import unquote, urljoin, urlsplit

from msgspec import Struct

CONTACT_BYTES = 15_000_000  # of one contact: many carry a photo, which is not kept


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
    """All that a server has for one. `addresses`: by which invitations know them; `schedules`: it sends them.

    `is_whole`: every part of it answered; else what is not named may be there all the same.
    """

    collections: Sequence[Collection]
    addresses: Sequence[str] = ()
    schedules: bool = False
    is_whole: bool = True


def place_in(url: str, href: str) -> str:
    """Return where a resource of this collection is, however it is written."""
    return unquote(urlsplit(urljoin(url, href)).path)


def gone_of(url: str, changes: CollectionChanges, known: Mapping[str, str]) -> list[str]:
    """Return the resources of a copy that are there no more, or that the server names otherwise by now."""
    named = {place_in(url, one.href): one.href for one in changes.changed if not one.is_gone}
    told = {place_in(url, one.href) for one in changes.changed if one.is_gone}
    places = {href: place_in(url, href) for href in known}
    return [
        href
        for href, place in places.items()
        if (place not in named if changes.is_all else place in told) or named.get(place, href) != href
    ]
