"""The API of OpenAI's clients: `/v1/models`, `/v1/chat/completions`, and the document that describes them."""

from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, Response

from cortex.services.api.requests import ChatRequest, read_request
from cortex.services.api.tokens import Caller
from web.bodies import takes
from web.completion_form import Completion
from web.deps import Services
from web.programs import PICTURES_BYTES, answer, body_of, served
from web.routes import PageRouter

router = PageRouter()


@router.get("/v1/models")
async def models(request: Request, services: Services) -> Response:
    """Return what a request may name as its model."""

    async def listed(caller: Caller) -> Response:
        windows = await services.program_chats.windows_of(caller)
        offered = await services.model_names.offered(caller.user)
        data = [_model(one.name, caller, windows.get(one.target)) for one in offered]
        return JSONResponse({"object": "list", "data": data})

    return await served(request, listed)


@router.get("/v1/models/{model:path}")
async def model(request: Request, services: Services, model: str) -> Response:
    """One of them."""

    async def known(caller: Caller) -> Response:
        target = await services.model_names.target(caller.user, model)
        windows = await services.program_chats.windows_of(caller)
        return JSONResponse(_model(model, caller, windows.get(target)))

    return await served(request, known)


@router.post("/v1/chat/completions")
@takes(PICTURES_BYTES)
async def complete(request: Request) -> Response:
    """Answer a conversation: with Cortex's tools, or passed through where the request brings its own."""

    async def completed(caller: Caller) -> Response:
        asked = await body_of(request, caller, read_request)

        def form(id: str, created: int, place: str) -> Completion:
            return Completion(
                id=f"chatcmpl-{id}", created=created, model=asked.model, wants_usage=asked.wants_usage, place=place
            )

        return await answer(request, caller, asked, form)

    return await served(request, completed)


@router.get("/v1/openapi.json")
async def document(request: Request) -> Response:
    """Return what this API takes and gives, by OpenAPI."""
    return JSONResponse(_document(str(request.base_url).rstrip("/")))


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
    other = {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}  # as OpenAI's own say
    further = {"requestBody": other, "responses": {"200": answer, **failed}}
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
            "/v1/responses": {"post": {"operationId": "respond", **further}},
            "/v1/embeddings": {"post": {"operationId": "embed", **further}},
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"ChatRequest": schema, **parts},
        },
    }
