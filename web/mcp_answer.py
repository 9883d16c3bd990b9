"""An answer to one message of the Model Context Protocol: Cortex's tools over streamable HTTP.

Stateless: each message brings its token, and no session is kept. The official package speaks the protocol:
https://modelcontextprotocol.io/specification (revisions up to 2025-11-25).
"""

import asyncio
import json
from typing import Any

from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import StreamableHTTPServerTransport
from starlette.types import Receive, Scope, Send

from cortex.app import Cortex
from cortex.base.errors import CortexError
from cortex.services.api.answers import Said, Working
from cortex.services.api.tokens import Caller
from cortex.services.api.tool_calls import ProgramTool

NAME = "cortex"
VERSION = "1"


async def answer(cortex: Cortex, caller: Caller, scope: Scope, receive: Receive, send: Send) -> None:
    """Read the message, do what it asks within the caller's token, and send the answer."""
    server = _server(cortex, caller)
    transport = StreamableHTTPServerTransport(mcp_session_id=None)
    async with transport.connect() as (incoming, outgoing), asyncio.TaskGroup() as group:
        running = group.create_task(
            server.run(incoming, outgoing, server.create_initialization_options(), stateless=True)
        )
        try:
            await transport.handle_request(scope, receive, send)
        finally:
            await transport.terminate()
            running.cancel()


def _server(cortex: Cortex, caller: Caller) -> Server[Any, Any]:
    server: Server[Any, Any] = Server(NAME, version=VERSION)

    @server.list_tools()  # type: ignore[no-untyped-call, untyped-decorator]
    async def listed() -> list[types.Tool]:
        return [_tool(one) for one in await cortex.program_tools.list(caller)]

    @server.call_tool(validate_input=False)  # type: ignore[untyped-decorator]
    async def called(name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        steps = 0

        async def tell(piece: Said | Working) -> None:
            nonlocal steps
            steps += 1
            await _progress(server, steps, piece)

        try:
            found = await cortex.program_tools.call(caller, name, json.dumps(arguments), tell)
        except CortexError as error:
            return _result(error.message, is_error=True)
        return _result(found.text, is_error=found.is_error)

    return server


async def _progress(server: Server[Any, Any], steps: int, piece: Said | Working) -> None:
    """A sign of life, for a caller that wants one."""
    context = server.request_context
    token = context.meta.progressToken if context.meta else None
    if token is None or not isinstance(piece, Working):
        return
    words = f"{piece.waits} waits for the word of its person" if piece.waits else "working"
    await context.session.send_progress_notification(
        token, float(steps), message=words, related_request_id=str(context.request_id)
    )


def _tool(one: ProgramTool) -> types.Tool:
    hints = types.ToolAnnotations(
        readOnlyHint=one.is_read, destructiveHint=one.is_risky and not one.is_read, openWorldHint=one.is_outward
    )
    return types.Tool(name=one.name, description=one.description, inputSchema=one.parameters, annotations=hints)


def _result(text: str, *, is_error: bool) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], isError=is_error)
