"""The line between the processes of one installation: LISTEN and NOTIFY on one channel, texts under 8,000 bytes.

Nothing is stored: what is sent while nobody listens is gone, and whoever uses it has a second way to learn of it
(`engine/relay.py`). Loaded on use, for it needs the PostgreSQL driver.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import LiteralString

import psycopg
from sqlalchemy import make_url

from cortex.base.postgresql import TimedAsyncConnection

CHANNEL = "cortex"
BATCH = 64  # texts sent in one transaction
WAITING_MAX = 2_000  # while the line is down; the oldest go first
AGAIN_AFTER_S = 1.0
LAST_WORDS_S = 1.0

_TELL: LiteralString = "SELECT pg_notify(%s, told) FROM unnest(%s::text[]) AS told"

log = logging.getLogger(__name__)


class NotifyConnection:
    """Two connections, one that listens and one that sends; both reconnect by themselves."""

    def __init__(self, url: str, on_heard: Callable[[str], None], on_listening: Callable[[], None]) -> None:
        """`on_heard` gets every text sent on the channel, our own included, in the event loop's thread.

        `on_listening`: from now on they are heard; what was sent before may have been lost.
        """
        self._address = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._on_heard = on_heard
        self._on_listening = on_listening
        self._waiting: deque[str] = deque(maxlen=WAITING_MAX)
        self._has_some = asyncio.Event()
        self._is_empty = asyncio.Event()
        self._is_empty.set()
        self.is_listening = asyncio.Event()

    def broadcast(self, text: str) -> None:
        """Send it soon, after what was sent before."""
        self._waiting.append(text)
        self._is_empty.clear()
        self._has_some.set()

    async def flushed(self) -> None:
        """Wait until everything is sent, for a moment at most: an end must not hang on a dead line."""
        try:
            async with asyncio.timeout(LAST_WORDS_S):
                await self._is_empty.wait()
        except TimeoutError:
            pass

    async def listen(self) -> None:
        """Until cancelled: hand on what is heard."""
        while True:
            try:
                async with await self._connected() as connection:
                    await connection.execute(f"LISTEN {CHANNEL}")
                    self.is_listening.set()
                    self._on_listening()
                    async for note in connection.notifies():
                        self._on_heard(note.payload)
            except psycopg.Error as error:
                log.warning("relay: connection to the other processes lost, reconnecting: %s", error)
            self.is_listening.clear()
            await asyncio.sleep(AGAIN_AFTER_S)

    async def speak(self) -> None:
        """Until cancelled: send what waits."""
        while True:
            try:
                async with await self._connected() as connection:
                    while True:
                        await self._has_some.wait()
                        # Taken before it is sent: what a broken line loses here, the looks of `relay.py` find.
                        batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
                        await connection.execute(_TELL, (CHANNEL, batch))
                        if not self._waiting:
                            self._has_some.clear()
                            self._is_empty.set()
            except psycopg.Error as error:
                log.warning("relay: cannot notify the other processes: %s", error)
            await asyncio.sleep(AGAIN_AFTER_S)

    async def _connected(self) -> TimedAsyncConnection:
        return await TimedAsyncConnection.connect(
            self._address,
            autocommit=True,
            connect_timeout=10,
            application_name="cortex-wire",
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
        )
