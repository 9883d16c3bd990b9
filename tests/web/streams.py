"""A page's live stream, read as it comes: httpx's ASGI transport gives an answer only when it has ended."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.patience import PATIENCE_S

App = Callable[[Any, Any, Any], Awaitable[None]]


class Stream:
    """The browser's end of a connection. `text`: what has come so far."""

    def __init__(self) -> None:
        self.text = ""
        self._asked = [{"type": "http.request", "body": b"", "more_body": False}]
        self._comes = asyncio.Condition()
        self._is_left = asyncio.Event()
        self.is_closed = asyncio.Event()

    async def until(self, words: str, after: int = 0) -> str:
        """What has come after the first so many characters, once it holds these words."""
        async with asyncio.timeout(PATIENCE_S), self._comes:
            await self._comes.wait_for(lambda: words in self.text[after:])
        return self.text[after:]

    def leave(self) -> None:
        """Close the page."""
        self._is_left.set()

    async def receive(self) -> dict[str, Any]:
        """What the server hears."""
        if self._asked:
            return self._asked.pop()
        await self._is_left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """What the server says."""
        async with self._comes:
            self.text += message.get("body", b"").decode()
            self._comes.notify_all()


@asynccontextmanager
async def following(app: App, browser: httpx.AsyncClient, path: str, **headers: str) -> AsyncIterator[Stream]:
    """The stream at `path`, open for this browser during the block."""
    request = browser.build_request("GET", path, headers=headers)
    address = urlsplit(str(request.url))
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": address.scheme,
        "path": address.path,
        "raw_path": address.path.encode(),
        "query_string": address.query.encode(),
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw if name.lower() != b"accept-encoding"],
        "client": ("127.0.0.1", 1),
        "server": ("localhost", 80),
    }
    stream = Stream()
    async with asyncio.TaskGroup() as group:
        group.create_task(_answered(app, scope, stream))
        yield stream
        stream.leave()


async def _answered(app: App, scope: dict[str, Any], stream: Stream) -> None:
    await app(scope, stream.receive, stream.send)
    stream.is_closed.set()


async def streamed(app: App, browser: httpx.AsyncClient, path: str, until: str, **headers: str) -> str:
    """What the stream at `path` has brought this browser once it holds `until`; then the browser goes away."""
    async with following(app, browser, path, **headers) as stream:
        return await stream.until(until)
