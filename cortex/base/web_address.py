"""Web addresses that people type: where one leads, or why no library below would take it. Pure; resolves nothing.

Who would find out later finds out in the middle of a request, from an error that no one expects there.
"""

import ipaddress
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

import idna

HOST_CHARACTERS = 253
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")  # with the underscore, which containers' names have
_IN_BRACKETS = re.compile(r"([^][]*@)?\[[^][]*:[^][]*](:[0-9]*)?")  # parsers drop what stands behind, or take `[v1.a]`
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
NO_HOST = "the host in this address is none: use letters, digits, dots and hyphens, or an IP address"
NO_ADDRESS = "this is not a web address"


def host_ports(words: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """Words such as `nas.local:5232`, as they were checked, as pairs of host and port."""
    pairs = (word.partition(":") for word in words)
    return tuple((host.lower(), int(port)) for host, _, port in pairs)


def ascii_host(host: str) -> str:
    """The host as it is sent: in small ASCII letters, without a final dot. ValueError, in words, for what is none.

    Other letters are encoded by IDNA 2008, as httpx does, which takes no sign for another: `①` is not `1`. A host that
    ends in a number is an IPv4 address as four decimal numbers, and nothing shorter: resolvers take `127.1` for one.
    """
    if len(host) > HOST_CHARACTERS:
        raise ValueError(NO_HOST)
    if ":" in host and "%" not in host:
        try:
            return str(ipaddress.IPv6Address(host))
        except ValueError:
            raise ValueError(NO_HOST) from None
    try:
        plain = host.lower().removesuffix(".") if host.isascii() else idna.encode(host.lower()).decode().rstrip(".")
        if "xn--" in plain:
            idna.decode(plain)  # as httpx does, to show it
    except (UnicodeError, ValueError):  # idna's own errors are the former
        raise ValueError(NO_HOST) from None
    labels = plain.split(".")
    is_numeric = _NUMBER.fullmatch(labels[-1]) is not None
    if len(plain) > HOST_CHARACTERS or not all(map(_LABEL.fullmatch, labels)) or (is_numeric and not _is_v4(plain)):
        raise ValueError(NO_HOST)
    return plain


def web_place(url: str) -> tuple[str, int]:
    """Host, in ASCII, and port of an http or https address. ValueError, in words, for what is none."""
    try:
        url.encode()
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(NO_ADDRESS) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or not url.isprintable():
        raise ValueError(NO_ADDRESS)
    has_brackets = any(sign in parts.netloc for sign in "[]")
    if any(sign in parts.netloc for sign in " \\") or (has_brackets and not _IN_BRACKETS.fullmatch(parts.netloc)):
        raise ValueError(NO_HOST)
    return ascii_host(parts.hostname), port or (443 if parts.scheme == "https" else 80)


def bare_address(url: str, example: str) -> str:
    """An address that stands for a server alone, without its last slash. ValueError, in words, for any other."""
    web_place(url)
    parts = urlsplit(url)
    if not url.isascii() or " " in url or parts.query or parts.fragment or parts.username is not None:
        raise ValueError(f"write an address such as {example}, without name, query and spaces")
    return url.rstrip("/")


def _is_v4(host: str) -> bool:
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        return False
    return True
