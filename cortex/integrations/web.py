"""Fetches pages from the public web through the one egress rule. A client of its own per request: no cookie is kept."""

import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from msgspec import Struct

from cortex.base import scan
from cortex.base.address import PUBLIC, is_inside_name
from cortex.base.errors import NotAllowed, ToolFailed
from cortex.base.web_address import web_place
from cortex.integrations.process import run

if TYPE_CHECKING:  # httpx is read with the first request
    import httpx

    from cortex.base.http import FetchedPage

URL_CHARACTERS = 2_000
READ_TIMEOUT_S = 20.0
READER = Path(__file__).with_name("page_text.py")
TEXT_BYTES = 4_000_000
REPLY_BYTES = 200_000
HEADERS = 20
HEADER_CHARACTERS = 4_000
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_OURS = frozenset({"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect"})


class WebPage(Struct, frozen=True, kw_only=True):
    """A page that was read: its place in the end, its title, its readable text."""

    url: str
    title: str
    text: str


def public_client() -> "httpx.AsyncClient":
    """A client that reaches public addresses only."""
    return cast("httpx.AsyncClient", scan.load("cortex.base.http").open_client(PUBLIC))


class Web:
    """The public web. `opened` makes a client (tests give one with a transport of their own)."""

    def __init__(
        self, opened: "Callable[[], httpx.AsyncClient]" = public_client, read_timeout_s: float = READ_TIMEOUT_S
    ) -> None:
        self._opened = opened
        self._read_timeout_s = read_timeout_s

    async def fetch(self, url: str, *, stays: bool = False) -> "FetchedPage":
        """Return what stands at the address, whatever the status; NotAllowed for inside addresses, ToolFailed else.

        `stays`: what the address carries is for its host alone, so a redirect to another one is refused.
        """
        async with self._opened() as client:
            if stays:
                client.event_hooks = {"request": [_one_host()]}
            return cast("FetchedPage", await scan.load("cortex.base.http").fetch(client, checked_url(url)))

    async def request(
        self, url: str, *, method: str, headers: Mapping[str, str] | None = None, content: bytes | None = None
    ) -> "FetchedPage":
        """Send it to exactly this address and hand back what came; a redirect is not followed, the data stays here.

        NotAllowed for inside addresses, ToolFailed for whatever else goes wrong and for headers that are not one's own.
        """
        checked = checked_headers(headers or {})
        async with self._opened() as client:
            client.follow_redirects = False
            fetched = scan.load("cortex.base.http").fetch(
                client, checked_url(url), method=method, headers=checked, content=content, max_bytes=REPLY_BYTES
            )
            return cast("FetchedPage", await fetched)

    async def read(self, url: str, *, stays: bool = False) -> WebPage:
        """The readable text of a page or a plain text; ToolFailed when there is none to read. `stays`: as `fetch`."""
        got = await self.fetch(url, stays=stays)
        kind = got.headers.get("content-type", "").partition(";")[0].strip().lower()
        if got.status >= 400:
            raise ToolFailed(f"{url} answered with status {got.status}.")
        if kind in ("text/html", "application/xhtml+xml", ""):
            return await self._readable(got)
        if kind.startswith("text/") or kind.endswith(("json", "xml")):
            return WebPage(url=got.url, title="", text=got.text)
        raise ToolFailed(f"{url} is {kind}, which has no text to read.")

    async def _readable(self, got: "FetchedPage") -> WebPage:
        argv = [sys.executable, "-I", str(READER)]
        given = f"{got.url}\n{got.text}".encode("utf-8", "replace")
        done = await run(argv, cwd=READER.parent, timeout_s=self._read_timeout_s, stdin=given, output_bytes=TEXT_BYTES)
        if done.killed or done.code:
            raise ToolFailed(f"{got.url} is too large or too complex to read; http_fetch shows its source.")
        title, _, text = done.out.partition("\n")
        if not text:
            raise ToolFailed(f"{got.url} has no readable text; http_fetch shows its source.")
        return WebPage(url=got.url, title=title, text=text)


def _one_host() -> "Callable[[httpx.Request], Awaitable[None]]":
    """Called with each request of a fetch: ToolFailed for one to another host than the first, `www.` apart."""
    hosts: set[str] = set()

    async def check(request: "httpx.Request") -> None:
        hosts.add(request.url.host.removeprefix("www."))
        if len(hosts) > 1:
            raise ToolFailed(
                f"It redirects to {request.url.host}, which was not followed: this turn has read text from outside and "
                "private data, and only places that the user named are reached. Tell the user where it leads."
            )

    return check


def checked_url(url: str) -> str:
    """The address, when it is a plain http or https one; ToolFailed when it is not."""
    try:
        web_place(url.strip())
        parts = urlsplit(url.strip())
    except ValueError as error:
        raise ToolFailed(f"{url[:100]!r}: {error}.") from None
    if len(url) > URL_CHARACTERS:
        raise ToolFailed(f"{url[:100]!r} is not a web address: it must begin with http:// or https://.")
    if parts.username is not None or parts.password is not None:
        raise ToolFailed("An address with a name or password in it is not fetched.")
    return url.strip()


def outside_url(url: str) -> str:
    """The address, as `checked_url` takes it; NotAllowed for one that says itself that it stands inside a network.

    Resolves nothing: asking for a name would already tell it to somebody. The rule itself holds at the socket.
    """
    checked = checked_url(url)
    host = urlsplit(checked).hostname or ""
    if is_inside_name(host):
        raise NotAllowed(f"{host} is inside a private network, which is not allowed. Only public addresses are.")
    return checked


def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers, when each is a plain one that a caller may set; ToolFailed when one is not."""
    if len(headers) > HEADERS:
        raise ToolFailed(f"At most {HEADERS} headers can be sent.")
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name) or name.lower() in _OURS or name.lower().startswith("proxy-"):
            raise ToolFailed(f"The header {name[:80]!r} cannot be set.")
        if len(value) > HEADER_CHARACTERS or not value.isprintable() or not value.isascii():
            raise ToolFailed(f"The header {name!r} holds characters that cannot be sent, or too many.")
    return dict(headers)
