"""Certificates as people paste them into a field, which may have taken the line ends away. For the forms of systems."""

import re
import ssl
from typing import Annotated

from pydantic import AfterValidator, Field

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
