"""Certificates as people paste them into a field, which may have taken the line ends away. For the forms of systems."""

import re

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----(?P<body>[A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----")
_LINE = 64


def certificates_of(text: str) -> str:
    """The certificates in the text, as PEM with its line ends; "" for an empty text. ValueError where there is none."""
    found = [re.sub(r"\s", "", match["body"]) for match in _CERTIFICATE.finditer(text)]
    if text.strip() and not found:
        raise ValueError("paste the certificate whole, from BEGIN to END CERTIFICATE")
    bodies = ("\n".join(body[at : at + _LINE] for at in range(0, len(body), _LINE)) for body in found)
    return "\n".join(f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n" for body in bodies)
