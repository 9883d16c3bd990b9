"""A browser's half of Web Push: its keys, what it decrypts, what it reads in the sender's signature."""

import base64
import json
import os
import re
from typing import Any

import http_ece  # type: ignore[import-untyped]
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from py_vapid import Vapid02  # type: ignore[import-untyped]

from cortex.ports.channels import Target


class Browser:
    """One subscription."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._auth = os.urandom(16)

    def target(self, endpoint: str, *, signed_for: str = "") -> Target:
        """Where to push to."""
        point = self._key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        return Target(address=endpoint, key=plain(point), secret=plain(self._auth), signed_for=signed_for)

    def decrypted(self, body: bytes) -> bytes:
        """What was said."""
        raw: bytes = http_ece.decrypt(body, private_key=self._key, auth_secret=self._auth, version="aes128gcm")
        return raw

    def read(self, body: bytes) -> dict[str, Any]:
        """What was said, as JSON."""
        value: dict[str, Any] = json.loads(self.decrypted(body))
        return value


def signature(authorization: str) -> tuple[dict[str, Any], str]:
    """The claims and the public key of a VAPID header whose signature holds."""
    assert Vapid02.verify(authorization)
    match = re.fullmatch(r"vapid t=[\w-]+\.([\w-]+)\.[\w-]+,k=([\w-]+)", authorization)
    assert match is not None
    claims = match[1] + "=" * (-len(match[1]) % 4)
    return json.loads(base64.urlsafe_b64decode(claims)), match[2]


def plain(raw: bytes) -> str:
    """base64url without padding, as `subscription.toJSON()` gives it."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
