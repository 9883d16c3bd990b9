"""A page's live stream, read as it comes: httpx's ASGI transport gives an answer only when it has ended."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.patience import PATIENCE_S

App = Callable[[Any, Any, Any], Awaitable[None]]


async def streamed(app: App, browser: httpx.AsyncClient, path: str, until: str, **headers: str) -> str:
    """What the stream at `path` has brought this browser once it holds `until`; then the browser goes away."""
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
    stream = _Stream(until)
    async with asyncio.timeout(PATIENCE_S):
        await app(scope, stream.receive, stream.send)
    assert until in stream.text, stream.text
    return stream.text


class _Stream:
    """The browser's end of a connection."""

    def __init__(self, until: str) -> None:
        self.text = ""
        self._until = until
        self._is_asked = False
        self._has_seen = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        if not self._is_asked:
            self._is_asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._has_seen.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        self.text += message.get("body", b"").decode()
        if self._until in self.text:
            self._has_seen.set()
