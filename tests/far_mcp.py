"""An MCP server by streamable HTTP on a port of this machine, by the official package; with a login by OAuth, if asked.

The login server is a faithful double over the package's own routes: registration, PKCE, codes for one use, tokens that
end, refresh tokens for one use. It says yes at once, where a real one asks a person.
"""

import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from mcp.types import ToolAnnotations
from pydantic import AnyHttpUrl

from tests.listening import listening


@dataclass
class LoginServer(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Keeps everything in memory. `is_willing`: whether whoever logs in is let in; `lasts_s`: how long a token does."""

    is_willing: bool = True
    lasts_s: int = 3_600
    resource: str = ""
    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict)
    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    tokens: dict[str, AccessToken] = field(default_factory=dict)
    refresh: dict[str, RefreshToken] = field(default_factory=dict)

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[str(client_info.client_id)] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        back = str(params.redirect_uri)
        if not self.is_willing:
            return construct_redirect_uri(back, error="access_denied", state=params.state)
        code = AuthorizationCode(
            code=secrets.token_urlsafe(32),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=str(client.client_id),
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(back, code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._issued(str(client.client_id))

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        del self.refresh[refresh_token.token]
        return self._issued(str(client.client_id))

    async def load_access_token(self, token: str) -> AccessToken | None:
        found = self.tokens.get(token)
        return found if found is not None and (found.expires_at or 0) > time.time() else None

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.tokens.pop(token.token, None)

    def _issued(self, client_id: str) -> OAuthToken:
        access, again = secrets.token_urlsafe(16), secrets.token_urlsafe(16)
        ends_at = int(time.time()) + self.lasts_s
        self.tokens[access] = AccessToken(
            token=access, client_id=client_id, scopes=[], expires_at=ends_at, resource=self.resource
        )
        self.refresh[again] = RefreshToken(token=again, client_id=client_id, scopes=[])
        return OAuthToken(access_token=access, token_type="Bearer", expires_in=self.lasts_s, refresh_token=again)


@dataclass
class FarServer:
    """Where it is, and the headers that came with each request."""

    address: str = ""
    headers: list[dict[str, str]] = field(default_factory=list)
    login: LoginServer = field(default_factory=LoginServer)


@asynccontextmanager
async def far_server(port: int, *, has_login: bool = False) -> AsyncIterator[FarServer]:
    """A server with the tool `weather`, which only reads, and `order`."""
    far = FarServer(address=f"http://127.0.0.1:{port}/mcp")
    more: dict[str, Any] = {}
    if has_login:
        far.login.resource = far.address
        settings = AuthSettings(
            issuer_url=AnyHttpUrl(f"http://127.0.0.1:{port}"),
            resource_server_url=AnyHttpUrl(far.address),
            validate_token_resource=True,
            client_registration_options=ClientRegistrationOptions(enabled=True),
        )
        more = {"auth_server_provider": far.login, "auth": settings}
    mcp = MCPServer("far", **more)

    @mcp.tool(annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    def weather(town: str) -> str:
        """The weather of a town."""
        return f"Rain in {town}."

    @mcp.tool()
    def order(what: str) -> str:
        """Order something."""
        return f"Ordered: {what}"

    inner = mcp.streamable_http_app()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            far.headers.append({key.decode(): value.decode() for key, value in scope["headers"]})
        await inner(scope, receive, send)

    async with listening(app, port, lifespan="auto"):
        yield far
