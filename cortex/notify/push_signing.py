"""Encrypts a push for one browser (RFC 8291) and signs it as this server (RFC 8292); cryptography is loaded with it."""

import os
import re
from urllib.parse import urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from cortex.base.errors import UserError
from cortex.notify.context import Vapid
from cortex.notify.push_keys import decoded, is_point, new_key, point, private, public_key
from cortex.ports.channels import Target

AUTH_BYTES = 16
SALT_BYTES = 16
RECORD_BYTES = 4_096
LAST_RECORD = b"\x02"  # the delimiter in front of no padding (RFC 8188)
_ORIGIN = re.compile(r"https?://[^/:]+(:\d+)?")


class PushSigner:
    """Signs with the server's keys."""

    def __init__(self, vapid: Vapid) -> None:
        self._subject = vapid.subject
        self._newest = vapid.keys[0]
        self._keys = {public_key(key): key for key in vapid.keys}

    def signed(self, target: Target, until: int) -> dict[str, str]:
        """The header that names this server, under the key with which the device subscribed while it is still kept.

        `until`: seconds since 1970.
        """
        key = self._keys.get(target.signed_for, self._newest)
        claims = {"aud": _origin(target.address), "exp": until, "sub": self._subject}
        token = jwt.encode(claims, private(key), algorithm="ES256")
        return {"Authorization": f"vapid t={token},k={public_key(key)}"}


def check(target: Target) -> None:
    """Raise UserError for a subscription whose endpoint has no host, or whose keys are none."""
    if not _ORIGIN.fullmatch(_origin(target.address)):
        raise UserError("A push endpoint needs a host name.", field="address")
    if not is_point(target.key):
        raise UserError("The subscription's key p256dh is not valid. Subscribe again.", field="key")
    try:
        is_whole = len(decoded(target.secret)) == AUTH_BYTES
    except ValueError:
        is_whole = False
    if not is_whole:
        raise UserError("The subscription's secret auth is not valid. Subscribe again.", field="secret")


def encrypted(payload: bytes, target: Target, *, key: str = "", salt: bytes = b"") -> bytes:
    """The payload as only this browser reads it, in aes128gcm: one record, a header of 86 bytes and a tag of 16.

    `key`, `salt`: both new for each push unless given, as a test of known bytes does.
    """
    sender, salt = private(key or new_key()), salt or os.urandom(SALT_BYTES)
    theirs, ours = decoded(target.key), point(sender)
    shared = sender.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), theirs))
    secret = _derived(shared, decoded(target.secret), b"WebPush: info\0" + theirs + ours, 32)
    cipher = AESGCM(_derived(secret, salt, b"Content-Encoding: aes128gcm\0", 16))
    nonce = _derived(secret, salt, b"Content-Encoding: nonce\0", 12)
    header = salt + RECORD_BYTES.to_bytes(4, "big") + bytes([len(ours)]) + ours
    return header + cipher.encrypt(nonce, payload + LAST_RECORD, None)


def _derived(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(SHA256(), length, salt, info).derive(secret)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()
