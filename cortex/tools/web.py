"""The public web: search, read a page, fetch raw. All that comes back was written by strangers, and is marked so."""

from typing import Annotated

from pydantic import Field

from cortex.base.errors import ToolFailed
from cortex.integrations.search import WebSearch
from cortex.integrations.web import Web, outside_url
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.spec import Output
from cortex.toolkit.stretch import stretch
from cortex.toolkit.words import counted

SUMMARY = "search the web, read pages"
PREFIXES = ("web_search", "web_read", "http_fetch")
ROLES = {"orchestrator": ("web",), "research": ("web",)}
TESTED = "HTTP servers on loopback; SearXNG's and Brave's answers by doubles"
QUERY_CHARACTERS = 400


async def _can_search(ctx: Ctx, query: str, count: int) -> None:
    if not 0 < len(query.strip()) <= QUERY_CHARACTERS:
        raise ToolFailed(f"A query has 1 to {QUERY_CHARACTERS} characters.")


async def _can_fetch(ctx: Ctx, url: str, offset: int) -> None:
    outside_url(url)


@tool(
    words="Search the web: {query}",
    risk="medium",
    effect="read",
    reads_untrusted=True,
    needs=("WebSearch",),
    check=_can_search,
)
async def web_search(ctx: Ctx, query: str, count: Annotated[int, Field(ge=1, le=10)] = 5) -> Output:
    """Search the web for news, facts, prices, weather.

    Args:
        query: What to look for.
        count: How many results.
    """
    await _can_search(ctx, query, count)
    found = await ctx.use(WebSearch).search(query.strip(), count)
    lines = [f"{number}. {row.title}\n   {row.url}\n   {row.snippet}" for number, row in enumerate(found, 1)]
    text = "\n".join(lines) or f"Nothing was found for {query!r}. Try other words."
    return Output(text=text, words=counted(len(found), "result"))


@tool(
    words="Read {url}",
    risk="medium",
    effect="read",
    reads_untrusted=True,
    sends_out=True,
    needs=("Web",),
    check=_can_fetch,
)
async def web_read(ctx: Ctx, url: str, offset: int = 0) -> str:
    """Read the text of a web page.

    Args:
        url: Its address.
        offset: Character to start at; a long page says how to go on.
    """
    page = await ctx.use(Web).read(url, stays=_stays(ctx))
    title = f"# {page.title}\n" if page.title and not offset else ""
    return title + stretch(page.text, offset, "web_read")


@tool(
    words="Fetch {url}",
    risk="medium",
    effect="read",
    reads_untrusted=True,
    sends_out=True,
    needs=("Web",),
    check=_can_fetch,
)
async def http_fetch(ctx: Ctx, url: str, offset: int = 0) -> str:
    """Fetch an address as it is: JSON, an API, page source.

    Args:
        url: The address.
        offset: Character to start at.
    """
    got = await ctx.use(Web).fetch(url, stays=_stays(ctx))
    kind = got.headers.get("content-type", "unknown kind")
    if b"\0" in got.body[:1_000]:
        return f"Status {got.status}, {kind}, {len(got.body)} bytes of binary data."
    cut = " The rest was left out: it is too large." if got.is_cut else ""
    return f"Status {got.status}, {kind}.{cut}\n{stretch(got.text, offset, 'http_fetch')}"


def _stays(ctx: Ctx) -> bool:
    """Tell whether only the host that the gate saw may get what the address carries: a redirect leads past the gate."""
    return ctx.is_tainted and ctx.has_read_private
