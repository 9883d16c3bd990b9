"""Opens a host by name under an egress policy: resolves once, vets every address, hands back what may be dialled.

`base/http.py` (httpx, for ourselves) and `base/egress.py` (httpx2, for the MCP package) open every connection with
`guarded_pool`, redirects included. Their cores, httpcore and httpcore2, are of one shape and share no type: hence Any.
"""

import asyncio
import re
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

from cortex.base.address import AddressPolicy, is_inside, vet

Resolver = Callable[[str, int], Awaitable[list[str]]]

RESOLVE_S = 10.0
_UNKNOWN = re.compile(r"(\S+) could not be looked up")


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host by the system's resolver, in its order, each once; OSError when there are none."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(RESOLVE_S):
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def vetted(host: str, port: int, policy: AddressPolicy, resolver: Resolver = resolve) -> list[str]:
    """The addresses that a connection to host:port may use; NotAllowed as soon as one of them is forbidden.

    Connect to one of these strings, never to the name again: a second look-up could answer differently (rebinding).
    """
    if policy.kind == "named":
        vet("127.0.0.1", policy, host=host, port=port)  # a host that is not configured is not even looked up
    addresses = [
        str(vet(address.split("%")[0], policy, host=host, port=port)) for address in await resolver(host, port)
    ]
    if not addresses:
        raise OSError(f"{host} has no address")
    return addresses


def guarded_pool(
    core: Any, context: ssl.SSLContext, policy: AddressPolicy, resolver: Resolver, inner: Any = None
) -> Any:
    """A connection pool of `core`, which is httpcore or httpcore2; `inner`: the backend that dials, its own if None."""
    return core.AsyncConnectionPool(
        ssl_context=context,
        max_connections=20,
        max_keepalive_connections=5,
        keepalive_expiry=30.0,
        network_backend=_GuardedBackend(core, policy, resolver, inner or core.AnyIOBackend()),
    )


def unknown_host(*failures: str) -> str:
    """Give what a person reads where one of these failures is that a host outside has no address; "" where none is."""
    found = next((match for match in map(_UNKNOWN.search, failures) if match), None)
    host = found.group(1) if found else ""
    if is_inside(host):
        return ""
    return f"This server could not look up {host}: it may have no internet connection or no DNS, or the name is wrong."


class _GuardedBackend:
    """A network backend with names resolved and vetted here; TLS still checks the name of the URL."""

    def __init__(self, core: Any, policy: AddressPolicy, resolver: Resolver, inner: Any) -> None:
        self._core = core
        self._policy = policy
        self._resolver = resolver
        self._inner = inner

    async def connect_tcp(self, host: str, port: int, *given: Any, **named: Any) -> Any:
        """A connection to the first vetted address that answers."""
        try:
            addresses = await vetted(host, port, self._policy, self._resolver)
        except TimeoutError as error:
            raise self._core.ConnectTimeout(f"{host} could not be looked up in time") from error
        except OSError as error:
            raise self._core.ConnectError(f"{host} could not be looked up") from error
        failure: Exception | None = None
        for address in addresses:
            try:
                return await self._inner.connect_tcp(address, port, *given, **named)
            except (self._core.ConnectError, self._core.ConnectTimeout) as error:
                failure = error
        raise failure or self._core.ConnectError(f"{host} has no address")

    async def connect_unix_socket(self, *_: Any, **__: Any) -> Any:
        """Never: a socket file is inside by definition."""
        raise self._core.ConnectError("socket files are not reached")

    async def sleep(self, seconds: float) -> None:
        """Wait, for the core's retries (which are off)."""
        await asyncio.sleep(seconds)
