"""Asks one DAV server: what changed, the data behind it; writes only over the version that a change was made of.

One HTTP connection that is kept; the key goes by Basic or Digest, as the server asks, and to no host but its own
(`DavServer.may_have_key`).
"""

import asyncio
import ssl
from collections.abc import Sequence
from urllib.parse import urljoin

import httpx

from cortex.base.errors import Conflict, NotAllowed, NotFound, ServiceDown, ToolFailed
from cortex.base.http import FetchedPage, fetch, open_client
from cortex.integrations.dav.multistatus import (
    CALDAV,
    DAV,
    BadAnswerError,
    Multistatus,
    Name,
    multiget,
    precondition,
    propfind,
    read,
    same_place,
    sync,
)
from cortex.integrations.dav.server import DavServer
from cortex.integrations.dav.values import CONTACT_BYTES, Changed, CollectionChanges, Resource

TIMEOUT_S = 15.0
TOTAL_S = 60.0
ANSWER_BYTES = 20_000_000
RESOURCE_BYTES = 1_000_000
AT_ONCE = 50  # resources asked for together
REDIRECTS = 4
PAGES_MOST = 200  # answers of one walk through what changed
ETAG = (DAV, "getetag")
NO_SYNC = frozenset({400, 403, 404, 405, 409, 412, 415, 422, 500, 501})  # what refuses a report that is not known there
STALE = "It was changed on the server in the meantime; nothing was overwritten."


class DavClient:
    """One server, for one person. Every method raises ServiceDown, ToolFailed or NotAllowed, in words."""

    def __init__(self, server: DavServer, context: ssl.SSLContext | None = None) -> None:
        """Open nothing yet. `context`: what TLS trusts, where that is not what this machine does."""
        self.server = server
        self._client = open_client(server.policy, timeout_s=TIMEOUT_S, follow_redirects=False, context=context)
        self._digest: httpx.DigestAuth | None = None
        self._basic = httpx.BasicAuth(server.username, server.password) if server.username else None

    async def close(self) -> None:
        """Close its connection."""
        await self._client.aclose()

    async def properties(self, url: str, *names: Name, depth: int = 0) -> tuple[str, Multistatus]:
        """The properties there, and where that is in the end. NotFound where there is nothing of the kind."""
        got = await self._ask("PROPFIND", url, propfind(*names), {"Depth": str(depth)})
        return got.url, await self._read(got)

    async def changes(self, url: str, token: str) -> CollectionChanges:
        """The changes of a collection since `token`; all of it for "", and where the server knows the token no more.

        A server that has no such report is asked for the versions of all that is there.
        """
        found: dict[str, Changed] = {}
        is_all, at = not token, token
        for _ in range(PAGES_MOST):
            got = await self._ask("REPORT", url, sync(at, ETAG), {"Depth": "1"}, taken=NO_SYNC)
            if got.status != 207:
                return await self.changes(url, "") if at and not is_all else await self._listed(url)
            answer = await self._read(got)
            is_more = False
            for one in answer.found:
                is_itself = same_place(urljoin(got.url, one.href), url)
                is_more |= is_itself and one.status == 507
                if not is_itself:
                    found[one.href] = Changed(href=one.href, etag=one.text(*ETAG), is_gone=one.status == 404)
            if not is_more or answer.token in ("", at):
                return CollectionChanges(changed=list(found.values()), token=answer.token, is_all=is_all)
            at = answer.token
        raise ToolFailed(f"{self.server.host} has more changes than are read at once.")

    async def _listed(self, url: str) -> CollectionChanges:
        got = await self._ask("PROPFIND", url, propfind(ETAG), {"Depth": "1"})
        rows = (await self._read(got)).found
        kept = [one for one in rows if not same_place(urljoin(got.url, one.href), url) and one.text(*ETAG)]
        return CollectionChanges(changed=[Changed(href=one.href, etag=one.text(*ETAG)) for one in kept], is_all=True)

    async def resources(self, url: str, kind: str, hrefs: Sequence[str]) -> Sequence[Resource]:
        """The data of these, without what is gone meanwhile. `kind`: the namespace, of calendars or address books."""
        found: list[Resource] = []
        for start in range(0, len(hrefs), AT_ONCE):
            found += await self._some(url, kind, hrefs[start : start + AT_ONCE])
        return found

    async def _some(self, url: str, kind: str, hrefs: Sequence[str]) -> Sequence[Resource]:
        """The data of a few; of fewer at a time where that is more than one answer may be."""
        got = await self._ask("REPORT", url, multiget(kind, hrefs), {"Depth": "1"})
        if got.status == 207 and got.is_cut:
            half = len(hrefs) // 2
            return (
                [*await self._some(url, kind, hrefs[:half]), *await self._some(url, kind, hrefs[half:])] if half else []
            )
        name, most = ("calendar-data", RESOURCE_BYTES) if kind == CALDAV else ("address-data", CONTACT_BYTES)
        found = []
        for one in (await self._read(got)).found:
            data = one.values.get((kind, name))
            if data is not None and data.text and len(data.text) <= most:
                found.append(Resource(href=one.href, etag=one.text(*ETAG), data=data.text))
        return found

    async def get(self, url: str, *, most_bytes: int = RESOURCE_BYTES) -> Resource:
        """One resource; NotFound."""
        got = await self._ask("GET", url)
        if got.is_cut or len(got.body) > most_bytes:
            raise ToolFailed(f"{self.server.host} sends more than {most_bytes // 1_000_000} MB, which is not read.")
        return Resource(href=url, etag=_version(got), data=got.body.decode("utf-8", "replace"))

    async def put(self, url: str, data: str, *, media: str, etag: str) -> str:
        """Write a resource over the version `etag`, "" for a new one; its new version, "" where the server says none.

        Conflict where another version, or one of the same id, stands there. `media`: its type.
        """
        condition = {"If-Match": etag} if etag else {"If-None-Match": "*"}
        headers = {"Content-Type": f"{media}; charset=utf-8", **condition}
        got = await self._ask("PUT", url, data.encode(), headers, taken=frozenset({403, 409, 412}))
        rule = precondition(got.body) if got.status >= 400 else ""
        if got.status == 412 or rule == "no-uid-conflict":
            raise Conflict(STALE)
        if got.status >= 400:
            raise ToolFailed(f"The server does not take it{f' ({rule})' if rule else ''}.")
        return _version(got)

    async def delete(self, url: str, *, etag: str) -> None:
        """Remove a resource of this version; one that is gone already is well. Conflict where it is another version."""
        got = await self._ask("DELETE", url, None, {"If-Match": etag} if etag else {}, taken=frozenset({404, 410, 412}))
        if got.status == 412:
            raise Conflict(STALE)

    async def _read(self, got: FetchedPage) -> Multistatus:
        """The answer, read in a thread: a whole calendar is megabytes."""
        if got.is_cut:
            raise ToolFailed(f"{self.server.host} answers with more than {ANSWER_BYTES // 1_000_000} MB at once.")
        if got.status != 207:
            raise ToolFailed(f"{self.server.host} answers as no calendar server does (status {got.status}).")
        try:
            return await asyncio.to_thread(read, got.body)
        except BadAnswerError as error:
            raise ToolFailed(f"{self.server.host} answers with XML that cannot be read: {error}.") from error

    async def _ask(
        self,
        method: str,
        url: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        taken: frozenset[int] = frozenset(),
    ) -> FetchedPage:
        """Send it, along redirects; `taken`: refusals that whoever asks reads for themselves."""
        sent = {"Content-Type": "application/xml; charset=utf-8", **(headers or {})} if body else dict(headers or {})
        for _ in range(REDIRECTS + 1):
            got = await self._once(method, url, body, sent)
            if got.status not in (301, 302, 303, 307, 308):
                return self._accepted(got, taken)
            url = urljoin(url, {name.lower(): value for name, value in got.headers.items()}.get("location", ""))
        raise ToolFailed(f"{self.server.host} sends from one address to the next without end.")

    async def _once(self, method: str, url: str, body: bytes | None, headers: dict[str, str]) -> FetchedPage:
        """One request, with the key in the way that the server asks for. NotAllowed where the key must not go."""
        if not self.server.may_have_key(url):
            raise NotAllowed(f"{self.server.host} sends to another server, which does not get your password.")
        self._client.auth = self._digest or self._basic or httpx.Auth()
        got = await self._sent(method, url, body, headers)
        asked = got.headers.get("www-authenticate", "")
        if got.status == 401 and self._digest is None and self.server.username and "digest" in asked.lower():
            self._client.auth = self._digest = httpx.DigestAuth(self.server.username, self.server.password)
            got = await self._sent(method, url, body, headers)
        return got

    async def _sent(self, method: str, url: str, body: bytes | None, headers: dict[str, str]) -> FetchedPage:
        try:
            return await fetch(
                self._client, url, method=method, headers=headers, content=body, max_bytes=ANSWER_BYTES, total_s=TOTAL_S
            )
        except ToolFailed as error:
            raise ServiceDown(error.message) from error

    def _accepted(self, got: FetchedPage, taken: frozenset[int]) -> FetchedPage:
        host = self.server.host
        if got.status < 400 or got.status in taken:
            return got
        if got.status == 401:
            raise ServiceDown(f"{host} does not take this name and password. Many servers want an app password here.")
        if got.status == 403:
            raise ToolFailed(f"{host} does not allow this account to do that.")
        if got.status in (404, 410):
            raise NotFound(f"That is not there on {host}.")
        if got.status == 507:
            raise ToolFailed(f"{host} has no room left for this account.")
        if got.status == 429 or got.status >= 500:
            raise ServiceDown(f"{host} cannot answer now (status {got.status}). Try again later.")
        raise ToolFailed(f"{host} answered with status {got.status}.")


def _version(got: FetchedPage) -> str:
    return {name.lower(): value for name, value in got.headers.items()}.get("etag", "")
