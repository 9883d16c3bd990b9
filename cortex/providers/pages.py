"""One page of a model server other than an answer: a list, what a model is, vectors. Who asks reads what it says.

Used by `lists.py`, `looks.py` and `embeddings.py`. No redirect is followed: a key goes to the address that the person
gave and nowhere else.
"""

import asyncio
import json
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx

from cortex.base import outside_text
from cortex.base.dial import unknown_host
from cortex.base.errors import CortexError, NotAllowed, ProviderError, ToolFailed
from cortex.base.hidden import show_hidden
from cortex.base.http import FetchedPage, fetch, open_client
from cortex.base.json_text import parsed
from cortex.base.trust import trusting, untrusted
from cortex.ports.model_lists import ModelServer


async def opened(server: ModelServer) -> AbstractAsyncContextManager[httpx.AsyncClient]:
    """A client for this server, to be used with `async with`."""
    context = await asyncio.to_thread(trusting, server.ca)
    return open_client(server.policy, timeout_s=server.limit_s, follow_redirects=False, context=context)


async def page_of(
    client: httpx.AsyncClient, url: str, *, headers: Mapping[str, str], most_bytes: int, left_s: float, limit_s: float,
    content: bytes | None = None,
) -> FetchedPage:  # fmt: skip
    """What came, posted where there is a content; ProviderError when nothing did. limit_s: the limit to tell of."""
    host = urlsplit(url).netloc
    try:
        return await _fetched(client, url, headers, most_bytes, left_s, content)
    except NotAllowed as error:
        raise ProviderError(error.message, kind="refused") from error
    except ToolFailed as error:
        if isinstance(error.__cause__, (TimeoutError, httpx.TimeoutException)):
            message = f"{host} did not answer within {limit_s:g} seconds. {_check(host)}"
            raise ProviderError(message, kind="timeout", is_retryable=True) from error
        why = show_hidden(outside_text.cut(str(error.__cause__), 160)) if error.__cause__ else ""
        if refused := untrusted(str(error.__cause__)):
            raise ProviderError(f"{host}: {refused}", kind="connection") from error
        message = f"{host} could not be reached{f' ({why})' if why else ''}. {_check(host)}"
        raise ProviderError(unknown_host(why) or message, kind="connection") from error


async def json_of(
    client: httpx.AsyncClient, url: str, *, headers: Mapping[str, str], most_bytes: int, left_s: float,
    body: Mapping[str, Any] | None = None,
) -> Any:  # Any: what a server says  # fmt: skip
    """Return what this page says, parsed, where a body is posted; None where it says nothing, or not in time."""
    content = None if body is None else json.dumps(body).encode()
    try:
        page = await _fetched(client, url, headers, most_bytes, left_s, content)
        return await asyncio.to_thread(parsed, page.body) if page.status == 200 and not page.is_cut else None
    except (CortexError, ValueError):
        return None


async def _fetched(
    client: httpx.AsyncClient, url: str, headers: Mapping[str, str], most_bytes: int, left_s: float,
    content: bytes | None,
) -> FetchedPage:  # fmt: skip
    sent = dict(headers) if content is None else {**headers, "Content-Type": "application/json"}
    method, total_s = ("GET" if content is None else "POST"), max(0.05, left_s)
    return await fetch(client, url, method=method, headers=sent, content=content, max_bytes=most_bytes, total_s=total_s)


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
