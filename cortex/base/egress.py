"""The egress rule for SDKs of models and of MCP: an httpx2 client whose connections are vetted ahead of being dialled.

The twin of `base/http.py` for httpx2, which the SDKs bring. No redirects: an API key must not travel to another host.
"""

import ssl

import httpcore2
import httpx2

from cortex.base.address import AddressPolicy
from cortex.base.dial import Resolver, guarded_pool, resolve
from cortex.base.trust import certificates, trusting


class GuardedTransport2(httpx2.AsyncHTTPTransport):
    """httpx2's transport over the guarded backend."""

    def __init__(
        self,
        policy: AddressPolicy,
        resolver: Resolver = resolve,
        inner: httpcore2.AsyncNetworkBackend | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        trusted = context or certificates()
        super().__init__(verify=trusted, trust_env=False)
        # httpx2 offers no parameter for the backend; the pool it has just made holds no connection yet.
        self._pool = guarded_pool(httpcore2, trusted, policy, resolver, inner)


def open_client(policy: AddressPolicy, *, connect_s: float, read_s: float, ca: str = "") -> httpx2.AsyncClient:
    """A client for an SDK under this policy; close it with `aclose`. ca: authorities (PEM) to trust besides."""
    return httpx2.AsyncClient(
        transport=GuardedTransport2(policy, context=trusting(ca)),
        trust_env=False,
        timeout=httpx2.Timeout(read_s, connect=connect_s),
        follow_redirects=False,
    )
