"""Addresses at which people are reached: a mail address, and the contact that push services ask for. Pure."""

import ipaddress
import re
from urllib.parse import urlsplit

from cortex.base.web_address import ascii_host

LOCAL_CHARACTERS = 64
ADDRESS_CHARACTERS = 254  # RFC 5321, as a path of 256 with its brackets
# Top names that no public name has, by https://www.iana.org/assignments/special-use-domain-names (2026-11) and by the
# habits of routers; push services refuse a contact there.
ONE_NETWORK = (
    *("alt", "arpa", "corp", "example", "fritz", "home", "host", "internal", "intranet", "invalid", "lan", "local"),
    *("localdomain", "localhost", "mail", "onion", "private", "test"),
)
ONE_NETWORK_BELOW = (".fritz.box", ".speedport.ip")
_LOCAL = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_HOST = re.compile(
    r"(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
)


def mail_address(text: str) -> str:
    """The address as mail servers take it (a domain of other letters in its ASCII form); ValueError says what is wrong.

    No quoted names and no display name: what stands here goes into a header and onto an SMTP line.
    """
    local, at, domain = text.strip().rpartition("@")
    if not at:
        raise ValueError("is no e-mail address; write one such as ada@example.org")
    if not _LOCAL.fullmatch(local) or len(local) > LOCAL_CHARACTERS:
        raise ValueError("has characters before the @ that Cortex cannot send to; use another address")
    host = _plain_host(domain)
    if not host or len(local) + 1 + len(host) > ADDRESS_CHARACTERS:
        raise ValueError("is no e-mail address; write one such as ada@example.org")
    return f"{local}@{host}"


def push_subject(text: str) -> str:
    """Return who a push service may write to (RFC 8292, `sub`); ValueError where Apple's would refuse it."""
    word = text.strip()
    scheme, _, rest = word.partition(":")
    if scheme.lower() == "mailto":
        address = mail_address(rest)
        if _is_real(address.rpartition("@")[2]):
            return f"mailto:{address}"
    elif scheme.lower() == "https":
        parts = urlsplit(word)
        host = _plain_host(parts.hostname or "")
        if _is_real(host) and not parts.username:
            return word
    raise ValueError("must be a real contact: mailto:you@example.org or https://cortex.example.org")


def _plain_host(host: str) -> str:
    """The host in ASCII and lower case; "" when it is none."""
    try:
        plain = ascii_host(host)
    except ValueError:
        return ""
    return plain if _HOST.fullmatch(plain) else ""


def _is_real(host: str) -> bool:
    name = host.rstrip(".")
    top = name.rpartition(".")[2]
    if "." not in name or not top or top.isdigit() or top in ONE_NETWORK or f".{name}".endswith(ONE_NETWORK_BELOW):
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return True
    return False
