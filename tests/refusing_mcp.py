"""A server by streamable HTTP, written by hand, that forgets its sessions and refuses them in the way it is told.

Each way of `WAYS` is what a real one answers; its comment says which. `did` counts what was really carried out.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.listening import listening
from tests.mcp_house import READS, listed

JSON, TEXT, EVENTS = "application/json", "text/plain", "text/event-stream"
CUT = "cut=yes"  # the connection ends in the middle of the answer
Way = tuple[int, str, str]


def error(code: int, message: str) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}})


WAYS: dict[str, Way] = {
    "python sdk": (404, JSON, error(-32600, "Session not found")),
    "python sdk, ended": (404, JSON, error(-32600, "Not Found: Session has been terminated")),
    "python sdk before 1.20": (400, TEXT, "Bad Request: No valid session ID provided"),
    "python sdk, other era": (400, JSON, error(-32600, "Bad Request: Missing session ID")),
    "typescript sdk": (404, JSON, error(-32001, "Session not found")),
    "typescript sdk, restarted": (400, JSON, error(-32000, "Bad Request: Server not initialized")),
    "typescript sdk, no header": (400, JSON, error(-32000, "Bad Request: Mcp-Session-Id header is required")),
    "typescript examples": (400, JSON, error(-32000, "Bad Request: No valid session ID provided")),
    "typescript sdk, other version": (400, JSON, error(-32000, "Bad Request: Unsupported protocol version: 2025")),
    "affine": (400, JSON, error(-32000, "Bad Request: No valid session ID or not an initialize request")),
    "mcp-go": (404, TEXT, "Session not found"),
    "mcp-go, unknown": (400, TEXT, "Invalid session ID"),
    "rmcp": (401, TEXT, "Unauthorized: Session not found"),
    "rmcp, first message": (422, TEXT, "Unprocessable Entity: expect initialize request"),
    "spring ai": (404, JSON, json.dumps({"jsonRpcError": {"code": -32603, "message": "Session not found: 7f"}})),
    "csharp sdk": (404, JSON, error(-32001, "Session not found")),
    "bare 404": (404, TEXT, ""),
    "bare 400": (400, TEXT, ""),
    "bare 401": (401, TEXT, ""),
    "bare 410": (410, TEXT, ""),
    "bare 403": (403, TEXT, ""),
    "bare 405": (405, TEXT, ""),
    "bare 409": (409, TEXT, ""),
    "a code of HTTP": (400, JSON, error(404, "Not Found")),
    "a code for wrong arguments": (400, JSON, error(-32602, "Invalid params")),
    "an internal error": (403, JSON, error(-32603, "Internal error")),
    "bare 422": (422, JSON, json.dumps({"detail": [{"loc": ["header", "mcp-session-id"], "msg": "unknown"}]})),
    "a page": (404, "text/html", "<html><body>Not found</body></html>"),
    "a bug's 500": (500, TEXT, "KeyError: unknown session '7f'"),
    "express": (
        500,
        "text/html",
        "<!DOCTYPE html><html><body><pre>Error: Session not found<br> at x</pre></body></html>",
    ),
    "a bug's words inside": (500, JSON, json.dumps({"errors": [{"message": "Session not found"}]})),
    "an error in a 200 for nobody": (200, JSON, '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No"}}'),
    "an error in a 200 of other words": (200, JSON, error(-32600, "You must call initialize before this")),
    "a text for an error": (200, JSON, '{"error":"unauthorized"}'),
    "an error in a 200": (200, JSON, error(-32000, "Session not found or expired")),
    "an error in events": (200, EVENTS, f"event: message\ndata: {error(-32001, 'Unknown session')}\n\n"),
}
UNCLEAR: dict[str, Way] = {  # it may have been done
    "bare 500": (500, TEXT, "Internal Server Error"),
    "a proxy's 502": (502, "text/html", "<html>Bad Gateway</html>"),
    "a balancer's 503": (503, TEXT, ""),
    "events that end": (200, EVENTS, ": ping\n\n"),
    "ended under way": (500, JSON, error(-32603, "Session terminated before the request completed")),
    "cut off": (200, f"{JSON}; {CUT}", "{"),
    "the server goes": (200, JSON, error(-32000, "Connection closed")),
}


IDEMPOTENT = {"annotations": {**READS, "readOnlyHint": False, "idempotentHint": True}}


@dataclass
class RefusingServer:
    """`forget`: its sessions, as a restart does. `limit`: how many requests a session lives, 0 = for good."""

    address: str
    way: Way = WAYS["python sdk"]
    tools: list[dict[str, Any]] = field(
        default_factory=lambda: [listed("look", is_read=True), listed("order"), {**listed("put"), **IDEMPOTENT}]
    )
    sessions: set[str] = field(default_factory=set)
    opened: int = 0
    did: list[str] = field(default_factory=list)
    is_refusing_all: bool = False
    is_doing_first: bool = False
    is_starting: bool = False
    is_streaming: bool = False

    def forget(self) -> None:
        self.sessions.clear()

    def answer(self, session: str, asked: dict[str, Any]) -> tuple[int, str, str, str]:
        """Status, kind, body, and the session that begins with it."""
        method, params = asked.get("method", ""), asked.get("params") or {}
        if method == "server/discover":
            return 200, JSON, self._error(asked, -32601, "Method not found"), ""
        if method == "initialize" and self.is_starting:
            return 200, JSON, '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Not ready"}}', ""
        if method == "initialize":
            self.opened += 1
            opened = f"session-{self.opened}"
            self.sessions.add(opened)
            offers: dict[str, Any] = {"tools": {}}
            facts = {"name": "refusing", "version": "0"}
            version = {"protocolVersion": params["protocolVersion"], "capabilities": offers, "serverInfo": facts}
            return 200, JSON, self._result(asked, version), opened
        if "id" not in asked:
            return 202, TEXT, "", ""
        is_call = method == "tools/call"
        if session not in self.sessions or (self.is_refusing_all and is_call):
            if is_call and self.is_doing_first:
                self.did.append(params["name"])
            status, kind, body = self.way
            own = json.dumps(asked["id"])
            return status, kind, body.replace('"id": null', f'"id": {own}').replace('"id":ID', f'"id":{own}'), ""
        if is_call:
            self.did.append(params["name"])
            said = {"content": [{"type": "text", "text": f"done: {params['name']}"}]}
            return 200, JSON, self._result(asked, said), ""
        text = self._result(asked, {"tools": self.tools})
        return (200, EVENTS, f"event: message\ndata: {text}\n\n", "") if self.is_streaming else (200, JSON, text, "")

    def _result(self, asked: dict[str, Any], result: dict[str, Any]) -> str:
        return json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result})

    def _error(self, asked: dict[str, Any], code: int, message: str) -> str:
        return json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": code, "message": message}})


@asynccontextmanager
async def refusing_server(port: int) -> AsyncIterator[RefusingServer]:
    """It listens for as long as the block lasts."""
    server = RefusingServer(address=f"http://127.0.0.1:{port}/mcp")

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while (message := await receive()).get("more_body"):
            body += message.get("body", b"")
        body += message.get("body", b"")
        headers = {key.decode(): value.decode() for key, value in scope["headers"]}
        status, kind, text, opened = (405, TEXT, "", "")
        if scope["method"] == "POST":
            status, kind, text, opened = server.answer(headers.get("mcp-session-id", ""), json.loads(body))
        given = [(b"content-type", kind.encode()), *([(b"mcp-session-id", opened.encode())] if opened else [])]
        if CUT in kind:
            given.append((b"content-length", b"999"))
        await send({"type": "http.response.start", "status": status, "headers": given})
        await send({"type": "http.response.body", "body": text.encode()})

    async with listening(app, port):
        yield server
