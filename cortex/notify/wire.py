"""The POST of `posting.py` over the guarded client: one try, its answer read to a limit, what failed in words."""

import re
import ssl
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import httpx

from cortex.base.address import PUBLIC, AddressPolicy
from cortex.base.address import named as named_policy
from cortex.base.errors import DeliveryError, NotAllowed, ToolFailed, chain
from cortex.base.http import FetchedPage, fetch, open_client
from cortex.base.json_text import parsed
from cortex.base.server_settings import row_of
from cortex.notify.context import ChannelContext
from cortex.notify.posting import HttpAnswer, place_of
from cortex.notify.words import cut, one_line

REPLY_BYTES = 128_000  # servers repeat the text, and some write each of <, > and & as six bytes
SAID_BYTES = 160
WAIT_MOST_S = 86_400.0


async def post(
    url: str,
    content: bytes,
    headers: Mapping[str, str],
    context: ChannelContext,
    *,
    hide: tuple[str, ...] = (),
) -> HttpAnswer:
    """Send it once; DeliveryError when no answer came. `hide`: what may not be repeated from the answer."""
    place = place_of(urlsplit(url))
    host = place[0]
    policy: AddressPolicy = named_policy(place) if place in context.hosts else PUBLIC
    try:
        async with open_client(policy, timeout_s=context.total_s, follow_redirects=False) as client:
            got = await fetch(
                client,
                url,
                method="POST",
                headers=headers,
                content=content,
                max_bytes=REPLY_BYTES,
                total_s=context.total_s,
            )
    except NotAllowed as error:
        raise DeliveryError(
            f"{error.message} Whoever runs Cortex can allow it in {row_of('notify_hosts')}.", fate="refused"
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
        reason=_reason(got, value, tuple(part for part in parts if len(part) > 1)),
        retry_after_s=_retry_after_s(got.headers.get("retry-after", ""), context.clock),
        value=value,
    )


def _unreached(host: str, cause: BaseException | None) -> str:
    if isinstance(cause, TimeoutError | httpx.TimeoutException):
        return f"{host} did not answer in time."
    links = list(chain(cause))
    if any(isinstance(one, ssl.SSLCertVerificationError) for one in links):
        return f"{host} shows a certificate that cannot be trusted (self-made, expired, or another host's)."
    if any(isinstance(one, ssl.SSLError) for one in links):
        return f"{host} does not speak https there; check the port."
    return f"{host} could not be reached; check the address, and whether the server runs."


def _object(got: FetchedPage) -> Mapping[str, Any]:
    try:
        value = parsed(got.text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _reason(got: FetchedPage, value: Mapping[str, Any], hide: tuple[str, ...]) -> str:
    reasons = [value.get(name) for name in ("errorDescription", "error", "reason", "message", "detail")]
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
