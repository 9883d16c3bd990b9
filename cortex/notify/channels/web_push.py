"""Web Push to one browser: declarative JSON, encrypted for that browser, signed with the server's VAPID key.

The request leaves through Cortex's own guarded client.
"""

import json
from types import ModuleType
from typing import Any

from msgspec.structs import replace

from cortex.base import scan
from cortex.base.errors import DeliveryError, UserError
from cortex.notify import ChannelContext, ChannelKind, ready
from cortex.notify.context import Vapid
from cortex.notify.posting import checked_url, post
from cortex.notify.words import cut, json_bytes, label, link, named, shown
from cortex.ports.channels import Notice, Target

# A push service takes 4,096 bytes (RFC 8030); aes128gcm needs 86 for its header, 16 for the tag, 1 for the delimiter.
PAYLOAD_BYTES = 4_096 - 103
TTL_MOST_S = 28 * 86_400  # what Google's and Mozilla's keep at most
SIGNED_S = 12 * 3_600  # Apple refuses more than a day
# RFC 8030, section 5.3: what is high wakes a phone that saves its battery, as a reminder must.
_URGENCY = {"low": "low", "normal": "normal", "important": "high", "high": "high"}
_UNKNOWN_DEVICE = "This device no longer takes notifications; switch them on again on it."
_HINTS = {
    400: "it does not take the message or the signature.",
    401: "it refuses Cortex's signature (VAPID); an administrator checks the clock, and the push contact in Settings.",
    403: (
        "it refuses Cortex's key (VAPID). Switch notifications off and on again on this device; if every device says "
        "so, an administrator sets the push contact in Settings to a real mailto: or https address."
    ),
    413: "the notification is too large for it.",
}


class WebPush:
    """Push to browsers that subscribed. `signing`: the module that encrypts and signs."""

    def __init__(self, context: ChannelContext, vapid: Vapid, signing: ModuleType) -> None:
        self._context = context
        self._signer = signing.PushSigner(vapid)
        self._signing = signing

    def checked(self, target: Target) -> Target:
        """A subscription whose endpoint may be reached and whose keys are keys."""
        kept = replace(target, address=checked_url(target.address, self._context.hosts))
        self._signing.check(kept)
        return kept

    async def send(self, notice: Notice, target: Target) -> None:
        """Push it; fate gone when the browser's subscription is no more."""
        target = ready(self, target)
        body: bytes = self._signing.encrypted(payload(notice, self._context.site), target)
        headers = {"Content-Encoding": "aes128gcm", "Content-Type": "application/octet-stream"}
        headers |= {"TTL": str(min(max(notice.ttl_s, 0), TTL_MOST_S)), "Urgency": _URGENCY[notice.urgency]}
        headers |= {"Topic": named(notice.tag)} if notice.tag else {}
        headers |= self._signer.signed(target, int(self._context.clock().timestamp()) + SIGNED_S)
        answer = await post(target.address, body, headers, self._context, hide=(target.key, target.secret))
        if answer.status in (404, 410):
            raise DeliveryError(_UNKNOWN_DEVICE, fate="gone")
        answer.check(_HINTS)


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
    if notice.urgency == "high":
        notification["requireInteraction"] = True
    if notice.urgency == "low":
        notification["silent"] = True
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


def _open(context: ChannelContext) -> WebPush:
    if context.vapid is None:
        raise UserError("Push has no keys here.")
    return WebPush(context, context.vapid, scan.load("cortex.notify.push_signing"))  # cryptography


CHANNEL = ChannelKind(
    label="Push",
    offer="Push to my devices",
    order=10,
    open=_open,
    tested="a push endpoint that decrypts; Chromium's service worker",
    nowhere="No device has push turned on. Add one under Devices.",
    at_once=8,
)
