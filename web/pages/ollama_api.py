"""Ollama's API, for programs that speak only that: chats, prompts, embeddings, and the list of models.

Contract: https://github.com/ollama/ollama/blob/main/docs/api.md (read 2026-11-27). Models are chosen in Cortex, so
whatever pulls, makes or deletes them there is not here.
"""

import asyncio
import hashlib
from collections.abc import Callable
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, Response

from cortex.base.errors import NotFound
from cortex.base.model import ModelEntry
from cortex.ports.model_lists import Embeddings
from cortex.services.api.embeddings import EmbeddingAsked, read_ollama_embedding_request
from cortex.services.api.model_names import OfferedModel
from cortex.services.api.ollama_requests import OllamaAsked, read_chat, read_generate, read_show
from cortex.services.api.tokens import Caller
from web.bodies import TEXT_BYTES, takes
from web.deps import Services
from web.ollama_form import OllamaForm, refused_as_ollama
from web.programs import PICTURES_BYTES, answer, body_of, served
from web.routes import PageRouter

router = PageRouter()
# Programs ask for a version of Ollama that can do what they need; these are the fields of this one.
VERSION = "0.12.6"


@router.get("/api/version")
async def version(request: Request) -> Response:
    """Return which version of Ollama's API this is like. It says nothing else, so it needs no token."""
    return JSONResponse({"version": VERSION})


@router.get("/api/tags")
async def tags(request: Request, services: Services) -> Response:
    """The models that a request may name."""

    async def listed(caller: Caller) -> Response:
        offered = await services.model_names.offered(caller.user)
        made = caller.token.made_at.isoformat()
        return JSONResponse({"models": [_tag(one, made) for one in offered]})

    return await served(request, listed, refused_as_ollama)


@router.get("/api/ps")
async def running(request: Request) -> Response:
    """The models in memory: what Cortex asks is elsewhere."""

    async def none(_caller: Caller) -> Response:
        return JSONResponse({"models": []})

    return await served(request, none, refused_as_ollama)


@router.post("/api/show")
async def show(request: Request, services: Services) -> Response:
    """Return what is known of a model."""

    async def shown(caller: Caller) -> Response:
        name = await body_of(request, caller, read_show)
        target = await services.model_names.target(caller.user, name)
        offered = await services.model_names.offered(caller.user)
        found = next((one for one in offered if one.name in (name, target)), None)
        if found is None:
            raise NotFound(f"model {name[:80]!r} not found")
        windows = await services.program_chats.windows_of(caller)
        return JSONResponse(_shown(found, windows.get(found.target), caller.token.made_at.isoformat()))

    return await served(request, shown, refused_as_ollama)


@router.post("/api/chat")
@takes(PICTURES_BYTES)
async def chat(request: Request, services: Services) -> Response:
    """Answer a conversation, in the same ways as a chat completion."""
    return await _answer(request, services, read_chat, is_chat=True)


@router.post("/api/generate")
@takes(PICTURES_BYTES)
async def generate(request: Request, services: Services) -> Response:
    """Answer a prompt."""
    return await _answer(request, services, read_generate, is_chat=False)


@router.post("/api/embed")
@takes(TEXT_BYTES)
async def embed(request: Request, services: Services) -> Response:
    """The vectors of texts."""

    def whole(asked: EmbeddingAsked, found: Embeddings) -> dict[str, Any]:
        vectors = [vector.tolist() for vector in found.vectors]
        return {"model": asked.model, "embeddings": vectors, "prompt_eval_count": found.input_tokens}

    return await _embedded(request, services, whole)


@router.post("/api/embeddings")
@takes(TEXT_BYTES)
async def embed_one(request: Request, services: Services) -> Response:
    """The vector of one text, as earlier clients ask for it."""
    return await _embedded(request, services, lambda _asked, found: {"embedding": found.vectors[0].tolist()})


async def _answer(
    request: Request, services: Services, read: Callable[[bytes], OllamaAsked], *, is_chat: bool
) -> Response:
    began_s = services.runtime.ticks_s()

    async def answered(caller: Caller) -> Response:
        asked = await body_of(request, caller, read)

        def form(_id: str, _created: int, place: str) -> OllamaForm:
            return OllamaForm(
                model=asked.model,
                is_chat=is_chat,
                now=services.runtime.clock,
                ticks_s=services.runtime.ticks_s,
                began_s=began_s,
                place=place,
            )

        if asked.chat is None:
            return JSONResponse(form("", 0, "").loaded())
        return await answer(request, caller, asked.chat, form)

    return await served(request, answered, refused_as_ollama)


async def _embedded(
    request: Request, services: Services, whole: Callable[[EmbeddingAsked, Embeddings], dict[str, Any]]
) -> Response:
    async def embedded(caller: Caller) -> Response:
        asked = await body_of(request, caller, read_ollama_embedding_request)
        found = await services.program_embeddings.make(caller, asked)
        return await asyncio.to_thread(lambda: JSONResponse(whole(asked, found)))

    return await served(request, embedded, refused_as_ollama)


def _tag(one: OfferedModel, made: str) -> dict[str, Any]:
    digest = hashlib.sha256(one.name.encode()).hexdigest()
    model = {"name": one.name, "model": one.name, "modified_at": made, "size": 0, "digest": digest}
    return {**model, "details": _details(one.entry)}


def _shown(one: OfferedModel, window_tokens: int | None, made: str) -> dict[str, Any]:
    entry = one.entry
    can = ["completion", "tools", *(["vision"] if entry is not None and entry.takes_pictures else [])]
    info: dict[str, Any] = {"general.architecture": "cortex", "general.basename": one.name}
    if window_tokens:
        info["cortex.context_length"] = window_tokens
    about = {"modelfile": "", "parameters": "", "template": "", "license": "", "modified_at": made}
    return {**about, "details": _details(entry), "model_info": info, "capabilities": can}


def _details(entry: ModelEntry | None) -> dict[str, Any]:
    family = entry.provider if entry is not None else "cortex"
    size = {"parameter_size": "", "quantization_level": ""}
    return {"parent_model": "", "format": "cortex", "family": family, "families": [family], **size}
