"""An answer to one message of the Model Context Protocol: Cortex's tools over streamable HTTP.

Stateless: each message brings its token, and no session is kept. The official package speaks the protocol, in all its
revisions up to 2026-07-28: https://modelcontextprotocol.io/specification
"""

import asyncio
import json
from typing import Any

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.types import Receive, Scope, Send

from cortex.app import Cortex
from cortex.base.errors import CortexError
from cortex.services.api.answers import Piece, Working
from cortex.services.api.tokens import Caller
from cortex.services.api.tool_calls import ProgramTool

NAME = "cortex"
VERSION = "1"

Context = ServerRequestContext[Any, Any]


async def answer(cortex: Cortex, caller: Caller, scope: Scope, receive: Receive, send: Send) -> None:
    """Read the message, do what it asks within the caller's token, and send the answer."""
    manager = StreamableHTTPSessionManager(_server(cortex, caller), stateless=True)
    async with manager.run():
        await manager.handle_request(scope, receive, send)


def _server(cortex: Cortex, caller: Caller) -> Server[Any]:
    async def listed(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(one) for one in await cortex.program_tools.list(caller)])

    async def called(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        steps = 0

        async def tell(piece: Piece) -> None:
            nonlocal steps
            steps += 1
            if isinstance(piece, Working):  # for a caller that wants to know
                words = f"{piece.waits} needs approval" if piece.waits else "working"
                await context.session.report_progress(float(steps), message=words)

        # Since 2026-07-28 who closes the connection cancels the call; before, who lost it did not mean to.
        is_bound = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        arguments = json.dumps(params.arguments or {})

        async def asked() -> types.CallToolResult:
            call = cortex.program_tools.call
            try:
                found = await call(caller, params.name, arguments, tell, ends_with_caller=is_bound)
            except CortexError as error:
                return _result(error.message, is_error=True)
            return _result(found.text, is_error=found.is_error)

        # In a task of its own: the package cancels again and again, which leaves no time to end what runs.
        async with asyncio.TaskGroup() as group:
            calling = group.create_task(asked())
        return calling.result()

    return Server(NAME, version=VERSION, on_list_tools=listed, on_call_tool=called)


def _tool(one: ProgramTool) -> types.Tool:
    hints = types.ToolAnnotations(
        read_only_hint=one.is_read, destructive_hint=one.is_risky and not one.is_read, open_world_hint=one.is_outward
    )
    return types.Tool(name=one.name, description=one.description, input_schema=one.parameters, annotations=hints)


def _result(text: str, *, is_error: bool) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=is_error)
