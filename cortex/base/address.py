"""The one egress rule: which IP addresses an outgoing connection may reach. Pure; resolves nothing, opens nothing.

Called at the socket, with the address about to be connected to (`base/http.py`, `base/egress.py`); besides,
`network_of` says which addresses of those who come in are one.
"""

import ipaddress
from typing import Literal

from msgspec import Struct

from cortex.base.errors import NotAllowed
from cortex.base.web_address import ascii_host

IP = ipaddress.IPv4Address | ipaddress.IPv6Address


class AddressPolicy(Struct, frozen=True, kw_only=True):
    """Where requests may go: `public` addresses, or only the `named` host:port pairs."""

    kind: Literal["public", "named"]
    names: frozenset[tuple[str, int]] = frozenset()


PUBLIC = AddressPolicy(kind="public")


def named(*pairs: tuple[str, int]) -> AddressPolicy:
    """A policy for the exact hosts and ports that an admin configured; these may stand inside the network."""
    return AddressPolicy(kind="named", names=frozenset((_plain(host), port) for host, port in pairs))


# The IANA special-purpose registries (2025) and two vendors' host-only addresses; ranges without a public web server.
_V4_INSIDE = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's host agent
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
_V6_GLOBAL = ipaddress.IPv6Network("2000::/3")
_V6_INSIDE = tuple(ipaddress.IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "3fff::/20"))
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_TRANSLATED = ipaddress.IPv6Network("::ffff:0:0:0/96")

# Names that never stand in the public DNS (RFC 6761, 6762, 8375; ICANN 2024).
_LOCAL = frozenset({"localhost", "local", "internal", "lan"})

# Even an admin's own host name may not lead here: cloud metadata, multicast, "any".
_NEVER = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",
        "168.63.129.16/32",
        "169.254.0.0/16",
        "192.0.0.192/32",
        "100.100.100.200/32",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "::/128",
        "fd00:ec2::254/128",
        "fe80::/10",
        "ff00::/8",
    )
)


def vet(address: str | IP, policy: AddressPolicy, *, host: str = "", port: int = 0) -> IP:
    """The address as it will be reached (v4-in-v6 taken out of its wrapping); NotAllowed when the policy forbids it.

    `host` and `port` are what the URL said; the `named` policy compares them, `public` ignores them.
    """
    wrapped = ipaddress.ip_address(address) if isinstance(address, str) else address
    inner = _unmapped(wrapped)
    if policy.kind == "public":
        if not all(_is_public(each) for each in inner):
            raise NotAllowed(
                f"{host or wrapped} leads to an address inside a network ({wrapped}), which is not allowed."
            )
    else:
        if (_plain(host), port) not in policy.names:
            raise NotAllowed(f"{host}:{port} is not a configured address.")
        if any(each in network for each in inner for network in _NEVER):
            raise NotAllowed(f"{host}:{port} leads to {wrapped}, which is never allowed.")
    return inner[0] if len(inner) == 1 else wrapped


def is_inside_name(host: str) -> bool:
    """Tell whether a host, as a URL has it, says itself that it stands inside: an inside address, or a local name.

    A name that only resolves to one is not known here: `vet` refuses it at the socket.
    """
    name = _plain(host)
    try:
        vet(name, PUBLIC)
    except NotAllowed:
        return True
    except ValueError:
        return name.rpartition(".")[2] in _LOCAL or name.endswith(".home.arpa")
    return False


def is_inside(host: str) -> bool:
    """Tell the same where a name without a dot counts as one of the house, as for what an admin wrote down."""
    return is_inside_name(host) or not set(".:") & set(_plain(host))


def with_scheme(url: str) -> str:
    """The address with a scheme where it lacks one: `http` for a place in one's own network, `https` for any other."""
    if "://" in url:
        return url
    host = url.partition("/")[0]
    name = host.partition("]")[0].removeprefix("[") if host.startswith("[") else host.partition(":")[0]
    return f"{'http' if is_inside(name) else 'https'}://{url}"


def network_of(address: str) -> str:
    """Whose tries and connections count together: an IPv4 address, or the /64 of an IPv6 one, which one line has.

    What is no address is given back as it is.
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    return str(found.ipv4_mapped or ipaddress.IPv6Network((int(found), 64), strict=False))


def _plain(host: str) -> str:
    """A host name for comparing: as it is sent, in lower case, without brackets and final dot."""
    plain = host.strip("[]").rstrip(".").lower()
    if plain.isascii():
        return plain
    try:
        return ascii_host(plain)
    except ValueError:  # no library reaches it
        return plain


def _unmapped(address: IP) -> tuple[IP, ...]:
    """The addresses that a packet to this one may end at: itself, or what a tunnel form carries inside."""
    if isinstance(address, ipaddress.IPv4Address):
        return (address,)
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    low = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address in _NAT64 or address in _TRANSLATED:
        return (low, low)
    if address.sixtofour is not None:
        return (address.sixtofour, address.sixtofour)
    if address.teredo is not None:
        return address.teredo
    if (int(address) >> 32) & 0xFFFFFFFF in (0x00005EFE, 0x02005EFE):  # ISATAP carries a v4 address too
        return (address, low)
    return (address,)


def _is_public(address: IP) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _V4_INSIDE)
    if address.scope_id is not None:
        return False
    return address in _V6_GLOBAL and not any(address in network for network in _V6_INSIDE)
