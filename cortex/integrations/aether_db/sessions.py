"""The few connections of one database: lent for one statement, each in a READ ONLY transaction with limits of its own.

What ends otherwise than well is stopped at the server too, by a second connection, and never lent again.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from cortex.base import scan
from cortex.base.clock import ticks_s
from cortex.base.errors import ServiceDown, ToolFailed
from cortex.integrations.aether_db.grants import beyond_reading
from cortex.integrations.aether_db.open_names import Access

if TYPE_CHECKING:  # the driver is loaded with the first statement
    from cortex.integrations.aether_db.wire import Wire

CONNECTIONS = 3
IDLE_S = 60.0
STOP_S = 3.0
SLACK_S = 2.0  # beyond the server's own limit, before it counts as hanging
# The guard reads statements by these rules, so they hold here whatever the server's own are.
SETTINGS = "SET SESSION sql_mode = '', sql_select_limit = {rows}, lock_wait_timeout = 3, group_concat_max_len = 100000"
LIMIT_OF = {True: "max_statement_time = {seconds:.3f}", False: "max_execution_time = {milliseconds:.0f}"}

log = logging.getLogger(__name__)


class Sessions:
    """Lends connections. One event loop; `close` when the database is no longer used."""

    def __init__(self, access: Access) -> None:
        """Nothing is opened yet."""
        self.access = access
        self._room = asyncio.Semaphore(CONNECTIONS)
        self._idle: list[tuple[float, Wire]] = []
        self._is_closed = False

    @asynccontextmanager
    async def lent(self) -> AsyncIterator["Wire"]:
        """A connection in a fresh READ ONLY transaction; ToolFailed, in words, for all that a driver raises inside.

        The block has the statement's time and a little more, then it is ended, and the statement stopped.
        """
        words = await asyncio.to_thread(scan.load, "cortex.integrations.aether_db.server_words")
        limits = self.access.limits
        try:
            async with asyncio.timeout(limits.statement_s + limits.connect_s):
                await self._room.acquire()
        except TimeoutError as error:
            raise ToolFailed(f"The database at {self.access.place} is busy with other questions: try again.") from error
        try:
            async with self._connected() as wire, asyncio.timeout(limits.statement_s + SLACK_S):
                yield wire
        except words.DRIVER_ERRORS as error:
            raise words.failure(error, self.access) from error
        finally:
            self._room.release()

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator["Wire"]:
        async with AsyncExitStack() as failing:
            wire = await self._ready()
            failing.push_async_callback(self.stop, wire)
            yield wire
            if wire.closed:  # enough was read
                return
            async with asyncio.timeout(SLACK_S):
                await wire.do("ROLLBACK")
            failing.pop_all()
            self._take_back(wire)

    def _take_back(self, wire: "Wire") -> None:
        """Keep it for the next statement; nobody would ever close it after `close`, so then it ends here."""
        if self._is_closed:
            wire.close()
        else:
            self._idle.append((ticks_s(), wire))

    async def _ready(self) -> "Wire":
        """An idle connection that still answers, or a new one, with its limits set and its transaction begun."""
        words = scan.load("cortex.integrations.aether_db.server_words")
        while self._idle:
            since_s, wire = self._idle.pop()
            if wire.closed or ticks_s() - since_s > IDLE_S:
                wire.close()
                continue
            try:
                return await self._begun(wire)
            except words.DRIVER_ERRORS as error:
                wire.close()
                if not words.is_lost(error):
                    raise
        opening = await asyncio.to_thread(scan.load, "cortex.integrations.aether_db.wire")
        new: Wire = await opening.opened(self.access)
        with ExitStack() as failing:
            failing.callback(new.close)
            await self._check_account(new)
            await self._begun(new)
            failing.pop_all()
        return new

    async def _begun(self, wire: "Wire") -> "Wire":
        limits = self.access.limits
        limit = LIMIT_OF[wire.is_mariadb].format(seconds=limits.statement_s, milliseconds=limits.statement_s * 1_000)
        with ExitStack() as failing:
            failing.callback(wire.close)
            async with asyncio.timeout(limits.connect_s):
                await wire.do(f"{SETTINGS.format(rows=limits.rows + 1)}, {limit}")
                await wire.do("SET SESSION TRANSACTION READ ONLY")
                await wire.do("START TRANSACTION READ ONLY")
            failing.pop_all()
        return wire

    async def _check_account(self, wire: "Wire") -> None:
        if self.access.is_trusted:
            return
        async with asyncio.timeout(self.access.limits.connect_s):
            extra = beyond_reading([str(row[0]) for row in await wire.do("SHOW GRANTS")])
        if extra:
            raise ServiceDown(
                f"The account {self.access.user!r} of the database at {self.access.place} may do more than read "
                f"({extra}), so it is not used: give it SELECT and SHOW VIEW alone, or allow it on its card."
            )

    async def stop(self, wire: "Wire") -> None:
        """Let go of a connection, and have the server stop what it may still do for it."""
        number, is_closed = wire.thread_id(), wire.closed
        wire.close()
        if not number or (is_closed and not wire.was_cancelled):
            return
        opening = scan.load("cortex.integrations.aether_db.wire")
        words = scan.load("cortex.integrations.aether_db.server_words")
        try:
            async with asyncio.timeout(STOP_S):
                second = await opening.opened(self.access)
                try:
                    await second.do(f"KILL QUERY {number}")
                finally:
                    second.close()
        except (*words.DRIVER_ERRORS, ToolFailed) as error:
            log.info(
                "database at %s: a statement could not be stopped, its limit ends it: %s", self.access.place, error
            )

    def close(self) -> None:
        """Close what is idle now; what is still lent is closed when it comes back."""
        self._is_closed = True
        while self._idle:
            self._idle.pop()[1].close()
