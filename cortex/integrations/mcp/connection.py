"""A connection to an MCP server: opened at the first need, closed when nobody uses it, opened again after a failure.

A task of its own holds it, since the package's scopes must be left where they were entered. After a failure the next
try waits, longer each time. The package's own check of results is passed by: it would run regular expressions of the
server's on the event loop.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import anyio
import mcp_types as types
from mcp.client.client import Client
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT
from pydantic import ValidationError

from cortex.base.clock import ticks_s
from cortex.base.errors import CortexError, ServiceDown, ToolFailed
from cortex.base.hidden import show_hidden
from cortex.integrations.mcp.results import McpResult, answer_of, resource_of

CONNECT_S = 45.0
IDLE_S = 600.0
RELIST_S = 300.0
WAITS_S = (1.0, 2.0, 5.0, 15.0, 60.0)
PAGES_MOST, TOOLS_MOST, TOOL_CHARACTERS = 50, 1_000, 40_000
FIELDS = ("name", "title", "description", "inputSchema", "annotations")
T = TypeVar("T")
Listed = dict[str, Any]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpListing:
    """What a server offers: its tools' JSON by name, whether it has resources, what it calls itself."""

    tools: dict[str, Listed]
    has_resources: bool
    title: str


@dataclass(slots=True)
class _Held:
    """One opened connection and who uses it."""

    ready: "asyncio.Future[Client]"
    over: asyncio.Event = field(default_factory=asyncio.Event)
    task: "asyncio.Task[None] | None" = None
    users: int = 0
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
        self._leaving: set[asyncio.Task[None]] = set()
        self._opening = asyncio.Lock()
        self._failures, self._again_s, self._why = 0, 0.0, ""

    async def listing(self, *, is_fresh: bool = False) -> McpListing | None:
        """What the server offers, where that must be looked at again: at first, when it says so, after a while.

        is_fresh: look in any case. ServiceDown, ToolFailed.
        """
        async with self._using() as held:
            if not is_fresh and ticks_s() - held.listed_s < RELIST_S:
                return None
            client = held.ready.result()
            found = await self._asked(held, _tools_of(client.session))
            held.listed_s = ticks_s()
            info, offers = client.server_info, client.server_capabilities
            title = " ".join(filter(None, ((info.title or info.name), info.version))) if info else ""
            return McpListing(tools=found, has_resources=offers.resources is not None, title=_cut(title, 120))

    async def call(self, tool: str, arguments: dict[str, Any]) -> McpResult:
        """Call a tool once. ServiceDown where the server failed, ToolFailed where it refuses."""
        request = types.CallToolRequest(params=types.CallToolRequestParams(name=tool, arguments=arguments))
        async with self._using() as held:
            session = held.ready.result().session
            return answer_of(await self._asked(held, session.send_request(request, types.CallToolResult)))

    async def read(self, uri: str) -> McpResult:
        """Read a resource. Fails as `call`."""
        request = types.ReadResourceRequest(params=types.ReadResourceRequestParams(uri=uri))
        async with self._using() as held:
            session = held.ready.result().session
            result = await self._asked(held, session.send_request(request, types.ReadResourceResult))
            return resource_of(result.contents)

    async def close(self) -> None:
        """End the connection, and what runs behind it."""
        held, self._held = self._held, None
        if held is not None:
            await _end(held)
        for task in list(self._leaving):  # those that were given up and still wind down
            await asyncio.wait({task}, timeout=10)

    @asynccontextmanager
    async def _using(self) -> AsyncIterator[_Held]:
        held = await self._opened()
        held.users += 1
        try:
            yield held
        finally:
            held.users -= 1
            held.used_s = ticks_s()

    async def _opened(self) -> _Held:
        async with self._opening:
            if self._held is not None and not self._held.over.is_set():
                return self._held
            wait_s = self._again_s - ticks_s()
            if wait_s > 0:
                raise ServiceDown(f"{self._why} The next try is in {wait_s:.0f} seconds.")
            held = self._held = _Held(asyncio.get_running_loop().create_future())
            held.task = asyncio.ensure_future(self._hold(held))  # noqa: TID251 - `_end` ends it, `_let_go` tells
            self._leaving.add(held.task)
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
        raise ServiceDown(self._why)

    async def _hold(self, held: _Held) -> None:
        """Keep it open until it ends, is ended, or nobody has used it for a while."""
        try:
            async with Client(
                self._transport(held.over),
                read_timeout_seconds=self._timeout_s,
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
        self._leaving.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and held.ready.done():
            log.info("an MCP server's connection ended: %s", self._words(error))
        if not held.ready.done():
            held.ready.set_exception(ServiceDown(self._words(error) if error else "the connection was ended."))
            held.ready.exception()  # it may be that nobody waits any more

    async def _asked(self, held: _Held, asking: Awaitable[T]) -> T:
        """What comes of a request, its failures in words; a server that is gone or hangs is started anew next time."""
        try:
            async with asyncio.timeout(self._timeout_s + 5):
                found = await asking
        except MCPError as error:
            if error.error.code not in (REQUEST_TIMEOUT, CONNECTION_CLOSED):
                raise ToolFailed(
                    f"The MCP server refused: {_cut(error.error.message, 500)}", is_tainted=True
                ) from error
            failure = self._words(error)
        except (TimeoutError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            failure = self._words(error)
        except ValidationError as error:
            raise ToolFailed("The MCP server answered in a way that the protocol does not know.") from error
        else:
            self._failures = 0
            return found
        if held.users <= 1:
            held.over.set()
        raise ServiceDown(f"The MCP server failed: {failure}")

    def _words(self, error: BaseException) -> str:
        """The first thing that went wrong, as a sentence."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if why := self._ended():
            return why
        if isinstance(error, CortexError):
            return error.message
        if isinstance(error, TimeoutError) or (isinstance(error, MCPError) and error.error.code == REQUEST_TIMEOUT):
            return f"it did not answer within {self._timeout_s:g} seconds."
        if isinstance(error, MCPError) and error.error.code == CONNECTION_CLOSED:
            return "it ended the connection."
        return f"{_cut(str(error), 300) or type(error).__name__}."


def _hearing(held: _Held) -> Any:  # Any: the package's protocol of a handler
    async def heard(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            held.listed_s = -RELIST_S * 2

    return heard


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


async def _tools_of(session: ClientSession) -> dict[str, Listed]:
    """Every tool as JSON, the fields that a model or the gate would see. ToolFailed for more than there can be."""
    found: dict[str, Listed] = {}
    cursor: str | None = None
    for _ in range(PAGES_MOST):
        page = await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
        for tool in page.tools:
            given = tool.model_dump(mode="json", by_alias=True, exclude_none=True, include=_INCLUDED)
            if len(str(given)) > TOOL_CHARACTERS:
                log.warning("an MCP server's tool is described in more than %d characters: left out", TOOL_CHARACTERS)
                continue
            found.setdefault(tool.name, {key: given[key] for key in FIELDS if key in given})
        cursor = page.next_cursor
        if not cursor:
            return found
        if len(found) > TOOLS_MOST:
            break
    raise ToolFailed(f"The MCP server lists more than {TOOLS_MOST:,} tools, or its list has no end.")


_INCLUDED = {"name", "title", "description", "input_schema", "annotations"}


def _cut(text: str, most: int) -> str:
    return show_hidden(" ".join(text.split()))[:most]
