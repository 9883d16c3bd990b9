"""A webhook: the notice as JSON to one URL, signed as Standard Webhooks has it (standardwebhooks.com).

The signature is HMAC-SHA256 over "id.timestamp.body"; `webhook-id` is the same on a second try, so that the receiver
can tell it.
"""

import base64
import hashlib
import hmac
import json
import secrets
from dataclasses import replace
from typing import Any

from cortex.base.errors import UserError
from cortex.notify import ChannelContext, ready
from cortex.notify._http import checked_url, post
from cortex.notify._words import cut, label, link, named, shown
from cortex.ports.channels import Notice, Target

TEXT_BYTES = 16_000
SECRET_PREFIX = "whsec_"  # noqa: S105 - the mark that the standard puts before a secret
SECRET_LEAST = 16
_HINTS = {
    401: "it does not accept the signature; is the secret the same on both sides?",
    403: "it does not accept the signature; is the secret the same on both sides?",
    404: "there is nothing at this address.",
    405: "it takes no POST at this address.",
    410: "it wants no notifications any more; remove this webhook.",
    413: "the notification is too large for it.",
}


def open_channel(surroundings: ChannelContext) -> "Webhook":
    """The channel."""
    return Webhook(surroundings)


def new_secret() -> str:
    """A secret for both sides."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode("ascii")


class Webhook:
    """A POST to a program of the person's own."""

    def __init__(self, surroundings: ChannelContext) -> None:
        self._surroundings = surroundings

    def checked(self, target: Target) -> Target:
        """An address and the secret that both sides know."""
        secret = target.secret.strip()
        if len(_key(secret)) < SECRET_LEAST:
            raise UserError(
                f"A secret needs at least {SECRET_LEAST} characters; both sides need the same one.", field="secret"
            )
        return replace(target, address=checked_url(target.address, self._surroundings.hosts), secret=secret)

    async def send(self, notice: Notice, target: Target) -> None:
        """Post it; a redirect is not followed: what is signed goes to exactly this address."""
        target = ready(self, target)
        at = self._surroundings.clock()
        body = json.dumps(self._message(shown(notice), at.isoformat()), ensure_ascii=False).encode("utf-8")
        headers = signed(notice.id, int(at.timestamp()), body, target.secret) | {"Content-Type": "application/json"}
        answer = await post(target.address, body, headers, self._surroundings, hide=(target.secret,))
        if not answer.is_ok:
            raise answer.failure(_HINTS.get(answer.status, ""))

    def _message(self, notice: Notice, at: str) -> dict[str, Any]:
        site = self._surroundings.site
        return {
            "type": f"notice.{notice.kind}" if notice.kind else "notice",
            "timestamp": at,
            "data": {
                "id": notice.id,
                "title": notice.title,
                "text": cut(notice.text, TEXT_BYTES),
                "url": link(site, notice.path),
                "tag": named(notice.tag) if notice.tag else "",
                "urgency": notice.urgency,
                "actions": [
                    {"kind": one.kind, "title": label(one), "url": link(site, one.path)} for one in notice.actions
                ],
            },
        }


def signed(id: str, timestamp: int, body: bytes, secret: str) -> dict[str, str]:
    """The headers by which the receiver knows sender, time and body."""
    digest = hmac.new(_key(secret), f"{id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return {
        "webhook-id": id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": "v1," + base64.b64encode(digest).decode("ascii"),
    }


def _key(secret: str) -> bytes:
    """The bytes that sign: behind the mark in base64, else the characters as they stand."""
    if secret.startswith(SECRET_PREFIX):
        try:
            return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
        except ValueError:
            return b""
    return secret.encode("utf-8")
