"""The egress rule for the model SDKs: an httpx2 client whose every connection is resolved, vetted and then dialled.

The twin of `base/http.py` for httpx2, which the SDKs bring. No redirects: an API key must not travel to another host.
"""

import asyncio
import ssl
from collections.abc import Iterable
from functools import cache

import httpcore2
import httpx2

from cortex.base.address import Policy
from cortex.base.dial import Resolver, resolve, vetted


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """httpcore2's asyncio backend, with names resolved and vetted here; TLS still checks the name of the URL."""

    def __init__(self, policy: Policy, resolver: Resolver, inner: httpcore2.AsyncNetworkBackend | None = None) -> None:
        self._policy = policy
        self._resolver = resolver
        self._inner = inner or httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is httpcore2's
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """A connection to the first vetted address that answers."""
        try:
            addresses = await vetted(host, port, self._policy, self._resolver)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(f"{host} could not be looked up in time") from error
        except OSError as error:
            raise httpcore2.ConnectError(f"{host} could not be looked up") from error
        failure: Exception | None = None
        for address in addresses:
            try:
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore2.ConnectError(f"{host} has no address")

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is httpcore2's
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Never: a socket file is inside by definition."""
        raise httpcore2.ConnectError("socket files are not reached")

    async def sleep(self, seconds: float) -> None:
        """Wait, for httpcore2's retries (which are off)."""
        await asyncio.sleep(seconds)


@cache
def certificates() -> ssl.SSLContext:
    """What TLS trusts, read once a process, as in `base/http.py`."""
    return httpx2.create_ssl_context(trust_env=False)


class GuardedTransport(httpx2.AsyncHTTPTransport):
    """httpx2's transport over the guarded backend."""

    def __init__(
        self, policy: Policy, resolver: Resolver = resolve, inner: httpcore2.AsyncNetworkBackend | None = None
    ) -> None:
        super().__init__(verify=certificates(), trust_env=False)
        # httpx2 offers no parameter for the backend; the pool it has just made holds no connection yet.
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=certificates(),
            max_connections=20,
            max_keepalive_connections=5,
            keepalive_expiry=30.0,
            network_backend=GuardedBackend(policy, resolver, inner),
        )


def open_client(policy: Policy, *, connect_s: float, read_s: float, resolver: Resolver = resolve) -> httpx2.AsyncClient:
    """A client for a model SDK under this policy; close it with `aclose`."""
    return httpx2.AsyncClient(
        transport=GuardedTransport(policy, resolver),
        trust_env=False,
        timeout=httpx2.Timeout(read_s, connect=connect_s),
        follow_redirects=False,
    )
