"""A client for an S3-compatible store: four requests, signed by AWS Signature Version 4, to addresses of path style.

The store is the admin's own choice, so it may stand inside. A file is one PUT, so at most 5 GB.
"""

import asyncio
import hashlib
import hmac
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx
from msgspec import Struct

from cortex.base.clock import Clock, now
from cortex.base.errors import UserError
from cortex.base.trust import certificates

EMPTY = hashlib.sha256(b"").hexdigest()
MOST_BYTES = 5 * 1024**3
PIECE_BYTES = 1 << 20
LIST_BYTES = 8 << 20
MOST_PAGES = 100
CONTENTS = re.compile(r"<Contents>(.*?)</Contents>", re.DOTALL)
TIMEOUT = httpx.Timeout(60.0, connect=15.0)  # of each piece, not of the whole file


class Bucket(Struct, frozen=True, kw_only=True):
    """Where the files stand, and by which key they are reached."""

    endpoint: str
    region: str
    name: str
    key_id: str
    secret: str


class _Body(Struct, frozen=True, kw_only=True):
    """A file to be sent, with its SHA-256 in hex."""

    path: Path
    digest: str
    size_bytes: int


class S3(Struct, frozen=True):
    """Requests to one bucket; UserError, with the store's own word, when one is refused or not answered.

    transport: how it is reached; the network when left out.
    """

    bucket: Bucket
    transport: httpx.AsyncBaseTransport | None = None
    clock: Clock = now

    async def objects(self, prefix: str) -> list[tuple[str, int]]:
        """Names with their size in bytes, of objects that begin so."""
        found: list[tuple[str, int]] = []
        more = ""
        for _ in range(MOST_PAGES):
            query = {"list-type": "2", "prefix": prefix} | ({"continuation-token": more} if more else {})
            text = (await self._small("GET", "", query)).decode()
            found += [(_tag(one, "Key"), int(_tag(one, "Size") or 0)) for one in CONTENTS.findall(text)]
            more = _tag(text, "NextContinuationToken")
            if not more:
                break
        return found

    async def put(self, key: str, path: Path, digest: str) -> None:
        """Store the file, whose SHA-256 is `digest`, and ask whether all of it has arrived."""
        size_bytes = await asyncio.to_thread(os.path.getsize, path)
        if size_bytes > MOST_BYTES:
            raise UserError("The backup is larger than 5 GB, the most that the store accepts as one file.")
        await self._small("PUT", key, {}, _Body(path=path, digest=digest, size_bytes=size_bytes))
        arrived = dict(await self.objects(key)).get(key)
        if arrived != size_bytes:
            raise UserError(f"The store has only {arrived or 0:,} of the backup's {size_bytes:,} bytes.")

    async def fetch(self, key: str, path: Path) -> None:
        """Write the object to the new file `path`."""
        async with self._client() as client, self._sent(client, "GET", key, {}) as answer:
            with path.open("xb") as file:
                async for piece in answer.aiter_bytes(PIECE_BYTES):
                    file.write(piece)

    async def remove(self, key: str) -> None:
        """Remove the object."""
        await self._small("DELETE", key, {})

    async def _small(self, method: str, key: str, query: dict[str, str], body: _Body | None = None) -> bytes:
        """The answer's body; longer ones than a listing are cut."""
        async with self._client() as client, self._sent(client, method, key, query, body) as answer:
            return await _beginning(answer)

    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            transport=self.transport, verify=certificates(), trust_env=False, timeout=TIMEOUT, follow_redirects=False
        )

    @asynccontextmanager
    async def _sent(
        self, client: httpx.AsyncClient, method: str, key: str, query: dict[str, str], body: _Body | None = None
    ) -> AsyncIterator[httpx.Response]:
        path = quote(f"/{self.bucket.name}" + (f"/{key}" if key else ""))
        canonical = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in sorted(query.items()))
        headers = self._signed(method, path, canonical, body.digest if body else EMPTY)
        if body is not None:
            headers["content-length"] = str(body.size_bytes)
        url = self.bucket.endpoint + path + (f"?{canonical}" if canonical else "")
        try:
            async with client.stream(
                method, url, headers=headers, content=_pieces(body.path) if body else None
            ) as answer:
                if answer.status_code not in (200, 204):
                    text = (await _beginning(answer)).decode("utf-8", "replace")
                    said = _tag(text, "Code") or answer.reason_phrase
                    raise UserError(f"The backup store refused {method}: {answer.status_code} {said[:100]}.")
                yield answer
        except httpx.HTTPError as error:
            raise UserError(f"The backup store does not answer: {error or type(error).__name__}.") from error

    def _signed(self, method: str, path: str, query: str, digest: str) -> dict[str, str]:
        """The headers with their signature (docs.aws.amazon.com: "Create a signed AWS API request")."""
        bucket, stamp = self.bucket, self.clock().strftime("%Y%m%dT%H%M%SZ")
        headers = {"host": urlsplit(bucket.endpoint).netloc, "x-amz-content-sha256": digest, "x-amz-date": stamp}
        names = ";".join(headers)
        lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
        request = "\n".join((method, path, query, lines, names, digest))
        scope = f"{stamp[:8]}/{bucket.region}/s3/aws4_request"
        told = "\n".join(("AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(request.encode()).hexdigest()))
        key = b"AWS4" + bucket.secret.encode()
        for part in (stamp[:8], bucket.region, "s3", "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.digest(key, told.encode(), "sha256").hex()
        headers["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={bucket.key_id}/{scope},SignedHeaders={names},Signature={signature}"
        )
        return headers


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
            yield piece


async def _beginning(answer: httpx.Response) -> bytes:
    found = b""
    async for piece in answer.aiter_bytes(PIECE_BYTES):
        found += piece
        if len(found) > LIST_BYTES:
            break
    return found


def _tag(text: str, name: str) -> str:
    found = re.search(f"<{name}>([^<]*)</{name}>", text)
    return unescape(found[1]) if found else ""
