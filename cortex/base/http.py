"""Cortex's own outgoing HTTP: an httpx client whose every connection passes the egress rule, capped in size and time.

Used by model servers, tools and integrations (but for the MCP package, which brings httpx2: `base/egress.py`). Ignores
the environment's proxies.
"""

import asyncio
import codecs
import ssl
import zlib
from collections.abc import AsyncIterator, Mapping

import httpcore
import httpx
from msgspec import Struct

from cortex.base.address import AddressPolicy
from cortex.base.dial import Resolver, guarded_pool, resolve
from cortex.base.errors import ToolFailed
from cortex.base.ids import new_id
from cortex.base.trust import certificates

MAX_REDIRECTS = 5
MAX_BYTES = 5_000_000
TOTAL_S = 30.0
_UNPACKED = 65_536  # bytes at once


class GuardedTransport(httpx.AsyncHTTPTransport):
    """httpx's transport over the guarded backend."""

    def __init__(
        self,
        policy: AddressPolicy,
        resolver: Resolver = resolve,
        inner: httpcore.AsyncNetworkBackend | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        trusted = context or certificates()
        super().__init__(verify=trusted, trust_env=False)
        # httpx offers no parameter for the backend; the pool it has just made holds no connection yet.
        self._pool = guarded_pool(httpcore, trusted, policy, resolver, inner)


def open_client(
    policy: AddressPolicy,
    *,
    timeout_s: float = 15.0,
    follow_redirects: bool = True,
    context: ssl.SSLContext | None = None,
) -> httpx.AsyncClient:
    """A client under this policy; close it with `async with` or `aclose`. NotAllowed is raised by its requests.

    context: what TLS trusts, where that is not what this machine does.
    """
    return httpx.AsyncClient(
        transport=GuardedTransport(policy, context=context),
        trust_env=False,
        timeout=httpx.Timeout(timeout_s),
        follow_redirects=follow_redirects,
        max_redirects=MAX_REDIRECTS,
        headers={"User-Agent": "Cortex (self-hosted assistant)"},
    )


class FetchedPage(Struct, frozen=True, kw_only=True):
    """An answer, read up to the cap. `url`: where it came from in the end. `is_cut`: there was more."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    is_cut: bool
    encoding: str = "utf-8"

    @property
    def text(self) -> str:
        """The body as text; what can't be decoded is replaced."""
        return self.body.decode(self.encoding, "replace")


async def fetch(
    client: httpx.AsyncClient,
    url: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    content: bytes | None = None,
    max_bytes: int = MAX_BYTES,
    total_s: float = TOTAL_S,
) -> FetchedPage:
    """Send one request and read its body, never more than `max_bytes` unpacked, never longer than `total_s`.

    Raises NotAllowed when the policy forbids the address, ToolFailed for everything else that goes wrong.
    """
    # gzip only: it can be unpacked piece by piece, so that a small body can't grow without end.
    sent = {"Accept-Encoding": "gzip", **(headers or {})}
    try:
        async with (
            asyncio.timeout(total_s),
            client.stream(method, url, headers=sent, content=content) as response,
        ):
            body, is_cut = await _read(response, max_bytes)
    except TimeoutError as error:
        raise ToolFailed(f"{url} did not answer within {total_s:g} seconds.") from error
    except httpx.TooManyRedirects as error:
        raise ToolFailed(f"{url} redirects more than {MAX_REDIRECTS} times.") from error
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        what = "read" if method == "GET" else "reached"
        raise ToolFailed(f"{url} could not be {what}: {str(error) or type(error).__name__}.") from error
    return FetchedPage(
        url=str(response.url),
        status=response.status_code,
        headers=dict(response.headers),
        body=body,
        is_cut=is_cut,
        encoding=_known(response.charset_encoding),
    )


def form_data(fields: Mapping[str, str], field: str, name: str, content: bytes) -> tuple[str, bytes]:
    """A form with one file as it goes out: its type, and its bytes. `name`: of the file, with its ending."""
    mark = f"cortex-{new_id()}"
    plain = "".join(sign if sign.isascii() and (sign.isalnum() or sign in ".-_") else "_" for sign in name)[-80:]
    given = "".join(
        f'--{mark}\r\nContent-Disposition: form-data; name="{one}"\r\n\r\n{value}\r\n' for one, value in fields.items()
    )
    head = f'--{mark}\r\nContent-Disposition: form-data; name="{field}"; filename="{plain}"\r\n'
    head += "Content-Type: application/octet-stream\r\n\r\n"
    return f"multipart/form-data; boundary={mark}", b"".join(
        (given.encode(), head.encode(), content, f"\r\n--{mark}--\r\n".encode())
    )


async def unpacked(response: httpx.Response) -> AsyncIterator[bytes]:
    """The body as it comes, never much of it at once: a packed one of some KB can hold many GB.

    httpx.DecodingError for one that is broken, or packed otherwise or more than once.
    """
    coding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if coding not in ("identity", "", "gzip", "x-gzip"):
        raise httpx.DecodingError(f"unasked-for content encoding {coding[:80]!r}")
    unpack = zlib.decompressobj(wbits=31) if "gzip" in coding else None
    async for packed in response.aiter_raw():
        if unpack is None:
            yield packed
            continue
        while packed:
            try:
                piece = unpack.decompress(packed, _UNPACKED)
            except zlib.error as error:
                raise httpx.DecodingError(str(error)) from error
            packed = unpack.unconsumed_tail
            if piece:
                yield piece
                await asyncio.sleep(0)  # whoever reads it holds nobody up


async def _read(response: httpx.Response, max_bytes: int) -> tuple[bytes, bool]:
    body = bytearray()
    async for piece in unpacked(response):
        body += piece
        if len(body) > max_bytes:
            return bytes(body[:max_bytes]), True
    return bytes(body), False


def _known(encoding: str | None) -> str:
    try:
        return codecs.lookup(encoding or "utf-8").name
    except LookupError:
        return "utf-8"
