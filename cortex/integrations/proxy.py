"""What a proxy between the browser and Cortex does to requests and answers: seen by asking Cortex's own public address.

Asks nothing else. Loaded when an admin asks.
"""

from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, ConfigDict, ValidationError

from cortex.base.address import named
from cortex.base.clock import ticks_s
from cortex.base.http import open_client
from cortex.base.server_settings import row_of
from cortex.base.web_address import web_place

TIMEOUT_S = 10.0
DRIP, SEEN = "/healthz/drip", "/healthz/seen"  # `web/app.py` has them
UPLOADS = "/files"  # a form there is refused unread, by Cortex for want of a login
LARGE_BYTES = 3_000_000  # a photo
HELD_BACK_S = 0.3  # of the second between the two pieces
TOO_LARGE = 413


class _Seen(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    host: str
    scheme: str


async def faults(public_url: str) -> list[str]:
    """Say what is wrong, a sentence each with what to do. ConnectionError where no Cortex answers at the address."""
    try:
        async with open_client(named(web_place(public_url)), timeout_s=TIMEOUT_S, follow_redirects=False) as client:
            found = [*_changed(public_url, await _seen(client, public_url)), await _limit(client, public_url)]
            if await _gap_s(client, public_url) < HELD_BACK_S:
                found.append("It holds answers back until they are complete: switch its buffering off for Cortex "
                             "(nginx: proxy_buffering off).")  # fmt: skip
    except httpx.HTTPError as error:
        raise ConnectionError(_reason(error)) from error
    return [fault for fault in found if fault]


def _reason(error: httpx.HTTPError) -> str:
    """Return why nobody answered, for people: of a certificate what is wrong with it, without the library's marks."""
    said = str(error) or type(error).__name__
    _, marked, wrong = said.partition("certificate verify failed: ")
    return f"its certificate is not trusted here ({wrong.partition(' (_ssl')[0]})" if marked else said


async def _seen(client: httpx.AsyncClient, public_url: str) -> _Seen:
    answer = await client.get(public_url + SEEN)
    try:
        return _Seen.model_validate_json(answer.content)
    except ValidationError as error:
        raise ConnectionError(f"it answers {answer.status_code}, and not as this version of Cortex does") from error


def _changed(public_url: str, seen: _Seen) -> list[str]:
    parts = urlsplit(public_url)
    found = []
    if seen.host.lower() != parts.netloc.lower():
        found.append(
            f"It changes the host name to {seen.host!r}, so every form is refused as one of another site: let it pass "
            "on the browser's (nginx: proxy_set_header Host $http_host)."
        )
    if seen.scheme != parts.scheme:
        found.append(
            f"Cortex takes its requests for {seen.scheme}, so logins do not stay: let it send X-Forwarded-Proto, and "
            f"name the address that it connects from in {row_of('trusted_proxies')}."
        )
    return found


async def _limit(client: httpx.AsyncClient, public_url: str) -> str:
    answer = await client.post(public_url + UPLOADS, content=bytes(LARGE_BYTES))
    if answer.status_code != TOO_LARGE:
        return ""
    size = f"{LARGE_BYTES // 1_000_000} MB"
    return f"It refuses {size}, which a photo has: raise its limit (nginx: client_max_body_size 110m)."


async def _gap_s(client: httpx.AsyncClient, public_url: str) -> float:
    """Seconds between the first and the last of two pieces that Cortex sends a second apart."""
    async with client.stream("GET", public_url + DRIP) as answer:
        answer.raise_for_status()
        came = [ticks_s() async for piece in answer.aiter_raw() if piece]
    if not came:
        raise httpx.RemoteProtocolError("the answer was empty")
    return came[-1] - came[0]
