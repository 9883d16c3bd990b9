"""Opens a host by name under an egress policy: resolves once, vets every address, hands back what may be dialled.

The network backends of `base/http.py` and `providers/egress.py` call it for every new connection, redirects included.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable

from cortex.base.address import Policy, vet
from cortex.base.errors import NotAllowed

Resolver = Callable[[str, int], Awaitable[list[str]]]

RESOLVE_S = 10.0


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host by the system's resolver, in its order, each once; OSError when there are none."""
    loop = asyncio.get_running_loop()
    found = await asyncio.wait_for(loop.getaddrinfo(host, port, type=socket.SOCK_STREAM), RESOLVE_S)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def vetted(host: str, port: int, policy: Policy, resolver: Resolver = resolve) -> list[str]:
    """The addresses that a connection to host:port may use; NotAllowed as soon as one of them is forbidden.

    Connect to one of these strings, never to the name again: a second look-up could answer differently (rebinding).
    """
    if policy.kind == "none":
        raise NotAllowed("Outgoing connections are off.")
    if policy.kind == "named":
        vet("127.0.0.1", policy, host=host, port=port)  # a host that is not configured is not even looked up
    addresses = [
        str(vet(address.split("%")[0], policy, host=host, port=port)) for address in await resolver(host, port)
    ]
    if not addresses:
        raise OSError(f"{host} has no address")
    return addresses
