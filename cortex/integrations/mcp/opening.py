"""Opens the connection that a card asks for: pipes to a program, or requests to an address. Loads the package."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from mcp.client.auth import AuthorizationCodeResult
from mcp.client.streamable_http import streamable_http_client

from cortex.base.errors import ToolFailed
from cortex.base.hidden import show_hidden
from cortex.integrations.mcp.connection import CONNECT_S, McpConnection
from cortex.integrations.mcp.http import ANSWER_BYTES, KeptLogin, login_of, nobody, open_http
from cortex.integrations.mcp.pipes import ProgramEnd, piped
from cortex.integrations.mcp.system import McpHost, McpSystem

SAID_CHARACTERS = 300


def connection_of(system: McpSystem, host: McpHost) -> McpConnection:
    """The connection, not opened yet."""
    return _to_program(system) if system.form.command else to_address(system, host, nobody, nobody)


def _to_program(system: McpSystem) -> McpConnection:
    last: list[ProgramEnd] = []

    @asynccontextmanager
    async def transport(over: asyncio.Event) -> AsyncIterator[Any]:
        end = ProgramEnd(over)
        last[:] = [end]
        async with piped(await system.program(), end) as streams:
            yield streams

    def ended() -> str:
        if not last or not last[0].why:
            return ""
        said = " ".join(last[0].said.decode("utf-8", "replace").split())[-SAID_CHARACTERS:]
        return f"{last[0].why}.{f' It said last: {show_hidden(said)}' if said else ''}"

    return McpConnection(transport, ended, system.form.timeout_s)


def to_address(
    system: McpSystem,
    host: McpHost,
    redirect: Callable[[str], Awaitable[None]],
    came_back: Callable[[], Awaitable[Any]],
    *,
    connect_s: float = CONNECT_S,
) -> McpConnection:
    """Where a login is wanted, `redirect` is given the address for a browser; `came_back` waits until it is back."""
    form = system.form

    @asynccontextmanager
    async def transport(_: asyncio.Event) -> AsyncIterator[Any]:
        auth = None
        if form.has_login and system.name:
            kept = KeptLogin(host.logins(system.name), host.clock)
            auth = await login_of(form, kept, host.redirect(), redirect, came_back)
        async with (
            open_http(form, auth) as client,
            streamable_http_client(form.address, http_client=client, max_sse_event_size=ANSWER_BYTES) as streams,
        ):
            yield streams

    return McpConnection(transport, lambda: "", form.timeout_s, connect_s)


def came_back(back: "asyncio.Future[Mapping[str, str]]") -> Callable[[], Awaitable[Any]]:
    """Waits for what the browser comes back with; ToolFailed with the login server's own word where it refuses."""

    async def wait() -> AuthorizationCodeResult:
        given = await back
        if "code" not in given:
            told = given.get("error_description") or given.get("error") or "it gave no code"
            raise ToolFailed(f"The login was refused: {show_hidden(told[:SAID_CHARACTERS])}")
        return AuthorizationCodeResult(code=given["code"], state=given.get("state"), iss=given.get("iss"))

    return wait
