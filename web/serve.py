"""`cortex serve`: one lock, one opened house, uvicorn in this process, and a graceful end.

Loaded on use by `web/__main__.py`, so that the other commands start without a web framework.
"""

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager, nullcontext, suppress
from functools import partial

import uvicorn
from fastapi import FastAPI

from cortex.app import Cortex
from cortex.base import lazy, scan, versions
from cortex.base.background import background_tasks
from cortex.base.errors import ConfigError
from cortex.base.serve_lock import serving
from cortex.base.server_settings import refusal
from cortex.base.settings import Settings, unknown_variables
from cortex.base.start import settings_in_force
from cortex.services.backup import restore
from cortex.services.health.restarts import Restarts
from web.app import create_app
from web.connections import SEND_BUFFER_BYTES, Connection, Connections
from web.render import Renderer
from web.signals import ProcessSignals, cancelled_by

log = logging.getLogger(__name__)

Opened = Callable[[Settings], AbstractAsyncContextManager[Cortex]]

OPEN_REQUESTS_GRACE_S = 3
PAGES_AFTER_S = 8.0  # behind the tools, which are made ready first: the start belongs to the people
FIRST_USED = ("anyio._backends._asyncio",)  # by Starlette, as it calls a handler
TICK_S = 1.0  # how often the date in the headers is set
BACKLOG = 256
ACCEPTED_AT_ONCE = 16  # in one round of the loop, before any of them is counted


class Server(uvicorn.Server):
    """Uvicorn that tells the streams to end, and leaves the rest of the shutdown to whoever opened the server."""

    def __init__(
        self,
        config: uvicorn.Config,
        app: FastAPI,
        connections: Connections,
        on_ready: Callable[[], None],
        on_end: Callable[[], None],
    ) -> None:
        """`on_ready` is called once it accepts connections, `on_end` when it has to close those that stay open."""
        super().__init__(config)
        self._app = app
        self._connections = connections
        self._on_ready = on_ready
        self._on_end = on_end

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept, then say so."""
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(BACKLOG)  # asyncio made the queue as short as what it accepts at once
        gc.freeze()  # what start-up made is no garbage: not looked through again
        gc.enable()
        self._on_ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing: they are heard before the server is there and after it has ended (`web/signals.py`)."""
        yield

    async def main_loop(self) -> None:
        """Until `end`. Uvicorn's own looks ten times a second, which was a tenth of what an idle server costs."""
        closing: asyncio.Event = self._app.state.closing
        while not await self.on_tick(0):
            self._connections.close_overdue()
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    await closing.wait()

    def end(self, *, is_forced: bool = False) -> None:
        """Stop accepting and let streams finish. is_forced: wait for no open request."""
        self.force_exit = self.force_exit or is_forced
        self.should_exit = True
        self._app.state.closing.set()
        self._on_end()


def main() -> None:
    """Serve by the settings in force."""
    run(settings_in_force(is_serving=True))


def run(settings: Settings) -> None:
    """Serve until a signal comes. Raises ConfigError when it must not or cannot start."""
    for line in unknown_variables(os.environ):
        log.warning(line)
    signals = ProcessSignals()
    with signals.heard(), only_one(settings):
        if signals.run(cancelled_by(signals, restore.finish(settings))):
            settings = settings_in_force()  # another key came with it
        signals.run(cancelled_by(signals, Cortex.catch_up(settings)))
        is_asked = signals.run(serve(settings, signals=signals))
    # An admin asked for it, or the set-up page for a start on the home that was restored; whoever ends it has the say.
    if not signals.ends and (is_asked or restore.is_pending(settings.home)):
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, "-m", "web", "serve"])  # noqa: S606 - ourselves, without a shell


def main_shared() -> None:
    """`cortex web`: the same page by the settings in force, in one of several processes; workers run the turns."""
    settings = settings_in_force()
    for line in unknown_variables(os.environ):
        log.warning(line)
    signals = ProcessSignals()
    with signals.heard():
        signals.run(cancelled_by(signals, Cortex.catch_up(settings)))
        signals.run(serve(settings, Cortex.web, signals=signals, can_restart=False))  # others that serve it would go on


async def serve(
    settings: Settings, opened: Opened = Cortex.open, *, signals: ProcessSignals, can_restart: bool = True
) -> bool:
    """Open the server, listen, print where and how to set up, serve, close; whether it shall begin anew."""
    async with AsyncExitStack() as stack:
        cortex = await cancelled_by(signals, stack.enter_async_context(opened(settings)))
        stack.enter_context(signals.obeying(signal.SIGUSR1, cortex.stop_all.pull))
        if can_restart:
            stack.enter_context(signals.obeying(signal.SIGUSR2, cortex.restarts.order))
        try:
            await _serve(cortex.settings, cortex, signals, can_restart=can_restart)
        except ConfigError as error:
            if not (can_restart and await cortex.server_settings.take_back(None, error.message)):
                raise
            log.warning("cannot start with the settings on trial, beginning anew without them: %s", error.message)
            return True
        log.info("shutting down: waiting for running turns to reach a safe point")
    return cortex.restarts.is_asked


async def _serve(settings: Settings, cortex: Cortex, signals: ProcessSignals, *, can_restart: bool) -> None:
    has_account = await cortex.accounts.has_users()
    why_not = refusal(settings, has_account=has_account)
    if why_not:
        raise ConfigError(why_not)
    listening = listen(settings)
    token = "" if has_account else await cortex.accounts.setup_link()
    app = create_app(cortex)
    connections = Connections(app, settings=settings)
    app.state.connections = connections
    server = Server(
        configured(connections),
        app,
        connections,
        on_ready=lambda: _on_ready(settings, listening, token),
        on_end=cortex.streams.end_all_streams,
    )
    app.state.end = server.end
    looks = [partial(_load_pages, app.state.pages)] if has_account else []
    looks += [partial(_end_when_due, cortex.restarts, server)] if can_restart else []
    with listening, signals.ending(lambda: server.end(is_forced=signals.ends > 1)):
        async with background_tasks(*looks):
            await server.serve(sockets=[listening])


async def _load_pages(pages: Renderer) -> None:
    await asyncio.sleep(PAGES_AFTER_S)
    await asyncio.to_thread(_load_chat)
    await pages.aside(pages.load_ahead)


def _load_chat() -> None:
    """Import what the first page of anybody needs, which would hold the event loop if that page had to import it."""
    scan.load("web.pages.chat")
    lazy.load_ahead(*FIRST_USED)


async def _end_when_due(restarts: Restarts, server: Server) -> None:
    await restarts.until_due()
    server.end()


def configured(connections: Connections) -> uvicorn.Config:
    """Uvicorn's options: no access log."""
    return uvicorn.Config(
        connections,
        http=Connection,
        backlog=ACCEPTED_AT_ONCE,
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # `Connections` believes them, by the settings as they are then
        timeout_graceful_shutdown=OPEN_REQUESTS_GRACE_S,
    )


def listen(settings: Settings) -> socket.socket:
    """A bound socket; ConfigError when the address or port is not to be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listening = socket.create_server((settings.host, settings.port), family=family, backlog=BACKLOG)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)  # of each connection
        return listening
    except OSError as error:
        raise ConfigError(
            f"CORTEX_PORT: cannot listen on {settings.host}:{settings.port}: {os.strerror(error.errno or 0)}. "
            "End what uses it, or choose another port."
        ) from error


def _on_ready(settings: Settings, listening: socket.socket, token: str) -> None:
    versions.kept(settings.home)
    announce(settings, listening, token)


def announce(settings: Settings, listening: socket.socket, token: str) -> None:
    """Say on standard output where the page is and, before the first account, how to set up."""
    place = settings.public_url or f"http://{settings.page_host}:{listening.getsockname()[1]}"
    lines = [f"Cortex is at {place}"]
    if token:
        lines.append(f"Set up, within 15 minutes: {place}/setup#{token}")
    if settings.allow_plain_http and not settings.is_loopback:
        lines.append("Warning: plain http on a network. Whoever can listen there can read passwords.")
    if settings.allow_second_process:
        lines.append(
            "Warning: CORTEX_ALLOW_SECOND_PROCESS is for tests and commands. Nothing keeps a second daemon off HOME."
        )
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


@contextmanager
def only_one(settings: Settings) -> Iterator[None]:
    """Hold the lock of HOME while serving; ConfigError when another process has it."""
    with nullcontext() if settings.allow_second_process else serving(settings.home):
        yield
