"""The API of OpenAI's clients: `/v1/embeddings`, made by a server of the person whose token asks."""

import asyncio
import base64
import sys
from array import array
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, Response

from cortex.ports.model_lists import Embeddings
from cortex.services.api.embeddings import EmbeddingAsked, read_embedding_request
from cortex.services.api.tokens import Caller
from web.bodies import TEXT_BYTES, takes
from web.deps import Services
from web.programs import body_of, served
from web.routes import PageRouter

router = PageRouter()


@router.post("/v1/embeddings")
@takes(TEXT_BYTES)
async def embed(request: Request, services: Services) -> Response:
    """The vectors of the texts."""

    async def embedded(caller: Caller) -> Response:
        asked = await body_of(request, caller, read_embedding_request)
        found = await services.program_embeddings.make(caller, asked)
        return await asyncio.to_thread(_answer, asked, found)

    return await served(request, embedded)


def _answer(asked: EmbeddingAsked, found: Embeddings) -> Response:
    data = [
        {"object": "embedding", "index": n, "embedding": _packed(vector) if asked.is_base64 else vector.tolist()}
        for n, vector in enumerate(found.vectors)
    ]
    usage: dict[str, Any] = {"prompt_tokens": found.input_tokens, "total_tokens": found.input_tokens}
    return JSONResponse({"object": "list", "data": data, "model": asked.model, "usage": usage})


def _packed(vector: "array[float]") -> str:
    """As base64 of little-endian floats of 32 bits, which OpenAI's clients ask for by themselves."""
    small = array("f", vector)
    if sys.byteorder == "big":
        small.byteswap()
    return base64.b64encode(small.tobytes()).decode()
