"""From the address that a person knows to their calendars and address books (RFC 6764; 5397, 4791, 6352)."""

import logging
from collections.abc import Iterator, Sequence
from urllib.parse import urljoin, urlsplit

from cortex.base.errors import CortexError, NotFound, ToolFailed
from cortex.integrations.dav.client import DavClient
from cortex.integrations.dav.multistatus import APPLE, CALDAV, CARDDAV, DAV, FoundResource, Multistatus
from cortex.integrations.dav.values import Account, Collection

TRIED = (
    "",
    "/.well-known/caldav",
    "/.well-known/carddav",
    "/remote.php/dav/",
    "/dav.php/",
    "/dav/",
)  # beside the address itself: usual places
# Where one provider keeps address books on a host beside that of calendars; the same name and password open both.
BESIDE = {"caldav.icloud.com": "https://contacts.icloud.com/", "caldav.fastmail.com": "https://carddav.fastmail.com/"}
COLLECTIONS_MOST = 100
NAME_CHARACTERS = 200
NOTHING = (
    "There is no server of calendars or contacts at this address. Take the address that its own help gives for CalDAV "
    "or CardDAV."
)
_ABOUT_PRINCIPAL = ((DAV, "current-user-principal"), (DAV, "resourcetype"))
_ABOUT_HOMES = (
    (CALDAV, "calendar-home-set"),
    (CARDDAV, "addressbook-home-set"),
    (CALDAV, "calendar-user-address-set"),
    (CALDAV, "schedule-outbox-URL"),
)
_ABOUT_COLLECTION = (
    (DAV, "resourcetype"),
    (DAV, "displayname"),
    (DAV, "current-user-privilege-set"),
    (APPLE, "calendar-color"),
    (CALDAV, "supported-calendar-component-set"),
)


log = logging.getLogger(__name__)


class DavDiscovery(DavClient):
    """A server that is spoken with, and what it has for the person."""

    async def account(self) -> Account:
        """Everything that they have there; ToolFailed where nothing is a calendar or an address book."""
        return await discover(self)


async def discover(client: DavClient) -> Account:
    """Everything that the person has there. ToolFailed where nothing is a calendar or an address book."""
    start, answer = await _begun(client)
    principal = _principal(answer)
    if not principal:
        return await _bare(client, start)
    url, said = await client.properties(urljoin(start, principal), *_ABOUT_HOMES)
    found = await _at_homes(client, url, said)
    beside, is_whole = BESIDE.get(client.server.host, ""), True
    if beside and not any(one.is_contacts for one in found.values()):
        try:
            found |= await _contacts_beside(client, beside)
        except CortexError as error:
            log.info("contacts: %s did not answer: %s", beside, error.message)
            is_whole = False
    if not found:
        raise ToolFailed("This account has neither a calendar nor an address book there. Make one, then try again.")
    return Account(
        collections=sorted(found.values(), key=lambda one: (one.is_contacts, one.name.casefold()))[:COLLECTIONS_MOST],
        addresses=_addresses(said),
        schedules=any((CALDAV, "schedule-outbox-URL") in one.values for one in said.found),
        is_whole=is_whole,
    )


async def _contacts_beside(client: DavClient, url: str) -> dict[str, Collection]:
    """The address books that the same person has on another host of the provider."""
    at, answer = await client.properties(url, *_ABOUT_PRINCIPAL)
    there, said = await client.properties(urljoin(at, _principal(answer)), *_ABOUT_HOMES)
    return {address: one for address, one in (await _at_homes(client, there, said)).items() if one.is_contacts}


async def _at_homes(client: DavClient, url: str, said: Multistatus) -> dict[str, Collection]:
    found: dict[str, Collection] = {}
    for space, name in _ABOUT_HOMES[:2]:
        for home in {urljoin(url, href) for one in said.found for href in one.hrefs(space, name)}:
            for each in await _collections(client, home):
                found.setdefault(each.url, each)
    return found


def _principal(answer: Multistatus) -> str:
    return next((href for one in answer.found for href in one.hrefs(DAV, "current-user-principal")), "")


async def _begun(client: DavClient) -> tuple[str, Multistatus]:
    """The first address that says who we are, or that is a collection itself; where it is, and what it said."""
    failure: ToolFailed | NotFound = ToolFailed(NOTHING)
    for url in _places(client.server.url):
        try:
            at, answer = await client.properties(url, *_ABOUT_PRINCIPAL)
        except NotFound:
            continue
        except ToolFailed as error:
            if error.status == 502:  # the server is away, or does not take the key: the next address says no more
                raise
            failure = error
            continue
        if any(one.hrefs(DAV, "current-user-principal") or _kind(one) for one in answer.found):
            return at, answer
    raise failure


def _places(url: str) -> Iterator[str]:
    parts = urlsplit(url)
    yield url
    for path in TRIED[1:]:
        if parts.path.rstrip("/") != path.rstrip("/"):
            yield f"{parts.scheme}://{parts.netloc}{path}"


async def _bare(client: DavClient, url: str) -> Account:
    """A collection that stands alone: a server that knows no principals, or an address that was shared."""
    found = await _collections(client, url)
    if not found:
        raise ToolFailed(NOTHING)
    return Account(collections=found)


async def _collections(client: DavClient, home: str) -> Sequence[Collection]:
    url, answer = await client.properties(home, *_ABOUT_COLLECTION, depth=1)
    return [made for one in answer.found if (made := _collection(url, one)) is not None]


def _collection(base: str, one: FoundResource) -> Collection | None:
    kind = _kind(one)
    parts = one.values.get((CALDAV, "supported-calendar-component-set"))
    if not kind or (kind == CALDAV and parts is not None and "VEVENT" not in _components(one)):
        return None
    url = urljoin(base, one.href)
    name = " ".join(one.text(DAV, "displayname").split())[:NAME_CHARACTERS]
    return Collection(
        url=url,
        name=name or urlsplit(url).path.rstrip("/").rpartition("/")[2],
        is_contacts=kind == CARDDAV,
        color=_color(one.text(APPLE, "calendar-color")),
        can_write=_can_write(one),
    )


def _kind(one: FoundResource) -> str:
    """The namespace of calendars or address books; "" for what is neither."""
    kinds = one.values.get((DAV, "resourcetype"))
    tags = {element.tag for element in kinds} if kinds is not None else set()
    if f"{{{CALDAV}}}calendar" in tags:
        return CALDAV
    return CARDDAV if f"{{{CARDDAV}}}addressbook" in tags else ""


def _components(one: FoundResource) -> set[str]:
    parts = one.values[CALDAV, "supported-calendar-component-set"]
    return {element.get("name", "").upper() for element in parts}


def _can_write(one: FoundResource) -> bool:
    """Tell whether its privileges let us write; a server that names none lets us try."""
    granted = one.values.get((DAV, "current-user-privilege-set"))
    if granted is None:
        return True
    names = {element.tag for element in granted.iter()}
    return bool(names & {f"{{{DAV}}}{name}" for name in ("all", "write", "write-content", "bind")})


def _color(text: str) -> str:
    """As #rrggbb; Apple's servers append the opacity."""
    code = text.strip().lower()[:7]
    return code if len(code) == 7 and code[0] == "#" and all(sign in "0123456789abcdef" for sign in code[1:]) else ""


def _addresses(said: Multistatus) -> Sequence[str]:
    """The mail addresses of the person there."""
    named = [href for one in said.found for href in one.hrefs(CALDAV, "calendar-user-address-set")]
    return tuple(dict.fromkeys(href[7:].lower() for href in named if href.lower().startswith("mailto:")))[:10]
