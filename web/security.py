"""What stands between the network and the pages: Host allow-list, cross-site refusal, headers, the login cookie.

Pure ASGI, so that streams pass untouched. Who is logged in is `web/deps.py`.
"""

import ipaddress
import secrets
from urllib.parse import urlsplit

from msgspec import Struct
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cortex.base.server_settings import row_of
from cortex.base.settings import Settings

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; worker-src 'self'; frame-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
# Of what holds bytes from outside: even shown by itself it is in no origin, runs nothing and loads nothing.
INERT = {"Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'; base-uri 'none'"}
HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
OPEN_TO_PROBES = ("/healthz", "/readyz")  # asked by address from inside a container or a balancer; they say nothing
HOOKS = "/hooks/"  # other programs send there: no cookie of ours lets anybody in
API = ("/v1/", "/api/")  # likewise, by a token in a header: OpenAI's clients, and Ollama's
MCP = "/mcp"  # likewise; a page of another site is refused all the same, as the protocol wants it
LENGTH_DIGITS = 15
COOKIE = "cortex"
SECURE_COOKIE = "__Host-cortex"
COOKIE_LIFE_S = 30 * 24 * 3600

_FOREIGN_HOST = (
    "This server does not answer to the host name in this address. Its administrator can add the name in "
    f"{row_of('allowed_hosts')}.\n"
)
_OTHER_SITE = "Refused: the request came from another site.\n"
_RENAMED = (
    "Or a proxy changes the host name: let it pass on the browser's (nginx: proxy_set_header Host $http_host;). "
    "docs/proxies.md has settings that work.\n"
)


def framed(nonce: str) -> dict[str, str]:
    """Headers of the one page that may stand in a frame of ours (`pages/whole.py`): in no origin, it loads nothing.

    Of scripts only that with the nonce runs. No policy keeps a script from the network: WebRTC heeds none, and a
    refused navigation still asks for the place's name.
    """
    return {
        "Content-Security-Policy": f"sandbox allow-scripts; default-src 'none'; script-src 'nonce-{nonce}'; "
        "style-src 'unsafe-inline'; img-src data:; font-src data:; form-action 'none'; frame-ancestors 'self'; "
        "base-uri 'none'",
        "X-Frame-Options": "SAMEORIGIN",
        "X-DNS-Prefetch-Control": "off",
    }


class HostRule(Struct, frozen=True, kw_only=True):
    """The Host headers that are ours. `any_address`: bound beyond loopback, so that bare IP addresses are let in."""

    names: frozenset[str]
    any_address: bool = False

    def allows(self, header: str) -> bool:
        """Tell whether a Host header names this daemon; a name that an attacker's DNS points here does not."""
        host = _host_name(header)
        if host in self.names:
            return True
        return self.any_address and _is_address(host)


def host_rule(settings: Settings) -> HostRule:
    """The rule that these settings make: loopback names, the public name, what the admin listed."""
    names = {"localhost", "127.0.0.1", "::1", *(word.lower() for word in settings.allowed_hosts)}
    if settings.public_url:
        names.add(urlsplit(settings.public_url).hostname or "")
    if not _is_unspecified(settings.host):
        names.add(settings.host.lower())
    is_open = not settings.is_private or settings.allow_plain_http == "lan"
    return HostRule(names=frozenset(names), any_address=is_open and not settings.is_loopback)


class Shield:
    """The outermost layer: gives each request an id, refuses foreign hosts and cross-site requests, sets headers."""

    def __init__(self, app: ASGIApp, *, settings: Settings) -> None:
        """They are asked at each request, as admins change them. An https address has browsers told to stay there."""
        self._app = app
        self._settings = settings
        self._made_of: tuple[object, ...] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass what is ours on; answer 400 or 403 to the rest."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        request_id = secrets.token_hex(6)
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers["X-Request-Id"] = request_id
                headers.setdefault("Cache-Control", "private, no-cache")  # no-store would cost Back its place
                if headers.get("content-type", "").startswith("text/html"):
                    headers.add_vary_header("HX-Request")
                if self._settings.public_url.startswith("https://"):
                    headers["Strict-Transport-Security"] = "max-age=31536000"
            await send(message)

        scope["headers"] = [(name, _plain(value) if name == b"cookie" else value) for name, value in scope["headers"]]
        refused = self._refused(scope)
        if refused is not None:
            return await refused(scope, receive, send_with_headers)
        return await self._app(scope, receive, send_with_headers)

    def _hosts(self) -> HostRule:
        """The rule in force: made anew once what it is made of has changed, not at each request."""
        now = self._settings
        made_of = (now.host, now.container, now.public_url, tuple(now.allowed_hosts), now.allow_plain_http)
        if made_of != self._made_of:
            self._made_of, self._rule = made_of, host_rule(now)
        return self._rule

    def _refused(self, scope: Scope) -> Response | None:
        headers, hosts = Headers(scope=scope), self._hosts()
        is_probe = scope["path"] in OPEN_TO_PROBES and scope["method"] in SAFE_METHODS
        if not is_probe and not hosts.allows(headers.get("host", "")):
            return PlainTextResponse(_FOREIGN_HOST, 400)
        if is_cross_site(scope["method"], scope["path"], headers):
            is_renamed = hosts.allows(headers.get("origin", "").partition("://")[2])
            return PlainTextResponse(_OTHER_SITE + (_RENAMED if is_renamed else ""), 403)
        if "\0" in scope["path"]:
            return PlainTextResponse("An address holds no NUL character.\n", 400)
        if "transfer-encoding" in headers:
            return PlainTextResponse("Content-Length is required.\n", 411)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > LENGTH_DIGITS:  # `web/bodies.py` says what each route takes
            return PlainTextResponse("The request is too large.\n", 413)
        return None


def is_cross_site(method: str, path: str, headers: Headers) -> bool:
    """Tell whether another site's page made this request where only our own may.

    Unsafe methods must show `Sec-Fetch-Site` same-origin or none, else an `Origin` that is our host. Streams and other
    reads are refused only when the browser says that a foreign page asked and it is not a plain navigation.
    """
    site = headers.get("sec-fetch-site")
    if path.startswith((HOOKS, *API)):
        return False
    if path == MCP:
        return "origin" in headers and not _is_own_origin(headers)
    if method not in SAFE_METHODS:
        return site not in ("same-origin", "none") if site else not _is_own_origin(headers)
    is_stream = path.endswith("/events") or "text/event-stream" in headers.get("accept", "")
    if site is None:
        return is_stream and "origin" in headers and not _is_own_origin(headers)
    if site in ("same-origin", "none"):
        return False
    return is_stream or headers.get("sec-fetch-mode", "navigate") != "navigate"


def is_from_page(headers: Headers) -> bool:
    """Tell whether a browser says that a page of another site made this request, whatever its method."""
    is_foreign = headers.get("sec-fetch-site", "none") not in ("same-origin", "none")
    return is_foreign or ("origin" in headers and not _is_own_origin(headers))


def set_login(request: Request, response: Response, token: str) -> None:
    """Put the login's token into the one cookie there is."""
    secure = is_secure(request)
    response.set_cookie(
        cookie_name(secure),
        token,
        max_age=COOKIE_LIFE_S,
        path="/",
        secure=secure,
        httponly=True,
        samesite="lax",
    )


def clear_login(request: Request, response: Response) -> None:
    """Take the cookie away."""
    secure = is_secure(request)
    response.delete_cookie(cookie_name(secure), path="/", secure=secure, httponly=True, samesite="lax")


def login_token(request: Request) -> str:
    """The token of the request's login cookie, or ""."""
    return request.cookies.get(cookie_name(is_secure(request)), "")


def is_secure(request: Request) -> bool:
    """Tell whether the browser came over https (a trusted proxy's word counts, uvicorn has checked it)."""
    return request.url.scheme == "https"


def cookie_name(secure: bool) -> str:
    """`__Host-` names cannot be set by a neighbouring site, but only exist over https."""
    return SECURE_COOKIE if secure else COOKIE


def client(request: Request) -> tuple[str, str]:
    """Where a request came from: its address (uvicorn has sorted out trusted proxies) and the browser's own name."""
    return request.client.host if request.client else "", request.headers.get("user-agent", "")[:200]


def is_phone(request: Request) -> bool:
    """Tell whether a phone asks, by its browser's own name: it shares links by itself, and scans none of its own."""
    return "Mobi" in client(request)[1]


def local_path(value: str, otherwise: str = "/") -> str:
    """A path on this site to go on to, or `otherwise`: never another site, whatever the form said."""
    if not value.startswith("/") or value.startswith("//"):
        return otherwise
    return otherwise if any(char in value for char in "\\\r\n\t") else value


def _plain(cookies: bytes) -> bytes:
    """Cookies without those that have an escape: none of ours has, and Python before 3.11.10 takes seconds for one."""
    return cookies if b"\\" not in cookies else b";".join(one for one in cookies.split(b";") if b"\\" not in one)


def _is_own_origin(headers: Headers) -> bool:
    origin = headers.get("origin", "")
    host = origin.partition("://")[2]  # cut by hand: a parser raises on some
    return bool(host) and host.lower() == headers.get("host", "").lower()


def _host_name(header: str) -> str:
    host = header.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_unspecified(host: str) -> bool:
    return _is_address(host) and ipaddress.ip_address(host).is_unspecified
