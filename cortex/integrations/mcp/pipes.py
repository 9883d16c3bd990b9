"""An MCP server on this machine, by its pipes: in the sandbox, a JSON text a line, floods and long lines cut off.

The protocol's stdio transport, https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio; the
package's own starts programs without walls and reads lines without end.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from cortex.base.clock import ticks_s
from cortex.integrations.mcp.nesting import readable
from cortex.integrations.process import stop
from cortex.integrations.sandbox import RunningService

LINE_BYTES = 4_000_000
ENDED = "it ended"
ERROR_BYTES = 2_000
WINDOW_S, WINDOW_MESSAGES = 5.0, 2_000

Incoming = MemoryObjectSendStream[SessionMessage | Exception]
Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]

log = logging.getLogger(__name__)


class ProgramEnd:
    """Why the program ended, and that it did (`event`). `said`: the end of what it wrote to its error output."""

    def __init__(self, event: asyncio.Event) -> None:
        self.event = event
        self.why = ""
        self.said = b""

    def tell(self, why: str) -> None:
        """It ends for this reason, unless another was told."""
        self.why = self.why or why
        self.event.set()


@asynccontextmanager
async def piped(service: AbstractAsyncContextManager[RunningService], end: ProgramEnd) -> AsyncIterator[Streams]:
    """The streams of messages to and from the program, for as long as the block lasts."""
    async with service as running:
        process = running.process
        to_us, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        sent, from_us = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as group:

            async def read() -> None:
                assert process.stdout is not None  # noqa: S101 - it was started with pipes
                async with to_us:
                    end.tell(await _read(process.stdout, to_us))

            async def write() -> None:
                assert process.stdin is not None  # noqa: S101
                async with from_us:
                    async for message in from_us:
                        text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                        with suppress(ConnectionError):
                            process.stdin.write(f"{text}\n".encode())
                            await process.stdin.drain()

            async def hear() -> None:
                assert process.stderr is not None  # noqa: S101
                while chunk := await process.stderr.read(65_536):
                    end.said = (end.said + chunk)[-ERROR_BYTES:]

            async def watch() -> None:
                end.tell(await running.excess())
                await to_us.aclose()

            async def put_down() -> None:
                await end.event.wait()  # it misbehaved, or nobody needs it: nothing of ours may wait for its word now
                await stop(process)

            for work in (read, write, hear, watch, put_down):
                group.start_soon(work)
            try:
                yield received, sent
            finally:
                group.cancel_scope.cancel()
                for stream in (received, sent, to_us, from_us):
                    stream.close()


async def _read(output: asyncio.StreamReader, to_us: Incoming) -> str:
    """Pass on each line that is a message, until the program's output ends; why it is read no further."""
    times: deque[float] = deque(maxlen=WINDOW_MESSAGES)
    while True:
        try:
            line = await output.readline()
        except ValueError:
            return f"it sent a line of more than {LINE_BYTES // 1_000_000} MB"
        except OSError:
            line = b""
        if not line:
            return ENDED
        now_s = ticks_s()
        if len(times) == WINDOW_MESSAGES and now_s - times[0] < WINDOW_S:
            return f"it sent more than {WINDOW_MESSAGES:,} messages within {WINDOW_S:.0f} seconds"
        times.append(now_s)
        try:
            message = types.jsonrpc_message_adapter.validate_json(readable(line), by_name=False)
        except ValueError:
            log.debug("an MCP server wrote a line that is no message")  # programs greet people on the wrong pipe
            continue
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            await to_us.send(SessionMessage(message))
