"""A mail server for one person, asked without holding up the event loop: each connection waits in a thread of its own.

A call that takes too long cuts the line, so that its thread ends as well.
"""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from cortex.base.dial import Resolver, resolve, unknown_host, vetted
from cortex.base.errors import NotAllowed, ServiceDown, UserError
from cortex.base.trust import certificates
from cortex.integrations.mail.imap import Imap
from cortex.integrations.mail.line import Cord
from cortex.integrations.mail.server import MailServer

V = TypeVar("V")
OPEN_S = 40.0
CALL_S = 60.0
LONG_S = 300.0  # of a mail with what is attached, and of a search in texts
AT_ONCE = 8  # connections that are worked on at once, of everybody


class MailConnection:
    """A connection that is logged in. One call at a time; errors are those of `Imap`."""

    def __init__(self, imap: Imap, thread: ThreadPoolExecutor, host: str) -> None:
        """Keep what was opened."""
        self.imap, self._thread, self._host = imap, thread, host

    async def do(self, work: Callable[..., V], *given: Any, within_s: float = CALL_S) -> V:
        """Return what `work` gives, which runs in the connection's thread, with the connection and what is given."""
        waiting = asyncio.get_running_loop().run_in_executor(self._thread, work, self.imap, *given)
        try:
            async with asyncio.timeout(within_s):
                return await asyncio.shield(waiting)
        except (TimeoutError, asyncio.CancelledError) as error:
            self.imap.abort()
            waiting.add_done_callback(_heard)
            if isinstance(error, TimeoutError):
                raise ServiceDown(f"{self._host} did not answer in time.") from None
            raise

    async def news(self, within_s: float) -> bool:
        """Wait for the server to say that something came into the open folder; its thread has nothing to do meanwhile.

        False where nothing did in this time; ServiceDown, EOFError where the line ended; ToolFailed where it does not
        let us wait. A cancel cuts the line: what does not answer would hold it up.
        """
        until = asyncio.get_running_loop().time() + within_s
        try:
            came = await self.do(Imap.wait)
            while not came and not (came := await self.do(Imap.news)):  # first what came with its yes
                async with asyncio.timeout_at(until):
                    await _readable(self.imap)
        except TimeoutError:
            came = False
        except asyncio.CancelledError:
            self.imap.abort()
            raise
        await self.do(Imap.stop_waiting)
        return came

    async def close(self) -> None:
        """Leave."""
        asyncio.get_running_loop().run_in_executor(self._thread, self.imap.close).add_done_callback(_heard)
        self._thread.shutdown(wait=False)


class MailDoor:
    """Opens connections. `context`: what TLS trusts, where that is not what this machine does."""

    def __init__(self, context: ssl.SSLContext | None = None, resolver: Resolver = resolve) -> None:
        """Open nothing yet."""
        self._context, self._resolver = context, resolver
        self._room = asyncio.Semaphore(AT_ONCE)

    @property
    def room(self) -> asyncio.Semaphore:
        """Return what whoever works on a connection holds meanwhile."""
        return self._room

    async def open(self, server: MailServer) -> MailConnection:
        """Dial and log in. UserError for a key that is not taken; ServiceDown, NotAllowed, in words."""
        try:
            addresses = await vetted(server.host, server.port, server.policy, self._resolver)
        except TimeoutError:
            raise ServiceDown(f"{server.host} could not be looked up in time.") from None
        except OSError:
            words = unknown_host(f"{server.host} could not be looked up")
            raise UserError(words or f"{server.host} could not be looked up.", field="host") from None
        except NotAllowed as error:
            text = f"{error.message} An admin can name it among the mail servers in the network."
            raise UserError(text, field="host") from None
        thread, cord = ThreadPoolExecutor(1, thread_name_prefix="mail"), Cord()
        opening = asyncio.get_running_loop().run_in_executor(thread, self._opened, server, addresses, cord)
        try:
            async with asyncio.timeout(OPEN_S):
                return MailConnection(await asyncio.shield(opening), thread, server.host)
        except (TimeoutError, asyncio.CancelledError) as error:
            cord.cut()  # whatever it waits for, its thread ends now
            opening.add_done_callback(_closed)
            if isinstance(error, TimeoutError):
                raise ServiceDown(f"{server.host} did not answer in time.") from None
            raise
        finally:
            if not opening.done() or opening.exception() is not None:
                thread.shutdown(wait=False)

    def _opened(self, server: MailServer, addresses: Sequence[str], cord: Cord) -> Imap:
        return Imap(server, addresses, self._context or certificates(), cord)


async def _readable(imap: Imap) -> None:
    """Wait until the connection has something to be read."""
    loop, handle = asyncio.get_running_loop(), imap.handle
    came = asyncio.Event()
    loop.add_reader(handle, came.set)
    try:
        await came.wait()
    finally:
        loop.remove_reader(handle)


def _heard(ended: "asyncio.Future[V]") -> None:
    """Take notice of how it ended, which nobody waits for any more."""
    if not ended.cancelled():
        ended.exception()


def _closed(opening: "asyncio.Future[Imap]") -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
