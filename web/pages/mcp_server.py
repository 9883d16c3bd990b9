"""Cortex's tools for other programs' models: the Model Context Protocol over streamable HTTP, at `/mcp`."""

import json

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from cortex.app import Cortex
from cortex.base import scan
from cortex.base.errors import CortexError
from cortex.services.api.tokens import Caller
from web.bodies import TEXT_BYTES, takes
from web.deps import Services
from web.programs import caller_of, refused
from web.routes import LazyRoute
from web.security import MCP

router = APIRouter(route_class=LazyRoute)
NO_MESSAGE = {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Send one JSON-RPC message."}}


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

        await scan.load("web.mcp_answer").answer(self._cortex, self._caller, scope, again, send)


@router.post(MCP)
@takes(TEXT_BYTES)
async def message(request: Request, services: Services) -> Response:
    """One message of the protocol."""
    try:
        caller = await caller_of(request)
    except CortexError as error:
        return refused(error, is_caller=False)
    body = await request.body()
    return McpAnswer(services, caller, body) if _is_message(body) else JSONResponse(NO_MESSAGE, 400)


@router.get(MCP)
async def stream() -> Response:
    """There is no stream of the server's own, and no session to end."""
    return JSONResponse({"error": {"message": "Send messages with POST."}}, 405, {"Allow": "POST"})


def _is_message(body: bytes) -> bool:
    """Whether it is a JSON object; what it must hold is the package's to say."""
    try:
        return isinstance(json.loads(body), dict)
    except (ValueError, RecursionError):
        return False
