"""One POST to a place that a person named: by https or to a host that an admin named, never redirected, never shown.

Used by web_push, ntfy and webhook. Addresses may be secrets by themselves: errors name the host alone.
"""

import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import SplitResult, urlsplit

import httpx

from cortex.base.address import PUBLIC, AddressPolicy
from cortex.base.address import named as named_policy
from cortex.base.errors import DeliveryError, NotAllowed, ToolFailed, UserError
from cortex.base.http import FetchedPage, fetch, open_client
from cortex.base.json_text import parsed
from cortex.base.web_address import web_place
from cortex.notify import ChannelContext
from cortex.notify._words import cut, one_line

URL_CHARACTERS = 2_000
REPLY_BYTES = 16_000
SAID_BYTES = 160
WAIT_MOST_S = 86_400.0
_URL = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """What came back. `said`: the other side's own reason in one line, or ""; `value`: its JSON object, or {}."""

    host: str
    status: int
    said: str
    retry_after_s: float | None
    value: Mapping[str, Any]

    @property
    def is_ok(self) -> bool:
        """Tell whether it was taken."""
        return 200 <= self.status < 300

    def failure(self, hint: str = "") -> DeliveryError:
        """The error of an answer that is no yes. `hint`: what it means on this channel and what to do."""
        is_later = self.status in (408, 425, 429) or self.status >= 500
        reason = hint or _meaning(self.status)
        said = f' It said: "{self.said}".' if self.said else ""
        return DeliveryError(
            f"{self.host} answered {self.status}: {reason}{said}",
            fate="later" if is_later else "refused",
            retry_after_s=self.retry_after_s if is_later else None,
        )


def checked_url(text: str, hosts: frozenset[tuple[str, int]]) -> str:
    """The address tidied; UserError when it is none, or is not https and not at a host that an admin named."""
    url = text.strip()
    try:
        web_place(url)
        parts = urlsplit(url)
        place = _place(parts)
    except ValueError as error:
        raise UserError(f"{str(error)[:1].upper()}{str(error)[1:]}.", field="address") from None
    is_web = parts.scheme in ("http", "https") and bool(place[0])
    if not is_web or not _URL.fullmatch(url) or len(url) > URL_CHARACTERS or parts.fragment:
        raise UserError("Write a web address such as https://example.org/path, without spaces.", field="address")
    if parts.username is not None:
        raise UserError("Leave name and password out of the address; they have a field of their own.", field="address")
    if parts.scheme == "http" and place not in hosts:
        raise UserError(
            "Write https://. Only servers inside your network that an administrator named in CORTEX_NOTIFY_HOSTS "
            "are reached without it.",
            field="address",
        )
    return url


async def post(
    url: str,
    content: bytes,
    headers: Mapping[str, str],
    surroundings: ChannelContext,
    *,
    hide: tuple[str, ...] = (),
) -> HttpAnswer:
    """Send it once; DeliveryError when no answer came. `hide`: what may not be repeated from the answer."""
    place = _place(urlsplit(url))
    host = place[0]
    policy: AddressPolicy = named_policy(place) if place in surroundings.hosts else PUBLIC
    try:
        async with open_client(policy, timeout_s=surroundings.total_s, follow_redirects=False) as client:
            got = await fetch(
                client,
                url,
                method="POST",
                headers=headers,
                content=content,
                max_bytes=REPLY_BYTES,
                total_s=surroundings.total_s,
            )
    except NotAllowed as error:
        raise DeliveryError(
            f"{error.message} An administrator can allow it in CORTEX_NOTIFY_HOSTS.", fate="refused"
        ) from None
    except ToolFailed as error:  # its words show the whole address
        is_unknown = not isinstance(error.__cause__, httpx.ConnectError | httpx.ConnectTimeout | httpx.InvalidURL)
        raise DeliveryError(_unreached(host, error.__cause__), fate="later", is_unknown=is_unknown) from None
    value = _object(got)
    way = urlsplit(url)
    parts = (url, f"{way.path}?{way.query}", way.path, way.query, *hide)
    return HttpAnswer(
        host=host,
        status=got.status,
        said=_said(got, value, tuple(part for part in parts if len(part) > 1)),
        retry_after_s=_retry_after_s(got.headers.get("retry-after", ""), surroundings.clock),
        value=value,
    )


def _place(parts: SplitResult) -> tuple[str, int]:
    return (parts.hostname or "").rstrip("."), parts.port or (443 if parts.scheme == "https" else 80)


def _unreached(host: str, cause: BaseException | None) -> str:
    if isinstance(cause, TimeoutError | httpx.TimeoutException):
        return f"{host} did not answer in time."
    links: list[BaseException] = []
    while cause is not None and cause not in links:
        links.append(cause)
        cause = cause.__cause__ or cause.__context__
    if any(isinstance(one, ssl.SSLCertVerificationError) for one in links):
        return f"{host} shows a certificate that cannot be trusted (self-made, expired, or another host's)."
    if any(isinstance(one, ssl.SSLError) for one in links):
        return f"{host} does not speak https there; check the port."
    return f"{host} could not be reached; check the address, and whether the server runs."


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


def _object(got: FetchedPage) -> Mapping[str, Any]:
    try:
        value = parsed(got.text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _said(got: FetchedPage, value: Mapping[str, Any], hide: tuple[str, ...]) -> str:
    reasons = [value.get(name) for name in ("error", "reason", "message", "detail")]
    text = next((reason for reason in reasons if isinstance(reason, str)), "")
    if not text and got.headers.get("content-type", "").startswith("text/plain"):
        text = got.text
    line = one_line(text)
    for secret in sorted(hide, key=len, reverse=True):
        line = line.replace(secret, "[secret]")
    return cut(line, SAID_BYTES)


def _retry_after_s(header: str, clock: Callable[[], datetime]) -> float | None:
    """Seconds, from a number or an HTTP date (RFC 9110); None when it says neither."""
    if re.fullmatch(r"\d{1,9}", header.strip()):
        return min(float(header), WAIT_MOST_S)
    try:
        at = parsedate_to_datetime(header)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return min(max((at - clock()).total_seconds(), 0.0), WAIT_MOST_S)
