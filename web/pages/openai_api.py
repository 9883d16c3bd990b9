"""The API of OpenAI's clients: `/v1/models`, `/v1/chat/completions`, and the document that describes them."""

import asyncio
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from cortex.app import Cortex
from cortex.base.errors import CortexError
from cortex.services.api.requests import ChatRequest, read_request
from cortex.services.api.tokens import Caller
from web.bodies import LARGE_BYTES, takes
from web.deps import Services
from web.programs import Completion, ProgramAnswer, ProgramStream, caller_of, refused
from web.routes import LazyRoute

router = APIRouter(route_class=LazyRoute)
PICTURES_BYTES = 20_000_000  # a request with some pictures in base64


@router.get("/v1/models")
async def models(request: Request, services: Services) -> Response:
    """What a request may name as its model."""
    try:
        caller = await caller_of(request)
    except CortexError as error:
        return refused(error, is_caller=False)
    windows = await services.program_chats.windows_of(caller)
    listed = [_model(name, caller, windows.get(name)) for name in await services.program_chats.models_of(caller)]
    return JSONResponse({"object": "list", "data": listed})


@router.get("/v1/models/{model}")
async def model(request: Request, services: Services, model: str) -> Response:
    """One of them."""
    try:
        caller = await caller_of(request)
    except CortexError as error:
        return refused(error, is_caller=False)
    try:
        await services.program_chats.must_know(caller, model)
    except CortexError as error:
        return refused(error)
    windows = await services.program_chats.windows_of(caller)
    return JSONResponse(_model(model, caller, windows.get(model)))


@router.post("/v1/chat/completions")
@takes(PICTURES_BYTES)
async def complete(request: Request, services: Services) -> Response:
    """Answer a conversation: with Cortex's tools, or passed through where the request brings its own."""
    try:
        caller = await caller_of(request)
    except CortexError as error:
        return refused(error, is_caller=False)
    try:
        services.api_tokens.must_not_insist(caller)
        body = await request.body()
        asked = await asyncio.to_thread(read_request, body) if len(body) > LARGE_BYTES else read_request(body)
        return await _answer(request, services, caller, asked)
    except CortexError as error:
        return refused(error)


@router.get("/v1/openapi.json")
async def document(request: Request) -> Response:
    """What this API takes and gives, by OpenAPI."""
    return JSONResponse(_document(str(request.base_url).rstrip("/")))


async def _answer(request: Request, services: Cortex, caller: Caller, asked: ChatRequest) -> Response:
    created = int(services.runtime.clock().timestamp())
    if services.bare_calls.passes(caller, asked):
        await services.program_chats.must_know(caller, asked.asked_model)
        call, sent = await services.bare_calls.take(caller, asked)
        id, place = call.id.removeprefix("api:"), ""
        answering = partial(services.bare_calls.answer, caller, call, sent, asked.asked_model)
    else:
        taken = await services.program_chats.ask(caller, asked)
        root = (services.settings.public_url or str(request.base_url)).rstrip("/")
        id, place = taken.turn.id.removeprefix("turn:"), f"{root}/c/{taken.turn.conversation_id}"
        answering = partial(services.program_chats.answer, taken)
    completion = Completion(
        id=f"chatcmpl-{id}", created=created, model=asked.model, wants_usage=asked.wants_usage, place=place
    )
    return ProgramStream(completion, answering) if asked.stream else ProgramAnswer(completion, answering)


def _model(name: str, caller: Caller, window_tokens: int | None) -> dict[str, Any]:
    made = int(caller.token.made_at.timestamp())
    shown = {"id": name, "object": "model", "created": made, "owned_by": "cortex"}
    return {**shown, "context_length": window_tokens} if window_tokens else shown


def _document(server: str) -> dict[str, Any]:
    schema = ChatRequest.model_json_schema(ref_template="#/components/schemas/{model}")
    parts = schema.pop("$defs", {})
    refusals = {
        "400": "The request cannot be read, or asks for what is not supported.",
        "401": "No token, or one that is unknown, revoked or expired.",
        "404": "This model does not exist.",
        "429": "Too many requests in this minute, or the budget is used up (code insufficient_quota).",
        "502": "No model answered.",
        "503": "Work is stopped on this server, or the answer was.",
    }
    error = {"type": "object", "properties": {"error": {"type": "object"}}}
    failed = {
        status: {"description": words, "content": {"application/json": {"schema": error}}}
        for status, words in refusals.items()
    }
    listing = {"description": "What a request may name as its model.", "content": {"application/json": {}}}
    answer = {
        "description": "The answer; with `stream` as server-sent events, the last of them [DONE].",
        "content": {"application/json": {}, "text/event-stream": {}},
    }
    body = {"required": True, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ChatRequest"}}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Cortex", "version": "1"},
        "servers": [{"url": server}],
        "security": [{"token": []}],
        "paths": {
            "/v1/models": {"get": {"operationId": "models", "responses": {"200": listing, "401": failed["401"]}}},
            "/v1/chat/completions": {
                "post": {"operationId": "complete", "requestBody": body, "responses": {"200": answer, **failed}}
            },
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"ChatRequest": schema, **parts},
        },
    }
