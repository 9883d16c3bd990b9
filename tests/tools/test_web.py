"""The web from the chat: results in short text, marked as from outside; inside addresses are never reached."""

import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpcore
import httpx
import pytest
from msgspec.structs import replace
from pydantic import ValidationError

from cortex.base.address import PUBLIC
from cortex.base.errors import CortexError, NotFound, ToolFailed
from cortex.base.http import GuardedTransport
from cortex.base.user import User
from cortex.integrations.search import SearchResult, WebSearch
from cortex.integrations.web import Web
from tests.streamed import streamed
from tests.tool_world import World

SSRF = (Path(__file__).parents[1] / "base" / "ssrf_urls.txt").read_text(encoding="utf-8").split()
PAGE = (
    "<html><head><title>Otters</title></head><body><nav>Home About</nav><article><h1>Otters</h1>"
    + "<p>Otters hold hands while they sleep so that they do not drift apart in the water.</p>" * 4
    + "</article><script>alert(1)</script></body></html>"
)


class FixedSearch:
    def __init__(self, *rows: SearchResult) -> None:
        self.rows = list(rows)

    async def search(self, query: str, count: int) -> list[SearchResult]:
        return self.rows[:count]


def _answers(request: httpx.Request) -> httpx.Response:
    match request.url.path:
        case "/page":
            return streamed(200, PAGE, "text/html")
        case "/long":
            return streamed(200, "x" * 7_000 + "the end")
        case "/data.json":
            return streamed(200, '{"a":1}', "application/json")
        case "/away":
            return httpx.Response(
                302, headers={"Location": f"https://elsewhere.example/data.json?{request.url.query.decode()}"}
            )
        case "/near":
            return httpx.Response(302, headers={"Location": "https://www.example.org/data.json"})
        case "/photo":
            return streamed(200, b"\x89PNG\0\0", "image/png")
        case "/tangled":
            return streamed(200, "<div>" * 100_000 + "x", "text/html")
        case "/slow":
            raise httpx.ReadTimeout("slow")
        case "/down":
            raise httpx.ConnectError("no route")
        case _:
            return streamed(404, "no such page")


@pytest.fixture
def online(world: World) -> World:
    world.wired[Web] = Web(lambda: httpx.AsyncClient(transport=httpx.MockTransport(_answers), follow_redirects=True))
    return world


async def test_search_results_are_listed(world: World, ann: User) -> None:
    world.wired[WebSearch] = FixedSearch(SearchResult(title="Otters", url="https://example.org", snippet="Hold hands."))
    found = (await world.text(ann, "web_search", query="otters")).splitlines()
    assert [line.strip() for line in found] == ["1. Otters", "https://example.org", "Hold hands."]


async def test_nothing_found_is_said(world: World, ann: User) -> None:
    world.wired[WebSearch] = FixedSearch()
    assert "'otters'" in await world.text(ann, "web_search", query="otters")


@pytest.mark.parametrize(("query", "count"), [("", 5), ("x" * 401, 5)])
async def test_a_query_must_be_one(world: World, ann: User, query: str, count: int) -> None:
    world.wired[WebSearch] = FixedSearch()
    with pytest.raises(ToolFailed):
        await world.text(ann, "web_search", query=query, count=count)
    with pytest.raises(ValidationError):
        await world.text(ann, "web_search", query="otters", count=0)


async def test_without_an_engine_there_is_no_search(world: World, ann: User) -> None:
    with pytest.raises(NotFound):
        await world.text(ann, "web_search", query="otters")
    assert world.registry.missing("web_search", {"Web"}) == ("WebSearch",)
    assert world.registry.missing("web_read", {"Web"}) == ()


@pytest.mark.parametrize("name", ["web_read", "http_fetch"])
async def test_what_may_go_to_a_named_place_alone_follows_no_redirect_from_there(
    online: World, ann: User, name: str
) -> None:
    ctx = replace(online.ctx(ann, is_tainted=True), has_read_private=True)
    with pytest.raises(ToolFailed, match=r"redirects to elsewhere\.example"):
        await online.run(ctx, name, url="https://example.org/away?the-diary")
    assert '{"a":1}' in (await online.run(ctx, name, url="https://example.org/near")).text
    assert '{"a":1}' in (await online.run(online.ctx(ann), name, url="https://example.org/away?otters")).text


async def test_a_page_is_read_without_its_menus(online: World, ann: User) -> None:
    text = await online.text(ann, "web_read", url="https://example.org/page")
    assert text.startswith("# Otters")
    assert "hold hands" in text
    assert "alert" not in text
    assert "About" not in text


async def test_a_long_text_is_read_in_stretches(online: World, ann: User) -> None:
    first = await online.text(ann, "web_read", url="https://example.org/long")
    assert "offset=6000" in first
    text = await online.text(ann, "web_read", url="https://example.org/long", offset=6_990)
    assert text.endswith("the end")


async def test_an_address_is_fetched_as_it_is(online: World, ann: User) -> None:
    text = await online.text(ann, "http_fetch", url="https://example.org/data.json")
    assert text == 'Status 200, application/json.\n{"a":1}'
    assert "binary data" in await online.text(ann, "http_fetch", url="https://example.org/photo")
    assert (await online.text(ann, "http_fetch", url="https://example.org/none")).startswith("Status 404")


async def test_a_page_that_takes_too_long_to_read_is_given_up(world: World, ann: User) -> None:
    http = httpx.MockTransport(_answers)
    world.wired[Web] = Web(lambda: httpx.AsyncClient(transport=http), read_timeout_s=0.5)
    with pytest.raises(ToolFailed, match="too complex"):
        await world.text(ann, "web_read", url="https://example.org/tangled")


@pytest.mark.parametrize("path", ["slow", "down", "photo", "none"])
async def test_a_page_that_cannot_be_read_says_why(online: World, ann: User, path: str) -> None:
    with pytest.raises(ToolFailed, match="example"):
        await online.text(ann, "web_read", url=f"https://example.org/{path}")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "file:///etc/passwd",
        "ftp://example.org",
        "gopher://example.org",
        "data:text/html,hi",
        "javascript:alert(1)",
        "http://",
        "http:///path",
        "https://ann:pass@example.org",
        "https://example.org:99999",
        "https://[::1",
        "https://example.org/" + "x" * 2_000,
    ],
)
async def test_what_is_no_web_address_is_refused(online: World, ann: User, url: str) -> None:
    for name in ("web_read", "http_fetch"):
        with pytest.raises(ToolFailed):
            await online.text(ann, name, url=url)


class Dialled(httpcore.AsyncNetworkBackend):
    """Notes each address that a connection was opened to."""

    def __init__(self) -> None:
        self.addresses: list[str] = []

    async def connect_tcp(self, host: str, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        self.addresses.append(host)
        return httpcore.AsyncMockStream([b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nSECRET"])


async def inside(host: str, port: int) -> list[str]:
    """A name server to which every name means an inside address; number forms are read as the C library does."""
    with suppress(OSError):
        return [socket.inet_ntoa(socket.inet_aton(host))]
    with suppress(OSError):
        return [socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, host.split("%")[0]))]
    return ["10.0.0.1"]


@pytest.mark.parametrize("url", SSRF)
async def test_inside_addresses_are_never_reached(world: World, ann: User, url: str) -> None:
    dialled = Dialled()
    world.wired[Web] = Web(lambda: httpx.AsyncClient(transport=GuardedTransport(PUBLIC, inside, dialled)))
    for name in ("web_read", "http_fetch"):
        with pytest.raises(CortexError):
            await world.text(ann, name, url=url)
    assert dialled.addresses == []
