"""Outgoing HTTP at the socket: what inside addresses are dialled when a URL, a redirect or a name server lies."""

import asyncio
import contextlib
import gzip
import socket
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any

import httpcore
import httpcore2
import httpx
import httpx2
import pytest

from cortex.base import egress
from cortex.base.address import PUBLIC, AddressPolicy, named
from cortex.base.errors import NotAllowed, ToolFailed
from cortex.base.http import GuardedTransport, fetch, open_client
from tests.attacks import inside_urls

# 73 ways to write an inside address: plain, other bases, short forms, v6 wrappings, names, credentials, odd signs.
SSRF = Path(__file__).with_name("ssrf_urls.txt").read_text(encoding="utf-8").split()

DRIP_S = 0.2  # between two bytes of a slow server: far less than one may wait for a byte, fifty are more than for all

NAMES = {
    "public.test": ["93.184.215.14"],
    "localhost": ["127.0.0.1", "::1"],
    "loopback.test": ["127.0.0.1"],
    "metadata.test": ["169.254.169.254"],
    "router.test": ["192.168.1.1"],
    "six.test": ["::1"],
    "mapped.test": ["::ffff:10.0.0.1"],
    "mixed.test": ["93.184.215.14", "10.0.0.1"],
    "nat64.test": ["64:ff9b::a9fe:a9fe"],
    "zero.test": ["0.0.0.0"],  # noqa: S104
    "ula.test": ["fd12::1"],
    "broadcast.test": ["255.255.255.255"],
}


async def resolver(host: str, port: int) -> list[str]:
    """A name server of our own; number forms are read as the C library reads them."""
    known = NAMES.get(host.lower().rstrip("."))
    if known:
        return known
    try:
        return [socket.inet_ntoa(socket.inet_aton(host))]
    except OSError:
        pass
    try:
        return [socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, host.split("%")[0]))]
    except OSError as error:
        raise socket.gaierror(f"no such name {host!r}") from error


class Dialled(httpcore.AsyncNetworkBackend):
    """Notes each address that a connection was opened to; answers with what the test says."""

    def __init__(self, *answers: bytes) -> None:
        self.addresses: list[str] = []
        self.answers = list(answers)

    async def connect_tcp(self, host: str, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        self.addresses.append(host)
        answer = self.answers.pop(0) if self.answers else b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
        return httpcore.AsyncMockStream([answer])


class Dialled2(httpcore2.AsyncNetworkBackend):
    """The same for httpcore2."""

    def __init__(self) -> None:
        self.addresses: list[str] = []

    async def connect_tcp(self, host: str, *_: Any, **__: Any) -> httpcore2.AsyncNetworkStream:
        self.addresses.append(host)
        return httpcore2.AsyncMockStream([b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"])


def client(dialled: Dialled, policy: AddressPolicy = PUBLIC, names: Callable[..., Any] = resolver) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=GuardedTransport(policy, names, dialled), follow_redirects=True, max_redirects=5)


def moved(to: str) -> bytes:
    return f"HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()


@pytest.mark.parametrize("url", SSRF)
async def test_no_url_reaches_an_inside_address(url: str) -> None:
    dialled = Dialled()
    async with client(dialled) as http:
        with contextlib.suppress(NotAllowed, ToolFailed):
            await fetch(http, url)
    assert set(dialled.addresses) <= set(NAMES["public.test"])


@pytest.mark.parametrize("url", SSRF)
async def test_no_redirect_reaches_an_inside_address(url: str) -> None:
    dialled = Dialled(moved("http://public.test/again"), moved(url))
    async with client(dialled) as http:
        with contextlib.suppress(NotAllowed, ToolFailed):
            await fetch(http, "http://public.test/")
    assert set(dialled.addresses) == set(NAMES["public.test"])


@pytest.mark.parametrize("url", SSRF)
async def test_the_model_sdks_reach_no_inside_address(url: str) -> None:
    dialled = Dialled2()
    transport = egress.GuardedTransport2(PUBLIC, resolver, dialled)
    async with httpx2.AsyncClient(transport=transport) as http:
        with contextlib.suppress(NotAllowed, httpx2.HTTPError, httpx2.InvalidURL):
            await http.get(url)
    assert set(dialled.addresses) <= set(NAMES["public.test"])


async def test_no_way_of_writing_an_inside_address_reaches_it() -> None:
    reached = {}
    for url in inside_urls():
        dialled = Dialled()
        async with client(dialled) as http:
            with contextlib.suppress(NotAllowed, ToolFailed):
                await fetch(http, url)
        if dialled.addresses:
            reached[url] = dialled.addresses
    assert reached == {}
    assert len(inside_urls()) > 230


async def test_a_name_is_looked_up_once_and_that_answer_is_dialled() -> None:
    """DNS rebinding: a second look-up would give an inside address."""
    answers = iter([["93.184.215.14"], ["127.0.0.1"]])

    async def rebinding(host: str, port: int) -> list[str]:
        return next(answers)

    dialled = Dialled()
    async with client(dialled, names=rebinding) as http:
        assert (await fetch(http, "http://rebind.test/")).text == "hi"
        assert dialled.addresses == ["93.184.215.14"]
        dialled.answers = [moved("http://rebind.test/second")]
    async with client(dialled, names=rebinding) as http:
        with pytest.raises(NotAllowed):
            await fetch(http, "http://rebind.test/")
    assert dialled.addresses == ["93.184.215.14"]


async def test_six_redirects_are_too_many() -> None:
    dialled = Dialled(*[moved("http://public.test/next")] * 6)
    async with client(dialled) as http:
        with pytest.raises(ToolFailed, match="redirects more than 5 times"):
            await fetch(http, "http://public.test/")


async def test_a_host_that_is_not_named_is_not_looked_up() -> None:
    asked: list[str] = []

    async def noting(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["93.184.215.14"]

    async with client(Dialled(), named(("other.test", 80)), noting) as http:
        with pytest.raises(NotAllowed):
            await fetch(http, "http://public.test/")
    assert asked == []


@pytest.fixture
async def server() -> AsyncIterator[Callable[[Iterable[bytes]], Any]]:
    """A real server on this machine that writes the given pieces."""
    pieces: list[bytes] = []
    seen: list[str] = []
    serving: list[tuple[asyncio.StreamWriter, asyncio.Event]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append((writer, ended := asyncio.Event()))
        try:
            await answer(reader, writer)
        finally:
            ended.set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append((await reader.readuntil(b"\r\n\r\n")).decode())
        for piece in pieces:
            if writer.is_closing():
                return
            writer.write(piece)
            await asyncio.sleep(DRIP_S if piece == b"" else 0)
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)

    def answering(given: Iterable[bytes]) -> Any:
        pieces[:] = given
        port = listening.sockets[0].getsockname()[1]
        return f"http://localhost:{port}/", open_client(named(("localhost", port))), seen

    yield answering
    listening.close()
    for writer, ended in serving:
        writer.transport.abort()
        await ended.wait()


async def test_a_configured_server_inside_is_reached_under_its_name(server: Any) -> None:
    url, http, seen = server([b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=latin-1\r\n\r\nGr\xfc\xdfe"])
    async with http:
        got = await fetch(http, url)
    assert (got.status, got.text, got.is_cut) == (200, "Grüße", False)
    assert "host: localhost:" in seen[0].lower()


@pytest.mark.parametrize("is_packed", [False, True], ids=["plain", "gzip bomb"])
async def test_a_body_is_read_up_to_the_cap(server: Any, is_packed: bool) -> None:
    body = gzip.compress(b"0" * 50_000_000) if is_packed else b"0" * 300_000
    coding = b"Content-Encoding: gzip\r\n" if is_packed else b""
    url, http, _ = server([b"HTTP/1.1 200 OK\r\n" + coding + b"\r\n" + body])
    async with http:
        got = await fetch(http, url, max_bytes=100_000)
    assert (len(got.body), got.is_cut) == (100_000, True)


async def test_a_server_that_drips_is_left(server: Any) -> None:
    url, http, _ = server([b"HTTP/1.1 200 OK\r\n\r\n", *[b"x", b""] * 50])
    async with http:
        with pytest.raises(ToolFailed, match=r"within 0\.5 seconds"):
            await fetch(http, url, total_s=0.5)
