"""Asks a server that speaks OpenAI's API for embeddings. No redirect is followed: the key goes to its address alone.

Contract: https://platform.openai.com/docs/api-reference/embeddings/create (read 2026-11-27). Numbers are asked for as
numbers, which every server knows; base64 is made here where a program wants it.
"""

import asyncio
import json
from array import array
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx

from cortex.base.dial import unknown_host
from cortex.base.errors import NotAllowed, ProviderError, ToolFailed
from cortex.base.http import FetchedPage, fetch, open_client
from cortex.base.json_text import parsed
from cortex.base.trust import trusting, untrusted
from cortex.ports.embeddings import EmbeddingRequest, Embeddings
from cortex.providers.said import message_of

OWN_URL = "https://api.openai.com/v1"
MOST_BYTES = 64_000_000  # a thousand texts of 1,536 numbers are about 32 MB


async def embeddings(request: EmbeddingRequest) -> Embeddings:
    """The vectors of the inputs. ProviderError says what went wrong; no key is in it."""
    server = request.server
    sent: dict[str, Any] = {"model": request.model, "input": request.inputs, "encoding_format": "float"}
    if request.dimensions is not None:
        sent["dimensions"] = request.dimensions
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    headers |= {"Authorization": f"Bearer {server.key}"} if server.key else {}
    url = f"{(server.base_url or OWN_URL).rstrip('/')}/embeddings"
    context = await asyncio.to_thread(trusting, server.ca)
    content = await asyncio.to_thread(lambda: json.dumps(sent).encode())
    async with open_client(server.policy, timeout_s=server.limit_s, follow_redirects=False, context=context) as client:
        page = await _page(client, url, headers, content, server.limit_s)
    return await asyncio.to_thread(_read, page, request)


async def _page(
    client: httpx.AsyncClient, url: str, headers: Mapping[str, str], content: bytes, limit_s: float
) -> FetchedPage:
    host = urlsplit(url).netloc
    try:
        return await fetch(
            client, url, method="POST", headers=headers, content=content, max_bytes=MOST_BYTES, total_s=limit_s
        )
    except NotAllowed as error:
        raise ProviderError(error.message, kind="refused") from error
    except ToolFailed as error:
        cause = error.__cause__
        if isinstance(cause, (TimeoutError, httpx.TimeoutException)):
            told = f"{host} did not answer within {limit_s:g} seconds."
            raise ProviderError(told, kind="timeout", is_retryable=True) from error
        why = str(cause)
        told = unknown_host(why) or (f"{host}: {refused}" if (refused := untrusted(why)) else "")
        raise ProviderError(told or f"{host} could not be reached.", kind="connection") from error


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
        raise _refused(host, request.model, page.status, said)
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
        return tuple(array("d", row["embedding"]) if row["embedding"] else _none() for row in rows)
    except (KeyError, TypeError, OverflowError):
        return None


def _none() -> "array[float]":
    raise TypeError("an embedding without numbers")


def _tokens(body: Any) -> int:  # Any: what a server says
    usage = body.get("usage")
    counted = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    return counted if isinstance(counted, int) and counted > 0 else 0


def _refused(host: str, model: str, status: int, said: str) -> ProviderError:
    quoted = f" It said: “{said}”" if said else ""
    match status:
        case 401 | 403:
            return ProviderError(f"{host} refused the key ({status}).{quoted}", kind="auth")
        case 404 | 405 | 501:
            told = f"{host} makes no embeddings with {model!r} at this address ({status})."
            return ProviderError(told + quoted, kind="request")
        case 429:
            told = f"{host} takes no more requests for now (429)."
            return ProviderError(told + quoted, kind="rate_limit", is_retryable=True)
        case _ if status >= 500:
            return ProviderError(f"{host} has a problem ({status}).{quoted}", kind="server", is_retryable=True)
    return ProviderError(f"{host} did not take the request ({status}).{quoted}", kind="request")
