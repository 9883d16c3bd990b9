"""How many connections the page holds, and how long it waits for whoever is at the other end.

`Connections` is the application that uvicorn serves, around the page's own; `Connection` is uvicorn's protocol that
tells it of each. Called by `web/serve.py`; `web/deps.py` says who is logged in.
"""

import ipaddress
import os
import resource
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import h11
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn import Config
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from cortex.base.address import network_of
from cortex.base.clock import ticks_s
from cortex.base.settings import Settings

HEAD_S = 10.0  # from the first moment, or from the answer before, until a request's head is whole
REST_S = 30.0  # after an answer ahead of the body, in which what still comes is thrown away
BODY_S = 60.0  # from the head until the body is whole; of an upload, in which nothing comes
UPLOAD_S = 3_600.0  # from the head until an upload is whole
STALLED_S = 30.0  # in which a reader takes nothing of what waits to be sent
KEPT_FILES = 96  # descriptors left for databases, model calls, tools, and for what one round of the loop accepts
MOST = 4_000  # connections, however many descriptors there are: each costs some ten kilobytes
# What is taken in at once, before a body is paused and a head is too long: asyncio's quarter of a megabyte, in chunks
# of a byte or as fifty thousand lines of a head, holds the loop for a fifth of a second.
READ_BYTES = 65_536
SEND_BUFFER_BYTES = 131_072  # of the system's for each connection; left to itself it grows to megabytes

_LATE = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_FULL = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 5\r\nconnection: close\r\n\r\n"


class Connections:
    """The open connections of this process.

    One is *unproven* until its request, whole, has shown a login, and again once that is answered. An address may hold
    some unproven ones; one more costs it the one that has been longest without a whole head. So who opens a hundred and
    says nothing loses them, and a person at the same address gets through. Behind a trusted proxy the address is the
    forwarded one, known once the head is there; until then the proxy's connections count against the total alone: a
    proxy speaks for many, and waits for its slow clients itself.
    """

    def __init__(self, app: ASGIApp, *, settings: Settings) -> None:
        """The settings are asked each time: how many unproven ones an address may hold, which proxies there are."""
        self.most = most_connections()
        self._app = app
        self._settings = settings
        self._trusted: tuple[str, ...] = ()
        self._proxies: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
        self._forwarded: ASGIApp = self._serve
        self._open: set[Connection] = set()
        self._unproven: dict[Connection, str] = {}  # with its network; first who is longest without a whole head
        self._held: Counter[str] = Counter()

    def __len__(self) -> int:
        """Return how many are open."""
        return len(self._open)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request whose head is there; the word of a trusted proxy counts for where it came from."""
        self._trust()
        await self._forwarded(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection: Connection = scope["state"]["connection"]
        self.forget(connection)
        self.doubt(connection, scope["client"])
        await self._app(scope, receive, send)

    def accept(self, connection: "Connection") -> bool:
        """Take it in; False when there is no room, not even by letting an unproven one go."""
        if len(self._open) >= self.most:
            oldest = next(iter(self._unproven), None)
            if oldest is None:
                return False
            self._drop(oldest)
        self._open.add(connection)
        self.doubt(connection, connection.client)
        return True

    def doubt(self, connection: "Connection", client: tuple[str, int] | None) -> None:
        """Count it as unproven, at this address; one too many of them there is let go."""
        address = client[0] if client else ""
        if connection not in self._open or self._is_proxy(address):
            return
        address = network_of(address)
        self._unproven[connection] = address
        self._held[address] += 1
        if self._held[address] > self._settings.connections_per_address:
            self._drop(next(one for one, held in self._unproven.items() if held == address))

    def forget(self, connection: "Connection") -> None:
        """Count it as unproven no more."""
        address = self._unproven.pop(connection, None)
        if address is not None:
            self._held[address] -= 1
            if not self._held[address]:
                del self._held[address]

    def remove(self, connection: "Connection") -> None:
        """It is closed."""
        self.forget(connection)
        self._open.discard(connection)

    def close_overdue(self) -> None:
        """Close those that keep the server waiting for too long."""
        at_s = ticks_s()
        for connection in tuple(self._open):
            connection.close_if_overdue(at_s)

    def _drop(self, connection: "Connection") -> None:
        self.remove(connection)
        connection.transport.abort()

    def _trust(self) -> None:
        """Take in the proxies, where they have changed."""
        trusted = self._settings.trusted_proxies
        if trusted != self._trusted:
            self._trusted = trusted
            self._proxies = [ipaddress.ip_network(word, strict=False) for word in trusted]
            believing = ProxyHeadersMiddleware(self._serve, trusted_hosts=list(trusted))  # type: ignore[arg-type]
            self._forwarded = cast("ASGIApp", believing) if trusted else self._serve

    def _is_proxy(self, address: str) -> bool:
        self._trust()
        if not self._proxies:
            return False
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._proxies)


class Connection(H11Protocol):
    """One connection: uvicorn's, which says what it waits for."""

    def __init__(self, config: Config, server_state: ServerState, app_state: dict[str, Any], _loop: Any = None) -> None:
        """As uvicorn makes it; each of its requests finds it in `request.state`."""
        super().__init__(config, server_state, {**app_state, "connection": self}, _loop)
        self._all = cast(Connections, config.app)  # `web/serve.py` has uvicorn serve nothing else
        self._waits_since_s = self._moved_s = self._came_s = ticks_s()
        self._unsent = 0
        self.is_upload = self.is_in_line = False

    def connection_made(self, transport: Any) -> None:
        """Taken in, or told that there is no room."""
        transport.max_size = READ_BYTES  # as asyncio's own line has it
        super().connection_made(transport)
        if not self._all.accept(self):
            transport.write(_FULL)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Counted out."""
        self._all.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Something came."""
        self._came_s = ticks_s()
        super().data_received(data)

    def handle_events(self) -> None:
        """Read what has come; a head that is whole by now begins the wait for its body."""
        had_head = self.conn.their_state is not h11.IDLE
        super().handle_events()
        if not had_head and self.conn.their_state is not h11.IDLE:
            self._waits_since_s = ticks_s()

    def on_response_complete(self) -> None:
        """The next request has to show its login again, and has its own time."""
        self._all.forget(self)
        self._all.doubt(self, self.client)
        self._waits_since_s = ticks_s()
        self.is_upload = False
        super().on_response_complete()

    def begin_anew(self) -> None:
        """Its body is read from now on."""
        self._waits_since_s = self._came_s = ticks_s()

    def prove(self) -> None:
        """Its request is a person's who is logged in."""
        self._all.forget(self)

    def close_if_overdue(self, at_s: float) -> None:
        """Close it if head or body do not come, or if nothing is read of what waits to be sent."""
        unsent = self.transport.get_write_buffer_size()
        if not unsent or unsent < self._unsent:
            self._moved_s = at_s
        self._unsent = unsent
        if at_s - self._moved_s > STALLED_S:
            self.transport.abort()
        elif not self.transport.is_closing() and at_s - self._waits_since_s > self._patience_s():
            if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                self.transport.write(_LATE)
            self.transport.close()

    def _patience_s(self) -> float:
        state = self.conn.their_state
        if self.is_in_line:
            return float("inf")  # it waits for us
        if state is h11.SEND_BODY and self.conn.our_state is h11.DONE:
            return REST_S
        if state is h11.SEND_BODY and self.is_upload:  # a slow phone is not cut off while something comes
            return min(UPLOAD_S, BODY_S + self._came_s - self._waits_since_s)
        return HEAD_S if state is h11.IDLE else BODY_S if state is h11.SEND_BODY else float("inf")


def prove(request: Request) -> None:
    """Say that this request's login is valid; tests without a server have no connection."""
    connection: Connection | None = getattr(request.state, "connection", None)
    if connection is not None:
        connection.prove()


def bear(request: Request) -> None:
    """Let this request's body take its time: it brings files, of somebody who is logged in."""
    connection: Connection | None = getattr(request.state, "connection", None)
    if connection is not None:
        connection.is_upload = True


@contextmanager
def in_line(request: Request) -> Iterator[None]:
    """Inside, the request waits for its turn here, and its body for being read: nobody is late."""
    connection: Connection | None = getattr(request.state, "connection", None)
    if connection is None:
        yield
        return
    connection.is_in_line = True
    try:
        yield
    finally:
        connection.is_in_line = False
        connection.begin_anew()


def most_connections() -> int:
    """Return what the descriptors that this process may still open leave for connections, at least 8."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST
    return max(8, min(MOST, soft - len(os.listdir("/dev/fd")) - KEPT_FILES))
