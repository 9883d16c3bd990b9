"""The egress rule for SDKs of models and of MCP: an httpx2 client whose connections are vetted ahead of being dialled.

The twin of `base/http.py` for httpx2, which the SDKs bring. No redirects: an API key must not travel to another host.
"""

import ssl
from functools import cache

import httpcore2
import httpx2

from cortex.base.address import AddressPolicy
from cortex.base.dial import Resolver, guarded_pool, resolve


@cache
def certificates() -> ssl.SSLContext:
    """What TLS trusts, read once a process, as in `base/http.py`."""
    return httpx2.create_ssl_context(trust_env=False)


class GuardedTransport2(httpx2.AsyncHTTPTransport):
    """httpx2's transport over the guarded backend."""

    def __init__(
        self, policy: AddressPolicy, resolver: Resolver = resolve, inner: httpcore2.AsyncNetworkBackend | None = None
    ) -> None:
        super().__init__(verify=certificates(), trust_env=False)
        # httpx2 offers no parameter for the backend; the pool it has just made holds no connection yet.
        self._pool = guarded_pool(httpcore2, certificates(), policy, resolver, inner)


def open_client(policy: AddressPolicy, *, connect_s: float, read_s: float) -> httpx2.AsyncClient:
    """A client for an SDK under this policy; close it with `aclose`."""
    return httpx2.AsyncClient(
        transport=GuardedTransport2(policy),
        trust_env=False,
        timeout=httpx2.Timeout(read_s, connect=connect_s),
        follow_redirects=False,
    )
