"""A client of the application itself, without a network: it says what it likes about its body, and sees how much of it
was read. And what the event loop's thread paid for the answer.
"""

import asyncio
import gc
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fastapi import FastAPI

PIECE_BYTES = 65_536  # in which a server hands a body on
FORM = (b"content-type", b"application/x-www-form-urlencoded")
PARTS = (b"content-type", b"multipart/form-data; boundary=b")
JSON = (b"content-type", b"application/json")
NO_KIND = (b"x-none", b"")
SAME_SITE = (b"sec-fetch-site", b"same-origin")


@dataclass(slots=True)
class Sender:
    """What the last request was answered, and how often its body was asked for."""

    app: FastAPI
    asks: int = 0
    status: int = 0
    text: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    async def send(
        self, method: str, path: str, *headers: tuple[bytes, bytes], body: bytes = b"", length: int = 0
    ) -> "Sender":
        """Send one request. length: what it says that its body has, where the rest of that never comes."""
        self.asks = self.status = 0
        self.text, self.headers = b"", {}
        said = str(length or len(body)).encode()
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "scheme": "http",
            "query_string": b"",
            "headers": [(b"host", b"localhost"), (b"content-length", said), SAME_SITE, *headers],
            "client": ("127.0.0.1", 1),
            "server": ("localhost", 80),
        }
        pieces = [body[at : at + PIECE_BYTES] for at in range(0, len(body), PIECE_BYTES)] or [b""]

        async def receive() -> dict[str, object]:
            self.asks += 1
            if not pieces:
                return {"type": "http.disconnect"}
            piece = pieces.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(pieces) or bool(length)}

        async def answer(message: dict[str, object]) -> None:
            if message["type"] == "http.response.start":
                self.status = int(str(message["status"]))
                pairs = message["headers"]
                assert isinstance(pairs, list)
                self.headers = {name.decode(): value.decode() for name, value in pairs}
            else:
                piece = message.get("body", b"")
                assert isinstance(piece, bytes)
                self.text += piece

        await asyncio.sleep(0)  # what comes is a callback of its own, so that `costs` sees it whole
        await self.app(scope, receive, answer)  # type: ignore[arg-type]  # plain dicts
        return self

    @property
    def is_in_words(self) -> bool:
        """Whether it was a page, a way on, or a refusal with a sentence."""
        return self.status < 400 or (self.status < 500 and len(self.text) > 10) or "hx-redirect" in self.headers


@dataclass(slots=True)
class Cost:
    """The longest callback, in seconds of processor of the loop's thread; and what memory grew by at the most."""

    held_s: float = 0.0
    grown_mb: float = 0.0


@contextmanager
def costs() -> Iterator[Cost]:
    """What it takes. There is no public way to hear of each callback; `Handle._run` is where they are."""
    cost, run, thread = Cost(), asyncio.Handle._run, threading.get_ident()

    def measured(handle: asyncio.Handle) -> None:
        if threading.get_ident() != thread:  # a loop of another thread
            return run(handle)
        begun_s = time.thread_time()
        run(handle)
        cost.held_s = max(cost.held_s, time.thread_time() - begun_s)
        return None

    Path("/proc/self/clear_refs").write_text("5")  # the highest mark begins anew
    before_mb = _memory_mb("VmRSS")
    setattr(asyncio.Handle, "_run", measured)  # noqa: B010 - mypy knows no method of ours there
    gc.disable()  # a look over all that other tests of this process left takes longer than anything here
    try:
        yield cost
    finally:
        gc.enable()
        setattr(asyncio.Handle, "_run", run)  # noqa: B010
        cost.grown_mb = _memory_mb("VmHWM") - before_mb


def _memory_mb(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024
