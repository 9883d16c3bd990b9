"""An MCP server elsewhere, by streamable HTTP: its own host and port, capped answers, a login by OAuth where it asks.

What the login needs besides (the server that gives tokens) is reached where it is public, or on the server's own host.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from cortex.base.address import PUBLIC, named
from cortex.base.clock import Clock
from cortex.base.egress import GuardedTransport2
from cortex.base.errors import ToolFailed
from cortex.integrations.mcp.form import McpForm

ANSWER_BYTES = 16_000_000
CONNECT_S = 10.0
LOG_IN = "It needs a login: an admin can log in on the page of its tools."


class LoginStore(Protocol):
    """Where a login is kept, sealed."""

    async def load(self) -> str:
        """What was kept; "" for nothing."""
        ...

    async def save(self, text: str) -> None:
        """Keep this in its place."""
        ...


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
    return httpx2.AsyncClient(
        transport=_Transport(form, is_logging_in=auth is not None),
        trust_env=False,
        timeout=httpx2.Timeout(form.timeout_s + 5, connect=CONNECT_S),
        follow_redirects=False,
        headers=dict(form.header_values),
        auth=auth,
    )


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
