"""Certificates as people paste them into a field, which may have taken the line ends away. For the forms of systems."""

import re
import ssl

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----(?P<body>[A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----")
_LINE = 64


def usable_certificates(text: str) -> str:
    """As `certificates_of`; ValueError also for what TLS cannot read."""
    pem = certificates_of(text)
    try:
        if pem:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
    except ssl.SSLError:
        raise ValueError("this certificate cannot be read") from None
    return pem


def certificates_of(text: str) -> str:
    """The certificates in the text, as PEM with its line ends; "" for an empty text. ValueError where there is none."""
    found = [re.sub(r"\s", "", match["body"]) for match in _CERTIFICATE.finditer(text)]
    if text.strip() and not found:
        raise ValueError("paste the certificate whole, from BEGIN to END CERTIFICATE")
    bodies = ("\n".join(body[at : at + _LINE] for at in range(0, len(body), _LINE)) for body in found)
    return "\n".join(f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n" for body in bodies)
