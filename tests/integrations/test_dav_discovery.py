"""Address books that a provider keeps on a host beside its calendars: found by the same key, never taken for gone."""

import pytest

from cortex.base.errors import ServiceDown
from cortex.integrations.dav.discovery import DavDiscovery
from cortex.integrations.dav.multistatus import Multistatus, Name, read
from cortex.integrations.dav.server import server_at

HEAD = (
    '<d:multistatus xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav" '
    'xmlns:a="urn:ietf:params:xml:ns:carddav"><d:response><d:href>{href}</d:href><d:propstat><d:prop>'
)
TAIL = "</d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response></d:multistatus>"
DAV, CONTACTS = "https://caldav.fastmail.com", "https://carddav.fastmail.com"
ANSWERS = {
    f"{DAV}/": "<d:current-user-principal><d:href>/me/</d:href></d:current-user-principal>",
    f"{DAV}/me/": "<c:calendar-home-set><d:href>/cal/</d:href></c:calendar-home-set>",
    f"{DAV}/cal/": "<d:resourcetype><d:collection/><c:calendar/></d:resourcetype><d:displayname>Home</d:displayname>",
    f"{CONTACTS}/": "<d:current-user-principal><d:href>/you/</d:href></d:current-user-principal>",
    f"{CONTACTS}/you/": "<a:addressbook-home-set><d:href>/book/</d:href></a:addressbook-home-set>",
    f"{CONTACTS}/book/": "<d:resourcetype><a:addressbook/></d:resourcetype><d:displayname>All</d:displayname>",
}


class Provider(DavDiscovery):
    """Answers as the two hosts of one provider do; `is_away`: that of contacts does not."""

    is_away = False

    async def properties(self, url: str, *names: Name, depth: int = 0) -> tuple[str, Multistatus]:
        assert self.server.may_have_key(url), url
        if self.is_away and url.startswith(CONTACTS):
            raise ServiceDown("It does not answer.")
        href = url.removeprefix(DAV).removeprefix(CONTACTS)
        return url, read(f"{HEAD.format(href=href)}{ANSWERS[url]}{TAIL}".encode())


@pytest.mark.parametrize("is_away", [False, True], ids=["there", "away"])
async def test_contacts_on_the_host_beside(is_away: bool) -> None:
    client = Provider(server_at(f"{DAV}/", "ann@example.org", "tulip-quarry", frozenset()))
    client.is_away = is_away
    found = await client.account()
    await client.close()
    names = [(one.name, one.is_contacts) for one in found.collections]
    assert names == ([("Home", False)] if is_away else [("Home", False), ("All", True)])
    assert found.is_whole != is_away
