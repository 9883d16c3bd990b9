"""A webhook: the notice as JSON to one URL, signed as Standard Webhooks has it (standardwebhooks.com).

`webhook-id` is the same on a second try, so that the receiver can tell it.
"""

import json
from typing import Any

from msgspec.structs import replace

from cortex.base.errors import UserError
from cortex.base.standard_webhooks import key_of, new_secret, signature
from cortex.notify import ChannelContext, ChannelField, ChannelKind, ready
from cortex.notify.posting import checked_url, post
from cortex.notify.words import cut, label, link, named, shown
from cortex.ports.channels import Notice, Target

TEXT_BYTES = 16_000
SECRET_LEAST = 16
_HINTS = {
    401: "it does not accept the signature; is the secret the same on both sides?",
    403: "it does not accept the signature; is the secret the same on both sides?",
    404: "there is nothing at this address.",
    405: "it takes no POST at this address.",
    410: "it wants no notifications any more; remove this webhook.",
    413: "the notification is too large for it.",
}


class Webhook:
    """A POST to a program of the person's own."""

    def __init__(self, context: ChannelContext) -> None:
        self._context = context

    def checked(self, target: Target) -> Target:
        """An address and the secret that both sides know."""
        secret = target.secret.strip()
        try:
            is_long = len(key_of(secret)) >= SECRET_LEAST
        except ValueError:
            is_long = False
        if not is_long:
            raise UserError(
                f"A secret needs at least {SECRET_LEAST} characters; both sides need the same one.", field="secret"
            )
        return replace(target, address=checked_url(target.address, self._context.hosts), secret=secret)

    async def send(self, notice: Notice, target: Target) -> None:
        """Post it; a redirect is not followed: what is signed goes to exactly this address."""
        target = ready(self, target)
        at = self._context.clock()
        body = json.dumps(self._message(shown(notice), at.isoformat()), ensure_ascii=False).encode("utf-8")
        second = int(at.timestamp())
        headers = {
            "Content-Type": "application/json",
            "webhook-id": notice.id,
            "webhook-timestamp": str(second),
            "webhook-signature": f"v1,{signature(notice.id, second, body, target.secret)}",
        }
        answer = await post(target.address, body, headers, self._context, hide=(target.secret,))
        answer.check(_HINTS)

    def _message(self, notice: Notice, at: str) -> dict[str, Any]:
        site = self._context.site
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


CHANNEL = ChannelKind(
    label="Webhook",
    order=50,
    open=Webhook,
    tested="an HTTP server, and the signature of the standard's own example",
    sends_read=True,  # a program has no page to read it on
    fields=(
        ChannelField(name="address", label="Address", placeholder="https://…"),
        ChannelField(
            name="secret",
            label="Secret",
            hint="Signs each delivery (Standard Webhooks). Leave empty to create one.",
            is_required=False,
            made=new_secret,
        ),
    ),
)
