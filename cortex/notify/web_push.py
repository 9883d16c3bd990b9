"""Web Push to one browser: declarative JSON, encrypted for that browser, signed with the server's VAPID key.

pywebpush encrypts and signs; the request leaves through Cortex's own guarded client, which pywebpush's would not.
"""

import json
import re
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from pywebpush import Vapid as Signer  # type: ignore[import-untyped]
from pywebpush import WebPusher

from cortex.base.errors import DeliveryError, UserError
from cortex.notify import ChannelContext, Vapid, ready
from cortex.notify._http import HttpAnswer, checked_url, post
from cortex.notify._keys import decoded, is_point, public_key
from cortex.notify._words import cut, json_bytes, label, link, named, shown
from cortex.ports.channels import Notice, Target

# A push service takes 4,096 bytes (RFC 8030); aes128gcm needs 86 for its header, 16 for the tag, 1 for the delimiter.
PAYLOAD_BYTES = 4_096 - 103
AUTH_BYTES = 16
TTL_MOST_S = 28 * 86_400  # what Google's and Mozilla's keep at most
SIGNED_S = 12 * 3_600  # Apple refuses more than a day
_ORIGIN = re.compile(r"https?://[^/:]+(:\d+)?")
_UNKNOWN_DEVICE = "This device no longer takes notifications; switch them on again on it."
_HINTS = {
    400: "it does not take the message or the signature.",
    401: "it refuses Cortex's signature (VAPID); an administrator checks the clock and CORTEX_PUSH_SUBJECT.",
    403: (
        "it refuses Cortex's key (VAPID). Switch notifications off and on again on this device; if every device says "
        "so, an administrator sets CORTEX_PUSH_SUBJECT to a real mailto: or https address."
    ),
    413: "the notification is too large for it.",
}


def open_channel(surroundings: ChannelContext) -> "WebPush":
    """The channel; UserError when the server has no key or no contact."""
    if surroundings.vapid is None or not surroundings.vapid.keys or not surroundings.vapid.subject:
        raise UserError(
            "Push is not set up: set CORTEX_PUSH_SUBJECT to mailto:you@example.org, "
            "or CORTEX_PUBLIC_URL to the page's https address."
        )
    return WebPush(surroundings, surroundings.vapid)


class WebPush:
    """Push to browsers that subscribed."""

    def __init__(self, surroundings: ChannelContext, vapid: Vapid) -> None:
        self._surroundings = surroundings
        self._subject = vapid.subject
        self._newest = vapid.keys[0]
        self._keys = {public_key(key): key for key in vapid.keys}

    def checked(self, target: Target) -> Target:
        """A subscription whose endpoint may be reached and whose keys are keys."""
        url = checked_url(target.address, self._surroundings.hosts)
        if not _ORIGIN.fullmatch(_origin(url)):
            raise UserError("A push endpoint needs a host name.", field="address")
        if not is_point(target.key):
            raise UserError("The subscription's key p256dh is not valid. Subscribe again.", field="key")
        try:
            is_whole = len(decoded(target.secret)) == AUTH_BYTES
        except ValueError:
            is_whole = False
        if not is_whole:
            raise UserError("The subscription's secret auth is not valid. Subscribe again.", field="secret")
        return replace(target, address=url)

    async def send(self, notice: Notice, target: Target) -> None:
        """Push it; fate gone when the browser's subscription is no more."""
        target = ready(self, target)
        keys = {"p256dh": target.key, "auth": target.secret}
        pusher = WebPusher({"endpoint": target.address, "keys": keys})
        body: bytes = pusher.encode(payload(notice, self._surroundings.site), "aes128gcm")["body"]
        headers = {"Content-Encoding": "aes128gcm", "Content-Type": "application/octet-stream"}
        headers |= {"TTL": str(min(max(notice.ttl_s, 0), TTL_MOST_S)), "Urgency": notice.urgency}
        headers |= {"Topic": named(notice.tag)} if notice.tag else {}
        headers |= self._signed(target)
        answer = await post(target.address, body, headers, self._surroundings, hide=(target.key, target.secret))
        _settle(answer)

    def _signed(self, target: Target) -> dict[str, str]:
        """The header that names this server, under the key with which the device subscribed while it is still kept."""
        signer = Signer.from_raw(self._keys.get(target.signed_for, self._newest).encode())
        signer.conf["no-strict"] = True  # its own check of `sub` refuses an address with a port; ours ran before
        until = int(self._surroundings.clock().timestamp()) + SIGNED_S
        headers: dict[str, str] = signer.sign({"aud": _origin(target.address), "exp": until, "sub": self._subject})
        return headers


def payload(notice: Notice, site: str) -> bytes:
    """The notice as a Declarative Web Push message (W3C Push API), never above PAYLOAD_BYTES: the text is cut first.

    Should the links alone be too long, the buttons are left out (the page that opens has them), then the page's path.
    """
    said = shown(notice)
    for fitting in (said, replace(said, actions=()), replace(said, actions=(), path="/")):
        empty = _message(replace(fitting, text=""), site)
        left = PAYLOAD_BYTES - len(_bytes(empty))
        if left >= 0:
            break
    empty["notification"]["body"] = cut(fitting.text, left, json_bytes)
    return _bytes(empty)


def _message(notice: Notice, site: str) -> dict[str, Any]:
    notification: dict[str, Any] = {
        "title": notice.title,
        "body": notice.text,
        "navigate": link(site, notice.path),
        "data": {"id": notice.id, "kind": notice.kind},
    }
    if notice.tag:
        notification["tag"] = named(notice.tag)
    if notice.actions:
        notification["actions"] = [
            {"action": one.kind, "title": label(one), "navigate": link(site, one.path)} for one in notice.actions
        ]
    message: dict[str, Any] = {"web_push": 8030, "notification": notification}
    if notice.badge is not None:
        # The standard has it beside the notification, Safari 18.4 inside: the other one is passed over.
        notification["app_badge"] = message["app_badge"] = max(notice.badge, 0)
    return message


def _bytes(message: dict[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()


def _settle(answer: HttpAnswer) -> None:
    if answer.is_ok:
        return
    if answer.status in (404, 410):
        raise DeliveryError(_UNKNOWN_DEVICE, fate="gone")
    raise answer.failure(_HINTS.get(answer.status, ""))
