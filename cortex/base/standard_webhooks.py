"""Signatures of webhooks, sent and received, as Standard Webhooks has them (standardwebhooks.com). Pure.

The signature is HMAC-SHA256 over "id.timestamp.body".
"""

import base64
import hashlib
import hmac
import secrets

PREFIX = "whsec_"  # the mark before a secret that is base64


def new_secret() -> str:
    """A secret of 32 bytes for both sides."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode("ascii")


def key_of(secret: str) -> bytes:
    """The bytes that sign: behind the mark in base64, else the characters as they are. ValueError for no base64."""
    if secret.startswith(PREFIX):
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    return secret.encode("utf-8")


def signature(id: str, timestamp: int, body: bytes, secret: str) -> str:
    """Return what signs this body, sent at this second: in base64, without the version "v1," before it."""
    digest = hmac.new(key_of(secret), f"{id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return base64.b64encode(digest).decode("ascii")
