"""Whom TLS believes: the system's certificate authorities, those of `certifi`, and what people paste for one server.

The line ends of a pasted certificate may be gone.
"""

import os
import re
import ssl
from collections.abc import Mapping
from contextlib import suppress
from functools import cache, lru_cache
from typing import Annotated

import certifi
from pydantic import AfterValidator, Field

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


_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----(?P<body>[A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----")
_LINE = 64


def usable_certificates(text: str) -> str:
    """Give the certificates in the text as PEM; ValueError where there is none, or one that TLS cannot read."""
    pem = _certificates_of(text)
    try:
        if pem:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
    except ssl.SSLError:
        raise ValueError("this certificate cannot be read") from None
    return pem


def _certificates_of(text: str) -> str:
    found = [re.sub(r"\s", "", match["body"]) for match in _CERTIFICATE.finditer(text)]
    if text.strip() and not found:
        raise ValueError("paste the certificate whole, from BEGIN to END CERTIFICATE")
    bodies = ("\n".join(body[at : at + _LINE] for at in range(0, len(body), _LINE)) for body in found)
    return "\n".join(f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n" for body in bodies)


Certificates = Annotated[
    str,
    Field(
        title="Certificate authority",
        description="PEM text, for your own certificate. Leave empty to use the ones this machine trusts.",
        max_length=20_000,
    ),
    AfterValidator(usable_certificates),
]
