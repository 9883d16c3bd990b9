"""Whether a proxy between the browser and Cortex holds answers back: two pieces of one answer, timed as they arrive.

Asks Cortex's own public address and nothing else. Loaded when an admin asks.
"""

from urllib.parse import urlsplit

import httpx

from cortex.base.address import named
from cortex.base.clock import ticks_s
from cortex.base.http import open_client

TIMEOUT_S = 10.0
PATH = "/healthz/drip"  # `web/app.py` has it


async def gap_s(public_url: str) -> float:
    """Seconds between the first and the last piece as they came. ConnectionError when the address does not answer."""
    try:
        return await _gap_s(public_url)
    except httpx.HTTPError as error:
        raise ConnectionError(str(error) or type(error).__name__) from error


async def _gap_s(public_url: str) -> float:
    parts = urlsplit(public_url)
    place = (parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
    async with (
        open_client(named(place), timeout_s=TIMEOUT_S, follow_redirects=False) as client,
        client.stream("GET", public_url + PATH) as answer,
    ):
        answer.raise_for_status()
        came = [ticks_s() async for piece in answer.aiter_raw() if piece]
    if not came:
        raise httpx.RemoteProtocolError("the answer was empty")
    return came[-1] - came[0]
