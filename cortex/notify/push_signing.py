"""Encrypts a push for one browser (RFC 8291) and signs it as this server (RFC 8292); pywebpush is loaded with it."""

import re
from urllib.parse import urlsplit

from pywebpush import Vapid as Signer  # type: ignore[import-untyped]
from pywebpush import WebPusher

from cortex.base.errors import UserError
from cortex.notify.context import Vapid
from cortex.notify.push_keys import decoded, is_point, public_key
from cortex.ports.channels import Target

AUTH_BYTES = 16
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
        signer = Signer.from_raw(self._keys.get(target.signed_for, self._newest).encode())
        signer.conf["no-strict"] = True  # its own check of `sub` refuses an address with a port; ours ran before
        headers: dict[str, str] = signer.sign({"aud": _origin(target.address), "exp": until, "sub": self._subject})
        return headers


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


def encrypted(payload: bytes, target: Target) -> bytes:
    """The payload as only this browser reads it, in aes128gcm."""
    pusher = WebPusher({"endpoint": target.address, "keys": {"p256dh": target.key, "auth": target.secret}})
    body: bytes = pusher.encode(payload, "aes128gcm")["body"]
    return body


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()
