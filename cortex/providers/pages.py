"""One page of a model server other than an answer: a list, what a model is, vectors. Who asks reads what it says.

Used by `lists.py`, `looks.py` and `embeddings.py`. No redirect is followed: a key goes to the address that the person
gave and nowhere else.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from math import inf
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx
from msgspec import Struct

from cortex.base import outside_text
from cortex.base.clock import ticks_s
from cortex.base.dial import unknown_host
from cortex.base.errors import CortexError, NotAllowed, ProviderError, ToolFailed
from cortex.base.hidden import show_hidden
from cortex.base.http import FetchedPage, fetch, open_client
from cortex.base.json_text import parsed
from cortex.base.trust import trusting, untrusted
from cortex.ports.model_lists import ModelServer
from cortex.providers.server_row import ServerRow
from cortex.providers.servers import headers_of


class ServerPages(Struct, frozen=True, kw_only=True):
    """The pages of one server, within one time limit. Make it with `pages_of`."""

    _client: httpx.AsyncClient
    _headers: Mapping[str, str]
    _most_bytes: int
    _limit_s: float
    _deadline_s: float

    async def page(self, url: str, content: bytes | None = None) -> FetchedPage:
        """Return what came, posted where there is a content; ProviderError when nothing did."""
        host = urlsplit(url).netloc
        try:
            return await self._fetched(url, content, self._deadline_s - ticks_s())
        except NotAllowed as error:
            raise ProviderError(error.message, kind="refused") from error
        except ToolFailed as error:
            if isinstance(error.__cause__, (TimeoutError, httpx.TimeoutException)):
                message = f"{host} did not answer within {self._limit_s:g} seconds. {_check(host)}"
                raise ProviderError(message, kind="timeout", is_retryable=True) from error
            why = show_hidden(outside_text.cut(str(error.__cause__), 160)) if error.__cause__ else ""
            if refused := untrusted(str(error.__cause__)):
                raise ProviderError(f"{host}: {refused}", kind="connection") from error
            message = f"{host} could not be reached{f' ({why})' if why else ''}. {_check(host)}"
            raise ProviderError(unknown_host(why) or message, kind="connection") from error

    async def json(self, url: str, body: Mapping[str, Any] | None = None, most_s: float = inf) -> Any:
        """Return what this page says, parsed, where a body is posted; None where it says nothing, or not in time."""
        left_s = min(most_s, self._deadline_s - ticks_s())
        if left_s <= 0:
            return None
        try:
            page = await self._fetched(url, None if body is None else json.dumps(body).encode(), left_s)
            return await asyncio.to_thread(parsed, page.body) if page.status == 200 and not page.is_cut else None
        except (CortexError, ValueError):
            return None

    async def _fetched(self, url: str, content: bytes | None, left_s: float) -> FetchedPage:
        headers = dict(self._headers) if content is None else {**self._headers, "Content-Type": "application/json"}
        method, total_s = ("GET" if content is None else "POST"), max(0.05, left_s)
        most = self._most_bytes
        return await fetch(
            self._client, url, method=method, headers=headers, content=content, max_bytes=most, total_s=total_s
        )


@asynccontextmanager
async def pages_of(server: ModelServer, row: ServerRow, most_bytes: int) -> AsyncIterator[ServerPages]:
    """The pages of this server while the block lasts; what opening its client takes is not of the server's time.

    most_bytes: of one page.
    """
    context = await asyncio.to_thread(trusting, server.ca)
    async with open_client(server.policy, timeout_s=server.limit_s, follow_redirects=False, context=context) as client:
        yield ServerPages(
            _client=client,
            _headers={"Accept": "application/json", **headers_of(row, server.key)},
            _most_bytes=most_bytes,
            _limit_s=server.limit_s,
            _deadline_s=ticks_s() + server.limit_s,
        )


def refused(page: FetchedPage, said: str, missing: str, *, mend: str = "", has_key: bool = True) -> ProviderError:
    """An answer with another status than 200: what it means, what the server said, what to do.

    missing: what is said of a page that there is not, behind the host; mend: what to do about that.
    """
    host, quoted = urlsplit(page.url).netloc, f" It said: “{said}”" if said else ""
    match page.status:
        case 401 | 403 if has_key:
            told = f"{host} refused the key ({page.status}).{quoted} Copy the whole key again, or make a new one there."
            return ProviderError(told, kind="auth")
        case 401 | 403:
            return ProviderError(f"{host} wants a key ({page.status}).{quoted}", kind="auth")
        case 404 | 405 | 501:
            return ProviderError(f"{host} {missing} ({page.status}).{quoted} {mend}".rstrip(), kind="request")
        case 429:
            told = f"{host} takes no more requests for now (429).{quoted} Try again later."
            return ProviderError(told, kind="rate_limit", is_retryable=True)
        case status if 300 <= status < 400:
            to = urlsplit(page.headers.get("location", ""))
            place = show_hidden(urlunsplit((to.scheme, to.hostname or "", to.path, "", ""))[:200])
            told = f"{host} sends on to {place or 'another address'} ({status}), and a key is not sent after it."
            return ProviderError(f"{told} Enter the final address of the API.", kind="request")
        case status if status >= 500:
            told = f"{host} has a problem ({status}).{quoted} Try again later."
            return ProviderError(told, kind="server", is_retryable=True)
    return ProviderError(f"{host} refused the request ({page.status}).{quoted}", kind="request")


def _check(host: str) -> str:
    told = "Check that the server runs and that the address is right."
    is_here = host.startswith(("127.", "localhost", "[::1]"))
    return f"{told} If Cortex runs in a container, {host.partition(':')[0]} is that container." if is_here else told
