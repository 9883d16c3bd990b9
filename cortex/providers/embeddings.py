"""Asks a server that speaks OpenAI's API for embeddings, through `pages.py`.

Contract: https://platform.openai.com/docs/api-reference/embeddings/create (read 2026-11-27). Numbers are asked for as
numbers, which every server knows; base64 is made here where a program wants it.
"""

import asyncio
import json
from array import array
from math import isfinite
from typing import Any
from urllib.parse import urlsplit

from cortex.base.errors import ProviderError
from cortex.base.http import FetchedPage
from cortex.base.json_text import parsed
from cortex.ports.model_lists import EmbeddingRequest, Embeddings
from cortex.providers.pages import pages_of, refused
from cortex.providers.said import message_of
from cortex.providers.servers import asked_at, at, server_of
from cortex.providers.terms import number

MOST_BYTES = 64_000_000  # a thousand texts of 1,536 numbers are about 32 MB


async def embeddings(request: EmbeddingRequest) -> Embeddings:
    """The vectors of the inputs. ProviderError says what went wrong; no key is in it."""
    server = request.server
    sent: dict[str, Any] = {"model": request.model, "input": request.inputs, "encoding_format": "float"}
    if request.dimensions is not None:
        sent["dimensions"] = request.dimensions
    row = server_of(server.base_url, engine=server.engine)
    url = at(asked_at(row, server.base_url or row.base_url), "/embeddings")
    content = await asyncio.to_thread(lambda: json.dumps(sent).encode())
    async with pages_of(server, row, MOST_BYTES) as pages:
        page = await pages.page(url, content)
    return await asyncio.to_thread(_read, page, request)


def _read(page: FetchedPage, request: EmbeddingRequest) -> Embeddings:
    host = urlsplit(page.url).netloc
    if page.is_cut:
        told = f"{host} sent more than {MOST_BYTES // 1_000_000} MB of embeddings. Send fewer texts at once."
        raise ProviderError(told, kind="malformed")
    try:
        body = parsed(page.body)
    except ValueError:
        body = None
    said = message_of(body)
    if page.status != 200 or said:
        raise refused(page, said, f"makes no embeddings with {request.model!r} at this address")
    vectors = _vectors(body)
    if vectors is None or len(vectors) != len(request.inputs):
        told = f"What {host} sent are not the embeddings of {len(request.inputs)} texts."
        raise ProviderError(f"{told} Does {request.model!r} make embeddings?", kind="malformed")
    return Embeddings(vectors=vectors, input_tokens=_tokens(body))


def _vectors(body: Any) -> "tuple[array[float], ...] | None":  # Any: what a server says
    """The vectors in the order of their inputs; None for anything else."""
    rows = body.get("data") if isinstance(body, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return None
    if all(isinstance(row.get("index"), int) for row in rows):
        rows = sorted(rows, key=lambda row: int(row["index"]))
    try:
        found = tuple(array("d", row["embedding"]) if row["embedding"] else _none() for row in rows)
    except (KeyError, TypeError, OverflowError):
        return None
    return found if all(isfinite(sum(vector)) for vector in found) else None


def _none() -> "array[float]":
    raise TypeError("an embedding without numbers")


def _tokens(body: Any) -> int:  # Any: what a server says
    usage = body.get("usage")
    return number(usage.get("prompt_tokens")) if isinstance(usage, dict) else 0
