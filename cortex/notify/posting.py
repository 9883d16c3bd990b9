"""One POST to a place that a person named: by https or to a host that an admin named, never redirected, never shown.

Used by channels that speak HTTP. Addresses may be secrets by themselves: errors name the host alone. What speaks is
`wire.py`, loaded with the first POST.
"""

import asyncio
import re
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from cortex.base import scan
from cortex.base.errors import DeliveryError, UserError
from cortex.base.server_settings import row_of
from cortex.base.web_address import web_place
from cortex.notify.context import ChannelContext

URL_CHARACTERS = 2_000
_URL = re.compile(r"[\x21-\x7e]+")


class HttpAnswer(Struct, frozen=True, kw_only=True):
    """The answer that came back. `reason`: the other side's own in one line, or ""; `value`: its JSON object, or {}."""

    host: str
    status: int
    reason: str
    retry_after_s: float | None
    value: Mapping[str, Any]

    @property
    def is_ok(self) -> bool:
        """Tell whether it was taken."""
        return 200 <= self.status < 300

    def check(self, hints: Mapping[int, str]) -> None:
        """Raise DeliveryError for an answer that is no yes. `hints`: what a status means on this channel."""
        if self.is_ok:
            return
        is_later = self.status in (408, 425, 429) or self.status >= 500
        said = f' It said: "{self.reason}".' if self.reason else ""
        raise DeliveryError(
            f"{self.host} answered {self.status}: {hints.get(self.status) or _meaning(self.status)}{said}",
            fate="later" if is_later else "refused",
            retry_after_s=self.retry_after_s if is_later else None,
        )


def checked_url(text: str, hosts: frozenset[tuple[str, int]]) -> str:
    """The address tidied; UserError when it is none, or is not https and not at a host that an admin named."""
    url = text.strip()
    try:
        web_place(url)
        parts = urlsplit(url)
        place = place_of(parts)
    except ValueError as error:
        raise UserError(f"{str(error)[:1].upper()}{str(error)[1:]}.", field="address") from None
    is_web = parts.scheme in ("http", "https") and bool(place[0])
    if not is_web or not _URL.fullmatch(url) or len(url) > URL_CHARACTERS or parts.fragment:
        raise UserError("Write a web address such as https://example.org/path, without spaces and #.", field="address")
    if parts.username is not None:
        raise UserError("Leave name and password out of the address; they have a field of their own.", field="address")
    if parts.scheme == "http" and place not in hosts:
        raise UserError(
            "Write https://. Without it, only servers are reached that whoever runs Cortex named in "
            f"{row_of('notify_hosts')}.",
            field="address",
        )
    return url


async def post(
    url: str,
    content: bytes,
    headers: Mapping[str, str],
    context: ChannelContext,
    *,
    hide: tuple[str, ...] = (),
) -> HttpAnswer:
    """Send it once; DeliveryError when no answer came. `hide`: what may not be repeated from the answer."""
    wire = await asyncio.to_thread(scan.load, "cortex.notify.wire")  # httpx
    return cast("HttpAnswer", await wire.post(url, content, headers, context, hide=hide))


def place_of(parts: SplitResult) -> tuple[str, int]:
    """The host and port of an address."""
    return (parts.hostname or "").rstrip("."), parts.port or (443 if parts.scheme == "https" else 80)


def _meaning(status: int) -> str:
    if 300 <= status < 400:
        return "it points elsewhere, and redirects are not followed; enter the address that it leads to."
    if status == 429:
        return "too many notifications; they are sent more slowly."
    if status >= 500 or status in (408, 425):
        return "it has a problem; trying again."
    if status == 413:
        return "the notification is too large for it."
    return "it does not take this notification; check the address."
