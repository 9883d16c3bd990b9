"""Whom TLS believes: the system's certificate authorities, those of `certifi`, and what a form adds for one server."""

import os
import re
import ssl
from collections.abc import Mapping
from contextlib import suppress
from functools import cache, lru_cache

import certifi

_REFUSED = re.compile(r"certificate verify failed: ([^(\n]+)")
OWN = "If it is signed by an authority of your own, paste that authority's certificate under “Certificate authority”."


def untrusted(*failures: str) -> str:
    """Return what a person reads where one of these failures is a certificate that is not trusted; "" where none is."""
    found = next((match for match in map(_REFUSED.search, failures) if match), None)
    return f"Its certificate is not trusted ({found[1].strip(' .')}). {OWN}" if found else ""


@cache
def certificates() -> ssl.SSLContext:
    """Return what TLS trusts; read once a process, because each reading holds the event loop for 30 to 150 ms."""
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
    context = ssl.create_default_context()
    with suppress(OSError):  # an empty or missing one: the system's is enough
        context.load_verify_locations(cafile=certifi.where())
    return context


def unusable(environ: Mapping[str, str]) -> str:
    """Return what is wrong with the authorities that are trusted here, in words; "" for nothing."""
    named = environ.get("SSL_CERT_FILE")
    try:
        if named:
            ssl.create_default_context(cafile=named)
    except OSError:
        return f"SSL_CERT_FILE names {named!r}, which cannot be read as certificates: its authorities are not trusted."
    folder = ssl.get_default_verify_paths().capath
    if not certificates().cert_store_stats()["x509_ca"] and not (folder and os.listdir(folder)):
        return "No certificate authority is known here: no model or page can be reached by https."
    return ""
