"""Stays connected to one Home Assistant from the first use on, and connects again by itself whenever it was away.

Knows nothing of entities: `serve` (the index) prepares each new connection and lives as long as that. Made by compose.
"""

import asyncio
import contextlib
import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from cortex.base.background import background_tasks
from cortex.base.clock import ticks_s
from cortex.base.errors import ToolFailed
from cortex.integrations.home_assistant.server import HomeRefusal, HomeServer, HomeTrouble, unanswered
from cortex.integrations.home_assistant.socket import HomeSocket

READY_S = 10.0  # how long a caller waits for a connection
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
REFUSED_PAUSE_S = 900.0  # Home Assistant notes each wrong token, and may ban the address that sends them
STEADY_S = 60.0
AGAIN_S = 2.0  # callers make it try again at once, but not more often than this

Serve = Callable[[HomeSocket, Callable[[], None]], Awaitable[None]]


class HomeClient:
    """A connection that is kept. Enter `running` where it is owned; nothing is opened before the first `socket`."""

    def __init__(self, server: HomeServer, serve: Serve) -> None:
        """serve: called with each new connection and with what it calls when callers may use it; never returns."""
        self.server = server
        self._serve = serve
        self._context: ssl.SSLContext | None = None
        self._wanted = asyncio.Event()
        self._hurry = asyncio.Event()
        self._news = asyncio.Event()
        self._socket: HomeSocket | None = None
        self._trouble: HomeTrouble | None = None
        self._failed_at_s = 0.0
        self._fails = 0
        self.attempts = 0

    @property
    def is_connected(self) -> bool:
        """Tell whether it can be used at this moment."""
        return self._socket is not None

    @property
    def is_away(self) -> bool:
        """Tell whether the last try to connect failed. Once wanted, it is tried again without being asked."""
        return self._socket is None and self._trouble is not None

    @asynccontextmanager
    async def running(self) -> AsyncIterator["HomeClient"]:
        """Keep it connected, once somebody wants it, until the block ends."""
        async with background_tasks(self._run):
            yield self

    async def socket(self) -> HomeSocket:
        """The connection, prepared. HomeTrouble within READY_S: why there is none."""
        if self._socket is not None:
            return self._socket
        self._wanted.set()
        known = self._trouble
        is_fresh = ticks_s() - self._failed_at_s < AGAIN_S
        if known is not None and (known.kind == "refused" or (is_fresh and known.kind != "lost")):
            raise known.again()
        fails = self._fails
        self._hurry.set()
        try:
            async with asyncio.timeout(READY_S):
                while self._socket is None and self._fails == fails:
                    await self._news.wait()
        except TimeoutError as error:
            raise unanswered(READY_S) from error
        if self._socket is None:
            raise self._trouble.again() if self._trouble is not None else unanswered(READY_S)
        return self._socket

    async def _run(self) -> None:
        """Connect, serve, and after each failure pause: longer each time, for very long where the token is refused."""
        pause_s = FIRST_PAUSE_S
        while True:
            await self._wanted.wait()
            began_s = ticks_s()
            try:
                trouble = await self._live()
            except OSError as error:  # no descriptors left, or no trusted certificates
                trouble = HomeTrouble("away", f"This machine could not connect: {error.strerror or 'no reason given'}.")
            if ticks_s() - began_s > STEADY_S:
                pause_s = FIRST_PAUSE_S
            self._failed(trouble)
            if trouble.kind == "refused":
                await asyncio.sleep(REFUSED_PAUSE_S)
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s * random.uniform(0.5, 1.0)):  # noqa: S311 - spreads retries
                    await self._hurry.wait()
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    async def _live(self) -> HomeTrouble:
        """One connection from its opening to its end; why it ended."""
        self.attempts += 1
        self._hurry.clear()
        if self.server.is_tls and self._context is None:
            self._context = await asyncio.to_thread(self.server.context)
        try:
            socket = await HomeSocket.enter(self.server, self._context)
        except HomeTrouble as trouble:
            return trouble
        troubles = [HomeTrouble("lost", "The connection to Home Assistant ended.")]
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(socket.read())
                await self._serve(socket, lambda: self._ready(socket))
        except* ToolFailed as failures:
            troubles.append(_first(failures))
        finally:
            self._socket = None
            await socket.close()
        return troubles[-1]

    def _ready(self, socket: HomeSocket) -> None:
        self._socket, self._trouble = socket, None
        self._tell()

    def _failed(self, trouble: HomeTrouble) -> None:
        self._trouble, self._failed_at_s = trouble, ticks_s()
        self._fails += 1
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


def _first(failures: BaseExceptionGroup[ToolFailed]) -> HomeTrouble:
    """Return what to say of a connection that failed in several places at once."""
    leaves = _leaves(failures)
    for one in leaves:
        if isinstance(one, HomeTrouble):
            return one
    refusal = next((one for one in leaves if isinstance(one, HomeRefusal)), None)
    if refusal is not None and refusal.code in ("unknown_command", "unauthorized"):
        words = "Home Assistant does not offer what Cortex needs of it: it must be 2022.4 or newer"
        return HomeTrouble("not_it", f"{words}, with its websocket and config integrations on.")
    return HomeTrouble("not_it", "Home Assistant did not send its devices. Restart it and try again.")


def _leaves(group: BaseExceptionGroup[ToolFailed]) -> list[BaseException]:
    return [
        leaf
        for each in group.exceptions
        for leaf in (_leaves(each) if isinstance(each, BaseExceptionGroup) else [each])
    ]
