"""An httpx answer whose body still flows, as one from a socket does (`httpx.MockTransport` gives finished ones)."""

from collections.abc import AsyncIterator

import httpx


def streamed(status: int, body: bytes | str, kind: str = "text/plain; charset=utf-8") -> httpx.Response:
    """An answer with this body, piece by piece."""
    data = body.encode() if isinstance(body, str) else body

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(data), 1_000):
            yield data[start : start + 1_000]

    return httpx.Response(status, content=pieces(), headers={"content-type": kind})
