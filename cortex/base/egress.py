"""The egress rule for the MCP package: httpx2, whose connections are vetted ahead of being dialled.

The twin of `base/http.py` for httpx2, which that package brings.
"""

import httpcore2
import httpx2

from cortex.base.address import AddressPolicy
from cortex.base.dial import Resolver, guarded_pool, resolve
from cortex.base.trust import certificates


class GuardedTransport2(httpx2.AsyncHTTPTransport):
    """httpx2's transport over the guarded backend."""

    def __init__(
        self,
        policy: AddressPolicy,
        resolver: Resolver = resolve,
        inner: httpcore2.AsyncNetworkBackend | None = None,
    ) -> None:
        trusted = certificates()
        super().__init__(verify=trusted, trust_env=False)
        # httpx2 offers no parameter for the backend; the pool it has just made holds no connection yet.
        self._pool = guarded_pool(httpcore2, trusted, policy, resolver, inner)
