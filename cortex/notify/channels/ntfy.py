"""ntfy: one topic on ntfy.sh or a server of one's own, by its JSON way of publishing (docs.ntfy.sh/publish)."""

import base64
import json
import re
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from cortex.base.errors import DeliveryError, UserError
from cortex.notify import ChannelContext, ChannelField, ChannelKind, ready
from cortex.notify.posting import checked_url, post
from cortex.notify.words import cut, label, link, named, one_line, shown
from cortex.ports.channels import Notice, Target

TEXT_BYTES = 4_000  # what is longer, a server turns into a file (message-size-limit 4,096)
ACTIONS = 3
PRIORITY = {"low": 2, "normal": 3, "important": 4, "high": 5}
_TOPIC = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SECRET = re.compile(r"[\x21-\x7e]{0,500}")
_HINTS = {
    401: "the token or password is wrong.",
    403: "this topic wants a token that may write to it.",
    404: "there is no ntfy server at this address.",
    413: "the notification is too large for it.",
}


class Ntfy:
    """Messages to a topic that the person's phone has subscribed to."""

    def __init__(self, context: ChannelContext) -> None:
        self._context = context

    def checked(self, target: Target) -> Target:
        """A topic's page, such as https://ntfy.sh/my-topic, and a token, a user:password or nothing."""
        url = checked_url(target.address, self._context.hosts).rstrip("/")
        parts = urlsplit(url)
        if parts.query or not _TOPIC.fullmatch(parts.path.rpartition("/")[2]):
            raise UserError("Write the topic's address, such as https://ntfy.sh/my-topic.", field="address")
        if not _SECRET.fullmatch(target.secret.strip()):
            raise UserError("A token has letters, digits and signs only.", field="secret")
        return replace(target, address=url, secret=target.secret.strip())

    async def send(self, notice: Notice, target: Target) -> None:
        """Publish it."""
        target = ready(self, target)
        server, _, topic = target.address.rpartition("/")
        body = json.dumps(self._message(shown(notice), topic), ensure_ascii=False).encode("utf-8")
        headers = {"Content-Type": "application/json", **_authorization(target.secret)}
        answer = await post(f"{server}/", body, headers, self._context, hide=(target.secret, topic))
        answer.check(_HINTS)
        if "id" not in answer.value:
            raise DeliveryError(f"{answer.host} answers, but not as an ntfy server; check the address.", fate="refused")

    def _message(self, notice: Notice, topic: str) -> dict[str, Any]:
        site = self._context.site
        message: dict[str, Any] = {
            "topic": topic,
            "title": notice.title,
            "message": cut(notice.text, TEXT_BYTES) or notice.title,
            "priority": PRIORITY[notice.urgency],
            "click": link(site, notice.path),
            # From ntfy 2.16 on, a later message of the same sequence takes the place of the earlier one.
            "sequence_id": named(notice.tag or notice.id),
        }
        if notice.kind:
            message["tags"] = [one_line(notice.kind)]
        if notice.actions:
            message["actions"] = [
                {"action": "view", "label": label(one), "url": link(site, one.path), "clear": True}
                for one in notice.actions[:ACTIONS]
            ]
        return message


def _authorization(secret: str) -> dict[str, str]:
    if not secret:
        return {}
    if ":" in secret:
        return {"Authorization": f"Basic {base64.b64encode(secret.encode()).decode('ascii')}"}
    return {"Authorization": f"Bearer {secret}"}


CHANNEL = ChannelKind(
    label="ntfy",
    order=30,
    on_first_day="An app for notifications",
    open=Ntfy,
    tested="a double of its published JSON contract",
    fields=(
        ChannelField(name="address", label="Topic URL", placeholder="https://ntfy.sh/…"),
        ChannelField(
            name="secret", label="Token, or user:password", hint="Only if the topic needs one.", is_required=False
        ),
    ),
)
