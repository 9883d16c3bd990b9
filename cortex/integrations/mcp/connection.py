"""A connection to an MCP server: opened at the first need, closed when nobody uses it, opened again after a failure.

A task of its own holds it, since the package's scopes must be left where they were entered. After a failure the next
try waits, longer each time; a session that the server no longer knows is replaced at once. The package's own check of
results is passed by: it would run regular expressions of the server's on the event loop.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import anyio
import mcp_types as types
from mcp.client.client import Client
from mcp.client.session import ClientSession
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, UNSUPPORTED_PROTOCOL_VERSION
from msgspec import Struct, field

from cortex.base.clock import ticks_s
from cortex.base.errors import CortexError, ServiceDown, ToolFailed
from cortex.base.hidden import show_hidden
from cortex.integrations.mcp.listed import Listed, ToolPages
from cortex.integrations.mcp.pipes import ENDED
from cortex.integrations.mcp.refusals import BROKEN, GONE, REFUSED, UNCLEAR, UNREACHED, ServerFailed
from cortex.integrations.mcp.results import McpResult, answer_of, resource_of

CONNECT_S = 45.0
IDLE_S = 600.0
RELIST_S = 300.0
PROBE_S = 10.0
WAITS_S = (1.0, 2.0, 5.0, 15.0, 60.0)
# What the package says itself of a request that got no answer; a server's own error can have the same code.
BROKEN_OFF = ("Connection closed", "SSE stream")
T = TypeVar("T")

log = logging.getLogger(__name__)


class McpListing(Struct, frozen=True, kw_only=True):
    """A server's offer: its tools' JSON by name, whether it has resources, what it calls itself."""

    tools: dict[str, Listed]
    has_resources: bool
    title: str


class _Held(Struct, eq=False):
    """One opened connection and who uses it. `is_left`: nobody new gets it; it ends with its last user.

    has_answered: it was good once, so that its session can be lost.
    """

    ready: "asyncio.Future[Client]"
    over: asyncio.Event = field(default_factory=asyncio.Event)
    task: "asyncio.Task[None] | None" = None
    users: int = 0
    is_left: bool = False
    has_answered: bool = False
    used_s: float = field(default_factory=ticks_s)
    listed_s: float = -RELIST_S * 2


class McpConnection:
    """`transport`: opens a pair of streams. `ended`: why they ended, in words, "" where nobody knows."""

    def __init__(
        self,
        transport: Callable[[asyncio.Event], AbstractAsyncContextManager[Any]],
        ended: Callable[[], str],
        timeout_s: float,
        connect_s: float = CONNECT_S,
    ) -> None:
        self._transport, self._ended = transport, ended
        self._timeout_s, self._connect_s = timeout_s, connect_s
        self._held: _Held | None = None
        self._living: set[_Held] = set()
        self._opening = asyncio.Lock()
        self._failures, self._again_s, self._why = 0, 0.0, ""

    async def listing(self, *, is_fresh: bool = False) -> McpListing | None:
        """Return what the server offers, where that must be looked at again: at first, when it says so, after a while.

        is_fresh: look in any case. ServiceDown, ToolFailed.
        """
        try:
            return await self._listed(is_fresh=is_fresh)
        except ServerFailed as failed:
            if not failed.is_once_more:
                raise
        return await self._listed(is_fresh=is_fresh)  # in a new session

    async def _listed(self, *, is_fresh: bool) -> McpListing | None:
        async with self._using() as held:
            if not is_fresh and ticks_s() - held.listed_s < RELIST_S:
                return None
            client = held.ready.result()
            found = await self._ask(held, _tools_of(client.session))
            held.listed_s = ticks_s()
            info, offers = client.server_info, client.server_capabilities
            title = " ".join(filter(None, ((info.title or info.name), info.version))) if info else ""
            return McpListing(tools=found, has_resources=offers.resources is not None, title=_cut(title, 120))

    async def call(self, tool: str, arguments: dict[str, Any]) -> McpResult:
        """Call a tool once. ServerFailed where the server did not answer, ToolFailed where it refuses."""
        return await asyncio.to_thread(answer_of, await self._once("tools/call", name=tool, arguments=arguments))

    async def read(self, uri: str) -> McpResult:
        """Read a resource. Fails as `call`."""
        return await asyncio.to_thread(resource_of, await self._once("resources/read", uri=uri))

    async def _once(self, method: str, **params: Any) -> dict[str, Any]:
        async with self._using() as held:
            return await self._ask(held, _raw(held.ready.result().session, method, params))

    async def close(self) -> None:
        """End the connection, and what runs behind it; also those that were given up and still wind down."""
        self._held = None
        for held in list(self._living):
            await _end(held)

    @asynccontextmanager
    async def _using(self) -> AsyncIterator[_Held]:
        held = await self._opened()
        held.users += 1
        try:
            yield held
        finally:
            held.users -= 1
            held.used_s = ticks_s()
            if held.is_left and not held.users:
                held.over.set()

    def _leave(self, held: _Held) -> None:
        """Have the next request open another one; what others have under way here goes on."""
        held.is_left = True
        if self._held is held:
            self._held = None

    async def _opened(self) -> _Held:
        async with self._opening:
            if self._held is not None and not self._held.over.is_set():
                return self._held
            wait_s = self._again_s - ticks_s()
            if wait_s > 0:
                why = f"{self._why} The next try is in {wait_s:.0f} seconds."
                raise ServerFailed(why, is_undone=True, is_once_more=False)
            held = self._held = _Held(asyncio.get_running_loop().create_future())
            held.task = asyncio.ensure_future(self._hold(held))  # noqa: TID251 - `_end` ends it, `_let_go` tells
            self._living.add(held)
            held.task.add_done_callback(partial(self._let_go, held))
            try:
                async with asyncio.timeout(self._connect_s):
                    await asyncio.shield(held.ready)
            except TimeoutError:
                await _end(held)
                self._failed(f"it did not answer within {self._connect_s:.0f} seconds of being started.")
            except CortexError as error:
                self._failed(error.message)
            except asyncio.CancelledError:
                await _end(held)
                raise
            return held

    def _failed(self, why: str) -> None:
        self._again_s = ticks_s() + WAITS_S[min(self._failures, len(WAITS_S) - 1)]
        self._failures += 1
        self._why = f"The MCP server could not be reached: {why.rstrip('.')}."
        raise ServerFailed(self._why, is_undone=True, is_once_more=False)

    async def _hold(self, held: _Held) -> None:
        """Keep it open until it ends, is ended, or nobody has used it for a while."""
        try:
            async with Client(
                self._transport(held.over),
                message_handler=_hearing(held),
                client_info=types.Implementation(name="cortex", version="1"),
                cache=None,
            ) as client:
                held.ready.set_result(client)
                while not held.over.is_set() and (held.users or ticks_s() - held.used_s < IDLE_S):
                    await _event_within(held.over, IDLE_S / 4)
        finally:
            held.over.set()

    def _let_go(self, held: _Held, task: "asyncio.Task[None]") -> None:
        """Whoever waits for the connection hears why there is none."""
        self._living.discard(held)
        error = None if task.cancelled() else task.exception()
        if error is not None and held.ready.done():
            log.info("an MCP server's connection ended: %s", self._words(error))
        if not held.ready.done():
            held.ready.set_exception(ServiceDown(self._words(error) if error else "the connection was ended."))
            held.ready.exception()  # it may be that nobody waits any more

    async def _ask(self, held: _Held, asking: Awaitable[T]) -> T:
        """Return what comes of a request, failures in words; a server that is gone or hangs is opened anew."""
        try:
            async with asyncio.timeout(self._timeout_s) as limit:
                found = await asking
        except MCPError as error:
            raise await self._meaning_of(held, error) from error
        except (TimeoutError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            self._leave(held)
            is_late = limit.expired()
            why = self._late if is_late and not self._ended() else self._words(error)
            raise ServerFailed(
                f"The MCP server failed: {why}", is_undone=False, is_once_more=not is_late and self._is_plain_end
            ) from error
        self._failures, held.has_answered = 0, True
        return found

    async def _meaning_of(self, held: _Held, error: MCPError) -> ToolFailed:
        """Return what an error in the server's place means, or one of its own."""
        code, words = error.error.code, _cut(error.error.message, 500)
        if _is_cut(error):
            self._leave(held)
            why = f"The MCP server failed: {self._ended() or 'it ended the connection.'}"
            return ServerFailed(why, is_undone=False, is_once_more=self._is_plain_end)
        is_said = code in (GONE, UNSUPPORTED_PROTOCOL_VERSION)
        if is_said or (code not in (UNREACHED, BROKEN, REFUSED) and await self._is_lost(held)):
            self._leave(held)
            why = f"The MCP server no longer knows this session: {words.rstrip('.')}."
            return ServerFailed(why, is_undone=True, is_once_more=True)
        if code in (UNREACHED, BROKEN):
            self._leave(held)
            why = f"The MCP server failed: {words.rstrip('.')}."
            return ServerFailed(why, is_undone=code == UNREACHED, is_once_more=True)
        why = f"The MCP server refused: {words.rstrip('.')}."
        if code in (REFUSED, UNCLEAR):
            return ServerFailed(why, is_undone=True, is_once_more=False)
        return ToolFailed(why, is_tainted=True)

    async def _is_lost(self, held: _Held) -> bool:
        """Tell whether a good session is refused now whatever it is asked: a tool can fail by the same words."""
        if not held.has_answered:
            return False
        try:
            async with asyncio.timeout(min(self._timeout_s, PROBE_S)):
                await _raw(held.ready.result().session, "tools/list", {})
        except MCPError as error:
            return not _is_cut(error) and error.error.code not in (UNREACHED, BROKEN, REFUSED)
        except (TimeoutError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass
        return False

    @property
    def _is_plain_end(self) -> bool:
        """Tell whether it is not known to have been ended for what it did."""
        why = self._ended()
        return not why or why.startswith(ENDED)

    @property
    def _late(self) -> str:
        return f"it did not answer within {self._timeout_s:g} seconds."

    def _words(self, error: BaseException) -> str:
        """The first thing that went wrong, as a sentence."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if why := self._ended():
            return why
        if isinstance(error, CortexError):
            return error.message
        if isinstance(error, MCPError) and _is_cut(error):
            return "it ended the connection."
        return f"{_cut(str(error), 300) or type(error).__name__}."


def _hearing(held: _Held) -> Any:  # Any: the package's protocol of a handler
    async def heard(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            held.listed_s = -RELIST_S * 2

    return heard


def _is_cut(error: MCPError) -> bool:
    """Tell whether the package says that there was no answer."""
    return error.error.code == CONNECTION_CLOSED and error.error.message.startswith(BROKEN_OFF)


async def _end(held: _Held) -> None:
    held.over.set()
    if held.task is None:
        return
    _, left = await asyncio.wait({held.task}, timeout=5)
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=10)


async def _event_within(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return


async def _raw(session: ClientSession, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return what a request is answered with, as it came.

    The package would refuse a whole list or result for one part that is not as the protocol says: its check is not run.
    """
    asked: dict[str, Any] = {"method": method, "params": params}
    options: CallOptions = {}
    session._stamp(asked, options)
    return await session._dispatcher.send_raw_request(method, asked["params"], options)


async def _tools_of(session: ClientSession) -> dict[str, Listed]:
    """Every tool as JSON, the fields that a model or the gate would see; with those that cannot be used, by name."""
    found = ToolPages()
    cursor: str | None = None
    while True:
        page = await _raw(session, "tools/list", {"cursor": cursor} if cursor else {})
        proper = await asyncio.to_thread(found.take, page)
        kept = session._absorb_tool_listing(types.ListToolsResult(tools=list(proper)), complete=False).tools
        for tool in proper:
            if tool not in kept:
                del found.tools[tool.name]
                found.leave_out(tool.name, "Its x-mcp-header annotations are not valid.")
        cursor = found.next_cursor(page)
        if cursor is None:
            return found.tools


def _cut(text: str, most: int) -> str:
    return show_hidden(" ".join(text.split()))[:most]
