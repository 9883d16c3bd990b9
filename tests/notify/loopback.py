"""A real web server on 127.0.0.1 that keeps what it got and answers as a test says."""

import ssl
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, Self

from cortex.notify.context import ChannelContext, Vapid
from tests.patience import PATIENCE_S
from tests.still_clock import StillClock

SITE = "https://cortex.example.org"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A request that came."""

    method: str
    path: str
    headers: Message
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer to give."""

    status: int = 201
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    is_held: bool = False  # nothing comes before the server closes


class Loopback:
    """The server; a context manager. `replies` are given one each, then what `judge` says: 201 for ever.

    A double of a real system overrides `judge`, so that it refuses what that system refuses.
    """

    def __init__(self, *replies: Reply, tls: ssl.SSLContext | None = None) -> None:
        self.replies = deque(replies)
        self.seen: list[Seen] = []
        self._closing = Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def place(self) -> tuple[str, int]:
        return "127.0.0.1", self._server.server_port

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def surroundings(self, *, vapid: Vapid | None = None, total_s: float = PATIENCE_S) -> ChannelContext:
        """What a channel needs to reach this server."""
        hosts = frozenset({self.place})
        return ChannelContext(site=SITE, hosts=hosts, vapid=vapid, total_s=total_s, clock=StillClock())

    def judge(self, seen: Seen) -> Reply:
        """The answer to this request, where no reply was given."""
        return Reply()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                seen = Seen(method=self.command, path=self.path, headers=self.headers, body=body)
                outer.seen.append(seen)
                reply = outer.replies.popleft() if outer.replies else outer.judge(seen)
                if reply.is_held:
                    outer._closing.wait()
                with suppress(OSError):  # the other side may have stopped waiting
                    self.send_response(reply.status)
                    for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(reply.body)

            def log_message(self, *_: Any) -> None:
                """Keep quiet."""

        return Handler
