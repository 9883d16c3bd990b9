"""Searches the web through what an admin configured: a SearXNG, Brave's API, or DuckDuckGo."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import urlencode

from msgspec import Struct

from cortex.base import scan
from cortex.base.address import PUBLIC, AddressPolicy, named
from cortex.base.errors import ConfigError, ToolFailed
from cortex.base.json_text import parsed
from cortex.base.web_address import web_place

if TYPE_CHECKING:  # httpx is read with the first request
    import httpx

TIMEOUT_S = 12
BRAVE_URL = "https://api.search.brave.com/res/v1/web/search"
SNIPPET_CHARACTERS = 300


class SearchResult(Struct, frozen=True, kw_only=True):
    """One result."""

    title: str
    url: str
    snippet: str


class WebSearch(Protocol):
    """A search engine."""

    async def search(self, query: str, count: int) -> list[SearchResult]:
        """Up to `count` results, the best first; ToolFailed when the engine does not answer."""
        ...


def web_search_from(*, searxng_url: str = "", brave_api_key: str = "", ddgs: bool = False) -> WebSearch | None:
    """The engine that the settings name, in this order; None when none is configured.

    ConfigError where DuckDuckGo's library, an extra, is not installed.
    """
    if searxng_url:
        return SearxngSearch(searxng_url)
    if brave_api_key:
        return BraveSearch(brave_api_key)
    if ddgs and not scan.is_installed("ddgs"):
        raise ConfigError("CORTEX_DDGS: DuckDuckGo's library is not installed. Run `make ddgs`, or switch it off.")
    return DdgsSearch() if ddgs else None


class SearxngSearch:
    """A SearXNG instance's JSON API; it may stand in the house's own network, at exactly this host and port."""

    def __init__(self, url: str, opened: "Callable[[], httpx.AsyncClient] | None" = None) -> None:
        self._url = url.rstrip("/") + "/search"
        self._opened = opened or (lambda: _client(named(web_place(url))))

    async def search(self, query: str, count: int) -> list[SearchResult]:
        """Ask it; a 403 means that its settings do not allow the JSON format."""
        address = f"{self._url}?{urlencode({'q': query, 'format': 'json'})}"
        rows = await _rows(self._opened, address, {}, "results")
        return [_found(row, "title", "url", "content") for row in rows[:count]]


class BraveSearch:
    """Brave's web search API."""

    def __init__(self, key: str, opened: "Callable[[], httpx.AsyncClient] | None" = None) -> None:
        self._key = key
        self._opened = opened or (lambda: _client(PUBLIC, follow_redirects=False))

    async def search(self, query: str, count: int) -> list[SearchResult]:
        """Ask it, with the key in a header."""
        address = f"{BRAVE_URL}?{urlencode({'q': query[:400], 'count': count})}"
        headers = {"X-Subscription-Token": self._key, "Accept": "application/json"}
        rows = await _rows(self._opened, address, headers, "web", "results")
        return [_found(row, "title", "url", "description") for row in rows[:count]]


class DdgsSearch:
    """DuckDuckGo through a library that brings its own client; it talks to its fixed engines only."""

    async def search(self, query: str, count: int) -> list[SearchResult]:
        """Ask it in a thread."""
        ddgs = scan.load("cortex.integrations.ddgs_search")
        try:
            async with asyncio.timeout(TIMEOUT_S * 2):
                rows = await asyncio.to_thread(ddgs.search, query, count, TIMEOUT_S)
        except TimeoutError as error:
            raise ToolFailed("The search took too long. Try again later.") from error
        return [_found(row, "title", "href", "body") for row in rows[:count]]


def _client(policy: AddressPolicy, *, follow_redirects: bool = True) -> "httpx.AsyncClient":
    opened = scan.load("cortex.base.http").open_client(policy, follow_redirects=follow_redirects)
    return cast("httpx.AsyncClient", opened)


async def _rows(
    opened: "Callable[[], httpx.AsyncClient]", address: str, headers: Mapping[str, str], *path: str
) -> list[dict[str, Any]]:
    """The list that stands at `path` in the engine's JSON answer."""
    async with opened() as client:
        got = await scan.load("cortex.base.http").fetch(client, address, headers=headers, total_s=TIMEOUT_S)
    if got.status != 200:
        hint = " Its settings must allow `json` under search.formats." if got.status == 403 else ""
        raise ToolFailed(f"The search engine answered with status {got.status}.{hint}")
    try:
        value = parsed(got.text)
    except ValueError as error:
        raise ToolFailed("The search engine's answer was no JSON.") from error
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _found(row: Mapping[str, Any], title: str, url: str, snippet: str) -> SearchResult:
    words = " ".join(str(row.get(snippet) or "").split())
    return SearchResult(
        title=str(row.get(title) or ""), url=str(row.get(url) or ""), snippet=words[:SNIPPET_CHARACTERS]
    )
