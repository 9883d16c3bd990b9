"""Cortex's tools for other programs' models: the Model Context Protocol over streamable HTTP, at `/mcp`."""

import asyncio

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from cortex.app import Cortex
from cortex.base import scan
from cortex.base.errors import CortexError
from cortex.base.json_text import must_be_small, parsed
from cortex.services.api.tokens import Caller
from web.bodies import LARGE_BYTES, TEXT_BYTES, takes
from web.deps import Services
from web.programs import caller_of, refused
from web.routes import LazyRoute
from web.security import MCP

router = APIRouter(route_class=LazyRoute)
MOST_ITEMS = 10_000
ONE_MESSAGE = "Send one JSON-RPC message."


class McpAnswer(Response):
    """The answer to one message. The package that reads it is loaded with the first one."""

    def __init__(self, cortex: Cortex, caller: Caller, body: bytes) -> None:
        super().__init__()
        self._cortex = cortex
        self._caller = caller
        self._body: bytes | None = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer it."""

        async def again() -> Message:
            if self._body is None:
                return await receive()
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}

        package = await asyncio.to_thread(scan.load, "web.mcp_answer")  # takes half a second
        await package.answer(self._cortex, self._caller, scope, again, send)


@router.post(MCP)
@takes(TEXT_BYTES)
async def message(request: Request, services: Services) -> Response:
    """One message of the protocol."""
    try:
        caller = await caller_of(request)
    except CortexError as error:
        return refused(error, is_caller=False)
    try:
        services.api_tokens.must_not_insist(caller)
        body = await request.body()
    except CortexError as error:
        return refused(error)
    wrong = await asyncio.to_thread(_slip, body) if len(body) > LARGE_BYTES else _slip(body)
    if wrong:
        refusal = {"code": -32700, "message": wrong}
        return JSONResponse({"jsonrpc": "2.0", "id": None, "error": refusal}, 400)
    return McpAnswer(services, caller, body)


@router.get(MCP)
async def stream() -> Response:
    """There is no stream of the server's own, and no session to end."""
    return JSONResponse({"error": {"message": "Send messages with POST."}}, 405, {"Allow": "POST"})


def _slip(body: bytes) -> str:
    """Return what is wrong with it as one JSON object; what that must hold is the package's to say. "" for nothing."""
    try:
        must_be_small(body, items=MOST_ITEMS)
    except ValueError as error:
        return str(error)
    try:
        return "" if isinstance(parsed(body), dict) else ONE_MESSAGE
    except ValueError:
        return ONE_MESSAGE
