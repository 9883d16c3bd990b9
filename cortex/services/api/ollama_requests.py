"""What a program asks for by Ollama's API, rewritten as a chat completion, which alone is read further. Pure.

Contract: https://github.com/ollama/ollama/blob/main/docs/api.md (read 2026-11-27). Its calls have no ids: they are
numbered here, and a result belongs to the first open call of its name. Options that tune how a model runs there
(num_ctx, keep_alive, mirostat) are passed over.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Struct

from cortex.base.errors import UserError
from cortex.services.api.requests import FIRST, MODEL, BadRequest, ChatRequest, WireModel, read_as, request_of
from cortex.services.api.response_requests import renamed

NAMES = {"max_tokens": "options.num_predict", "response_format": "format", "stop": "options.stop"}
KINDS = {"iVBOR": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}  # base64 of marks
PASSED_ON = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
    "stop",
    "repeat_penalty",
    "frequency_penalty",
    "presence_penalty",
)


class _Function(WireModel):
    name: str
    arguments: dict[str, Any] | str | None = None


class _Call(WireModel):
    id: str | None = None
    function: _Function


class _Message(WireModel):
    role: Literal["system", "user", "assistant", "tool"]
    content: str | None = None
    images: Annotated[list[str], FIRST] | None = None
    tool_calls: Annotated[list[_Call], FIRST] | None = None
    tool_name: str | None = None
    name: str | None = None
    tool_call_id: str | None = None


class _Body(WireModel):
    model: str = MODEL
    stream: bool | None = None
    format: str | dict[str, Any] | None = None
    options: dict[str, Any] | None = None
    think: bool | str | None = None
    logprobs: bool | None = None


class _Chat(_Body):
    messages: Annotated[list[_Message], FIRST] | None = None
    tools: list[dict[str, Any]] | None = None


class _Generate(_Body):
    prompt: str | None = None
    system: str | None = None
    images: Annotated[list[str], FIRST] | None = None
    suffix: str | None = None
    template: str | None = None
    raw: bool | None = None
    context: list[int] | None = None


class OllamaAsked(Struct, frozen=True, kw_only=True):
    """A request. `chat`: as a chat completion, None where it only has a model loaded, which takes nothing here."""

    model: str
    chat: ChatRequest | None


def read_chat(body: bytes) -> OllamaAsked:
    """The body of `POST /api/chat`; UserError says what is wrong with it."""
    request = read_as(_Chat, body)
    if not request.messages:
        return OllamaAsked(model=request.model, chat=None)
    messages = _Messages()
    for n, message in enumerate(request.messages):
        messages.add(message, f"messages[{n}]")
    return _asked(request, messages.made, request.tools)


def read_generate(body: bytes) -> OllamaAsked:
    """The body of `POST /api/generate`: a prompt without a history; UserError says what is wrong with it."""
    request = read_as(_Generate, body)
    if request.suffix or request.raw or request.template or request.context:
        name = next(one for one in ("suffix", "raw", "template", "context") if getattr(request, one))
        raise BadRequest(f"{name!r} is not supported here: send the whole text as messages to /api/chat.", field=name)
    if not request.prompt and not request.images:
        return OllamaAsked(model=request.model, chat=None)
    messages = _Messages()
    if request.system:
        messages.add(_Message(role="system", content=request.system), "system")
    messages.add(_Message(role="user", content=request.prompt, images=request.images), "prompt")
    return _asked(request, messages.made, None)


def _asked(request: _Body, messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None) -> OllamaAsked:
    options = request.options or {}
    most = options.get("num_predict")
    given = {
        "model": request.model,
        "messages": messages,
        "stream": request.stream is not False,
        "stream_options": {"include_usage": True},
        "tools": tools or None,
        "response_format": _format_of(request.format),
        "max_tokens": None if isinstance(most, int) and most < 0 else most,  # -1 and -2: no limit
        "logprobs": request.logprobs or None,
        "reasoning_effort": request.think if isinstance(request.think, str) else None,
        **{name: options.get(name) for name in PASSED_ON},
    }
    chat = {name: value for name, value in given.items() if value not in (None, [])}
    try:
        return OllamaAsked(model=request.model, chat=request_of(chat))
    except UserError as error:
        raise renamed(error, NAMES) from error


def _format_of(wanted: str | Mapping[str, Any] | None) -> dict[str, Any] | None:
    if not wanted:
        return None
    if isinstance(wanted, Mapping):
        return {"type": "json_schema", "json_schema": {"name": "answer", "schema": dict(wanted)}}
    if wanted == "json":
        return {"type": "json_object"}
    raise BadRequest("The format is 'json' or a JSON schema.", field="format")


class _Messages:
    """The messages of a chat completion, and the calls in them that have no result yet: (id, name)."""

    def __init__(self) -> None:
        self.made: list[dict[str, Any]] = []
        self._open: list[tuple[str, str]] = []
        self._count = 0

    def add(self, message: _Message, place: str) -> None:
        """One more."""
        if message.role == "tool":
            return self.made.append(self._result(message))
        made: dict[str, Any] = {"role": message.role, "content": message.content or ""}
        if message.images:
            pictures = [_picture(image, f"{place}.images[{n}]") for n, image in enumerate(message.images)]
            words = [{"type": "text", "text": message.content}] if message.content else []
            made["content"] = [*words, *pictures]
        if message.role == "assistant" and message.tool_calls:
            made["tool_calls"] = [self._call(call) for call in message.tool_calls]
            self._open = [(call["id"], call["function"]["name"]) for call in made["tool_calls"]]
        return self.made.append(made)

    def _call(self, call: _Call) -> dict[str, Any]:
        self._count += 1
        given = call.function.arguments
        arguments = given if isinstance(given, str) else json.dumps(given or {}, ensure_ascii=False)
        function = {"name": call.function.name, "arguments": arguments}
        return {"id": call.id or f"call_{self._count}", "type": "function", "function": function}

    def _result(self, message: _Message) -> dict[str, Any]:
        """With its call; clients that leave the calls out of their history send it alone, as words."""
        name = message.tool_name or message.name
        fits = [one for one in self._open if one[0] == message.tool_call_id]
        fits = fits or [one for one in self._open if one[1] == name or name is None]
        if not fits:
            return {"role": "user", "content": message.content or ""}
        self._open.remove(fits[0])
        return {"role": "tool", "tool_call_id": fits[0][0], "content": message.content or ""}


def _picture(image: str, place: str) -> dict[str, Any]:
    """As a data: address; the kind stands in the first letters of its base64."""
    bare = image.rpartition("base64,")[2].strip()
    kind = next((kind for mark, kind in KINDS.items() if bare.startswith(mark)), None)
    if kind is None:
        raise BadRequest("Send pictures as base64 of PNG, JPEG, GIF or WebP.", field=place)
    return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{bare}"}}


class _Show(WireModel):
    model: str = ""
    name: str = ""


def read_show(body: bytes) -> str:
    """The model that `POST /api/show` names; UserError."""
    request = read_as(_Show, body)
    if not (request.model or request.name):
        raise BadRequest("Name the model.", field="model")
    return request.model or request.name
