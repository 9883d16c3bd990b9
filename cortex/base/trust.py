"""Whom TLS believes: the system's certificate authorities, those of `certifi`, and what a form adds for one server."""

import re
import ssl
from functools import cache, lru_cache

import certifi

_REFUSED = re.compile(r"certificate verify failed: ([^(\n]+)")
OWN = "If it is signed by an authority of your own, paste that authority's certificate under “Certificate authority”."


def untrusted(*failures: str) -> str:
    """What a person reads where one of these failures is a certificate that is not trusted; "" where none is."""
    found = next((match for match in map(_REFUSED.search, failures) if match), None)
    return f"Its certificate is not trusted ({found[1].strip(' .')}). {OWN}" if found else ""


@cache
def certificates() -> ssl.SSLContext:
    """What TLS trusts; read once a process, because each reading holds the event loop for 30 to 150 ms."""
    return _context()


@lru_cache(maxsize=32)
def trusting(ca: str) -> ssl.SSLContext:
    """The same, and these certificates (PEM) besides. Call it off the loop, as `certificates`."""
    if not ca:
        return certificates()
    context = _context()
    context.load_verify_locations(cadata=ca)
    return context


def _context() -> ssl.SSLContext:
    """A private authority is in the system's store, or where SSL_CERT_FILE says; a bare system has only `certifi`."""
    context = ssl.create_default_context(cafile=certifi.where())
    context.load_default_certs()
    return context
