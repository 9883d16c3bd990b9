"""An MCP server elsewhere, by streamable HTTP: its own host and port, capped answers, a login by OAuth where it asks.

What the login needs besides (the server that gives tokens) is reached where it is public, or on the server's own host.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from msgspec import Struct
from pydantic import AnyUrl

from cortex.base.address import PUBLIC, named
from cortex.base.clock import Clock
from cortex.base.egress import GuardedTransport2
from cortex.base.errors import CortexError, ToolFailed
from cortex.base.json_text import parsed
from cortex.integrations.mcp.form import McpForm
from cortex.integrations.mcp.nesting import messages_in
from cortex.integrations.mcp.refusals import BROKEN, REFUSED, UNREACHED, HttpRefusal, refusal_of
from cortex.ports.integrations import LoginStore

ANSWER_BYTES = 16_000_000
ERROR_BYTES = 64_000
CONNECT_S = 10.0
OPENING = ("initialize", "server/discover")
JSON, EVENTS = "application/json", "text/event-stream"
_SAID = re.compile(r"<pre[^>]*>([^<]*)", re.IGNORECASE)  # of a page for people, as frameworks show an error
OLD = " (servers of the old kind, SSE, are not supported; ask for its streamable HTTP address)"
LOG_IN = "It needs a login: an admin can log in on the page of its tools."


class KeptLogin:
    """The package's `TokenStorage` over a `LoginStore`: tokens, when they end, and as whom Cortex registered."""

    def __init__(self, store: LoginStore, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._values: dict[str, Any] = {}

    async def load(self) -> float:
        """Read what is kept; when its token ends, in seconds since 1970 (0 = unknown)."""
        text = await self._store.load()
        self._values = json.loads(text) if text else {}
        return float(self._values.get("ends_at", 0))

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens that are kept."""
        found = self._values.get("tokens")
        return OAuthToken.model_validate(found) if found else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep these, before anything is asked with them: a refresh token is good for one time."""
        ends_at = self._clock().timestamp() + tokens.expires_in if tokens.expires_in else 0
        self._values |= {"tokens": tokens.model_dump(mode="json"), "ends_at": ends_at}
        await self._store.save(json.dumps(self._values))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """As whom Cortex is registered there."""
        found = self._values.get("client")
        return OAuthClientInformationFull.model_validate(found) if found else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep it."""
        self._values["client"] = client_info.model_dump(mode="json")
        await self._store.save(json.dumps(self._values))


async def login_of(
    form: McpForm,
    kept: KeptLogin,
    redirect_address: str,
    redirect: Callable[[str], Awaitable[None]],
    came_back: Callable[[], Awaitable[Any]],
) -> OAuthClientProvider:
    """The login by OAuth with what is kept of it. `redirect_address`: where the browser comes back to."""
    provider = OAuthClientProvider(
        server_url=form.address,
        client_metadata=OAuthClientMetadata(
            client_name="Cortex",
            redirect_uris=[AnyUrl(redirect_address)],
            grant_types=["authorization_code", "refresh_token"],
            response_types=["code"],
        ),
        storage=kept,
        redirect_handler=redirect,
        callback_handler=came_back,
    )
    provider.context.token_expiry_time = await kept.load() or None
    return provider


async def nobody(_: str = "") -> Any:
    """In place of a browser where nobody sits at one."""
    raise ToolFailed(LOG_IN)


def open_http(form: McpForm, auth: httpx2.Auth | None) -> httpx2.AsyncClient:
    """A client for the form's address; close it with `aclose`."""
    return _Client(
        transport=_Transport(form, is_logging_in=auth is not None),
        trust_env=False,
        timeout=httpx2.Timeout(form.timeout_s + 5, connect=CONNECT_S),
        follow_redirects=False,
        headers={"accept-encoding": "identity", **form.header_values},
        auth=auth,
    )


class _Asked(Struct, frozen=True, kw_only=True):
    """A JSON-RPC message that is sent. `id` None: it wants no answer."""

    method: str
    id: Any  # Any: a text or a number, given back as it came


class _Client(httpx2.AsyncClient):
    """Answers in the server's place where it did not: its own package would end the connection of all, or not say why.

    What comes before a session is left as it is: the package tries one way after another there.
    """

    async def send(self, request: httpx2.Request, **more: Any) -> httpx2.Response:
        asked = _asked(request)
        if asked is None:
            return await super().send(request, **more)
        try:
            return await _legible(request, asked, await super().send(request, **more))
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            refusal = HttpRefusal(kind=UNREACHED, words=f"it cannot be reached ({_named(error)})")
        except httpx2.TransportError as error:
            refusal = HttpRefusal(kind=BROKEN, words=f"the connection broke off ({_named(error)})")
        except CortexError as error:
            refusal = HttpRefusal(kind=REFUSED, words=error.message)
        except OAuthFlowError as error:
            refusal = HttpRefusal(kind=REFUSED, words=f"{LOG_IN} ({_named(error)})")
        if asked.method in OPENING:
            raise ToolFailed(refusal.words)
        return _instead(request, asked, refusal)


def _asked(request: httpx2.Request) -> _Asked | None:
    """The message in a request; None for requests of other kinds."""
    try:
        given = parsed(request.content) if request.method == "POST" else None
    except (ValueError, httpx2.RequestNotRead):
        return None
    if not isinstance(given, dict) or given.get("jsonrpc") != "2.0":
        return None
    return _Asked(method=str(given.get("method", "")), id=given.get("id"))


async def _instead_of(request: httpx2.Request, asked: _Asked, response: httpx2.Response) -> httpx2.Response:
    """The server's refusal as an answer to this request alone; before there is a session, in its own words."""
    body = b""
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > ERROR_BYTES:
            break
    await response.aclose()
    given, text = None, body.decode("utf-8", "replace")
    try:
        given = parsed(body)
    except ValueError:
        text = " ".join(_SAID.findall(text)) if "<" in text[:200] else text
    error = given.get("error", given.get("detail", given.get("message"))) if isinstance(given, dict) else None
    words, code = (error if isinstance(error, str) else text), None
    if isinstance(error, dict) and type(error.get("code")) is int and isinstance(error.get("message"), str):
        if asked.method in OPENING:
            return _answer(request, asked, error)
        words, code = error["message"], error["code"]
    refusal = refusal_of(response.status_code, words, code)
    if asked.method in OPENING:
        is_old = response.status_code in (404, 405) and request.url.path.rstrip("/").endswith("/sse")
        return _answer(request, asked, {"code": -32603, "message": f"{refusal.words}{OLD if is_old else ''}"})
    return _instead(request, asked, refusal)


def _instead(request: httpx2.Request, asked: _Asked, refusal: HttpRefusal) -> httpx2.Response:
    return _answer(request, asked, {"code": refusal.kind, "message": refusal.words})


def _answer(request: httpx2.Request, asked: _Asked, error: dict[str, Any]) -> httpx2.Response:
    if asked.id is None:
        return httpx2.Response(202, request=request)
    return httpx2.Response(200, request=request, json={"jsonrpc": "2.0", "id": asked.id, "error": error})


def _kind(response: httpx2.Response) -> str:
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()


def _named(error: Exception) -> str:
    return str(error) or type(error).__name__


async def _legible(request: httpx2.Request, asked: _Asked, response: httpx2.Response) -> httpx2.Response:
    """The server's answer as the package takes it, where it did answer."""
    if response.status_code >= 400:
        return await _instead_of(request, asked, response)
    if asked.id is None or response.is_redirect:
        return response
    is_opening = asked.method in OPENING
    if _kind(response) == EVENTS:
        is_plain = response.headers.get("content-encoding", "identity") == "identity"
        if is_plain and not is_opening and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Events(response.stream, asked)
        return response
    found = await asyncio.to_thread(messages_in, await response.aread(), asked.id, is_answer=True)
    if found:
        session = {name: value for name, value in response.headers.items() if name == "mcp-session-id"}
        return httpx2.Response(200, request=request, headers={"content-type": JSON, **session}, content=found[0])
    if is_opening:
        return response
    what = (_kind(response) or "text") if response.content else "nothing"
    words = f"it answered with {what} in place of the result (HTTP {response.status_code})"
    return _instead(request, asked, HttpRefusal(kind=BROKEN, words=words))


class _Events(httpx2.AsyncByteStream):
    """An event stream, the messages in each event made readable, what is none left out."""

    def __init__(self, inner: httpx2.AsyncByteStream, asked: _Asked) -> None:
        self._inner, self._asked = inner, asked

    async def __aiter__(self) -> AsyncIterator[bytes]:
        data: list[bytes] = []
        async for line in self._lines():
            name, _, value = line.partition(b":")
            if name == b"data":
                data.append(value.removeprefix(b" "))
            elif line:
                yield line + b"\n"
            else:
                text, data = b"\n".join(data), []
                found = await asyncio.to_thread(messages_in, text, self._asked.id, is_answer=False) if text else []
                yield b"\n".join(b"data: " + b"".join(one.splitlines()) + b"\n" for one in found) + b"\n"

    async def _lines(self) -> AsyncIterator[bytes]:
        """Each without its end; the last event is ended where the server did not."""
        kept = bytearray()
        async for piece in self._inner:
            kept += piece
            if b"\n" in piece:
                *whole, rest = bytes(kept).split(b"\n")
                kept = bytearray(rest)
                for line in whole:
                    yield line.removesuffix(b"\r")
        for line in (bytes(kept), b""):
            yield line.removesuffix(b"\r")

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Transport(httpx2.AsyncBaseTransport):
    """The server's own host and port, with the headers of the card; for a login public hosts too, without them."""

    def __init__(self, form: McpForm, *, is_logging_in: bool) -> None:
        self._host, self._secret = form.host, [name.lower() for name in form.header_values]
        self._own = GuardedTransport2(named(form.host))
        self._others = GuardedTransport2(PUBLIC) if is_logging_in else self._own

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        is_own = (url.host, url.port or (443 if url.scheme == "https" else 80)) == self._host
        if not is_own:
            for name in self._secret:
                request.headers.pop(name, None)
        response = await (self._own if is_own else self._others).handle_async_request(request)
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Capped(response.stream)
        return response

    async def aclose(self) -> None:
        await self._own.aclose()
        await self._others.aclose()


class _Capped(httpx2.AsyncByteStream):
    """A body of at most `ANSWER_BYTES`."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._inner:
            size += len(piece)
            if size > ANSWER_BYTES:
                raise httpx2.ReadError(f"an answer of more than {ANSWER_BYTES // 1_000_000} MB")
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()
