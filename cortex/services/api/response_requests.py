"""What a program asks for by OpenAI's Responses, rewritten as a chat completion, which alone is read further. Pure.

Contract: https://platform.openai.com/docs/api-reference/responses/create (fields, items, tools; read 2026-11-27).
Nothing of a response is kept for its program: the whole conversation comes with each request, so what refers to an
earlier response is refused in words. Reasoning that comes back is passed over, as another server's.
"""

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from msgspec import Struct
from pydantic import BeforeValidator, Field

from cortex.base.errors import UserError
from cortex.services.api.requests import FIRST, MODEL, BadRequest, ChatRequest, WireModel, read_as, request_of

NOT_KEPT = "Cortex keeps no responses for programs: send the whole conversation in `input`."
TEXTS = ("input_text", "output_text", "text", "refusal", "summary_text")
# What a chat completion calls it -> what the program does.
NAMES = {
    "messages": "input",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
    "logprobs": "top_logprobs",
}
PASSED_ON = ("model", "temperature", "top_p", "parallel_tool_calls", "seed", "stop", "stream")
Chat = dict[str, Any]


class _Part(WireModel):
    type: str
    text: str | None = None
    refusal: str | None = None
    image_url: str | None = None
    detail: str | None = None


Content = str | Annotated[list[_Part], FIRST]


class _Item(WireModel):
    type: str = "message"
    role: Literal["user", "assistant", "system", "developer"] | None = None
    content: Content | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    output: Content | None = None


def _said(given: Any) -> Any:
    """A text alone is the user's message."""
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


class _Tool(WireModel):
    type: str
    name: str | None = None
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class _Choice(WireModel):
    type: str
    name: str | None = None
    mode: Literal["auto", "required"] = "auto"
    tools: Annotated[list[_Tool], FIRST] | None = None


class _Text(WireModel):
    format: dict[str, Any] | None = None
    verbosity: str | None = None


class _Reasoning(WireModel):
    effort: str | None = None
    summary: str | None = None


class ResponseRequest(WireModel):
    """The body of `POST /v1/responses`."""

    model: str = MODEL
    input: Annotated[list[_Item], FIRST, BeforeValidator(_said)]
    instructions: str | None = None
    stream: bool | None = None
    tools: Annotated[list[_Tool], FIRST] | None = None
    tool_choice: Literal["none", "auto", "required"] | _Choice | None = None
    text: _Text | None = None
    reasoning: _Reasoning | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    top_logprobs: int | None = None
    include: list[str] | None = None
    previous_response_id: str | None = None
    conversation: str | dict[str, Any] | None = None
    prompt: dict[str, Any] | None = None
    background: bool | None = None
    store: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    parallel_tool_calls: bool | None = None
    seed: int | None = None
    stop: Any = None
    metadata: dict[str, Any] | None = None
    user: str | None = None


class ResponseAsked(Struct, frozen=True, kw_only=True):
    """A request: as a chat completion, and what of it its response repeats."""

    chat: ChatRequest
    echo: Mapping[str, Any]


def read_response_request(body: bytes) -> ResponseAsked:
    """The request in this body; UserError says what is wrong with it, by the names that the program uses."""
    request = read_as(ResponseRequest, body)
    _must_not_refer(request)
    try:
        read = request_of(_chat_of(request))
    except UserError as error:
        raise renamed(error, NAMES) from error
    return ResponseAsked(chat=read, echo=_echo(request))


def renamed(error: UserError, names: Mapping[str, str]) -> UserError:
    """The error with the fields of a chat completion under the names of another protocol."""
    words = re.compile(rf"\b({'|'.join(names)})\b")
    told, field = (words.sub(lambda found: names[found[0]], text) for text in (error.message, error.field))
    return BadRequest(told, field=field, code=getattr(error, "code", ""))


def _must_not_refer(request: ResponseRequest) -> None:
    for name in ("previous_response_id", "conversation"):
        if getattr(request, name):
            raise BadRequest(NOT_KEPT, field=name)
    if request.prompt:
        raise BadRequest("Cortex has no stored prompts: send the text in `instructions` or `input`.", field="prompt")
    if request.background:
        raise BadRequest("Responses in the background are not supported: wait for the answer.", field="background")


def _chat_of(request: ResponseRequest) -> Chat:
    tools, choice = _tools_of(request)
    is_measured = bool(request.top_logprobs) or "message.output_text.logprobs" in (request.include or ())
    given = {
        **{name: getattr(request, name) for name in PASSED_ON},
        "messages": _messages_of(request),
        "tools": tools or None,
        "tool_choice": choice,
        "max_completion_tokens": request.max_output_tokens,
        "response_format": _format_of(request.text.format if request.text else None),
        "reasoning_effort": request.reasoning.effort if request.reasoning else None,
        "verbosity": request.text.verbosity if request.text else None,
        "logprobs": True if is_measured else None,
    }
    return {name: value for name, value in given.items() if value is not None}


def _format_of(wanted: Mapping[str, Any] | None) -> Chat | None:
    """`text.format` as `response_format`: the schema stands one level deeper there."""
    if wanted is None:
        return None
    if wanted.get("type") != "json_schema":
        return dict(wanted)
    inner = {name: wanted[name] for name in ("name", "description", "schema", "strict") if wanted.get(name) is not None}
    return {"type": "json_schema", "json_schema": inner}


def _tools_of(request: ResponseRequest) -> tuple[list[Chat], Any]:
    """The tools, and which of them the model may or must call."""
    tools = [_tool(tool, f"tools[{n}]") for n, tool in enumerate(request.tools or ())]
    choice = request.tool_choice
    if not isinstance(choice, _Choice):
        return tools, choice
    if choice.type == "function":
        return tools, {"type": "function", "function": {"name": choice.name or ""}}
    if choice.type == "allowed_tools":
        names = [{"type": "function", "function": {"name": one.name or ""}} for one in choice.tools or ()]
        return tools, {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": names}}
    raise BadRequest(f"Only functions can be chosen here, not {choice.type[:40]!r}.", field="tool_choice")


def _tool(tool: _Tool, place: str) -> Chat:
    if tool.type != "function":
        words = f"Only tools of type function are supported here, not {tool.type[:40]!r}: leave it out."
        raise BadRequest(words, field=place)
    if not tool.name:
        raise BadRequest("A function needs a name.", field=f"{place}.name")
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    strict = {"strict": tool.strict} if tool.strict is not None else {}
    return {"type": "function", "function": {name: it for name, it in function.items() if it is not None} | strict}


def _messages_of(request: ResponseRequest) -> list[Chat]:
    messages: list[Chat] = []
    if request.instructions:
        messages.append({"role": "system", "content": request.instructions})
    seen: list[Chat] = []  # pictures of results, which a chat completion has no place for in them
    for n, item in enumerate(request.input):
        if item.type != "function_call_output":
            _lay_down(messages, seen)
        read = _READERS.get(item.type)
        if read is None:
            raise BadRequest(_strange(item.type), field=f"input[{n}]")
        read(messages, seen, item, f"input[{n}]")
    _lay_down(messages, seen)
    return messages


def _lay_down(messages: list[Chat], seen: list[Chat]) -> None:
    if seen:
        messages.append({"role": "user", "content": [*seen]})
        seen.clear()


def _strange(kind: str) -> str:
    if kind == "item_reference":
        return NOT_KEPT
    return f"Items of type {kind[:40]!r} are not supported here: leave them out."


def _message(messages: list[Chat], _seen: list[Chat], item: _Item, place: str) -> None:
    if item.role is None:
        raise BadRequest("A message needs a role.", field=f"{place}.role")
    messages.append({"role": item.role, "content": _content(item.content, place)})


def _call(messages: list[Chat], _seen: list[Chat], item: _Item, place: str) -> None:
    """Behind the answer that it belongs to: calls of one round stand with its words."""
    if not item.call_id or not item.name:
        raise BadRequest("A function_call needs a call_id and a name.", field=place)
    call = {
        "id": item.call_id,
        "type": "function",
        "function": {"name": item.name, "arguments": item.arguments or "{}"},
    }
    if messages and messages[-1]["role"] == "assistant":
        messages[-1].setdefault("tool_calls", []).append(call)
    else:
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})


def _result(messages: list[Chat], seen: list[Chat], item: _Item, place: str) -> None:
    if not item.call_id:
        raise BadRequest("A function_call_output needs the call_id of its call.", field=place)
    content = _content(item.output, place)
    if not isinstance(content, str):
        seen += [part for part in content if part["type"] != "text"]
        content = "\n\n".join(part["text"] for part in content if part["type"] == "text")
    messages.append({"role": "tool", "tool_call_id": item.call_id, "content": content})


def _passed_over(_messages: list[Chat], _seen: list[Chat], _item: _Item, _place: str) -> None:
    """Nothing of it is sent."""


_READERS: Mapping[str, Callable[[list[Chat], list[Chat], _Item, str], None]] = {
    "message": _message,
    "function_call": _call,
    "function_call_output": _result,
    "reasoning": _passed_over,
}


def _content(content: Content | None, place: str) -> str | list[Chat]:
    """Words alone as text; with pictures, the parts of a chat completion."""
    if not isinstance(content, list):
        return content or ""
    parts = [_part(part, place) for part in content]
    return parts if any(part["type"] != "text" for part in parts) else "\n\n".join(part["text"] for part in parts)


def _part(part: _Part, place: str) -> Chat:
    if part.type in TEXTS:
        return {"type": "text", "text": part.text or part.refusal or ""}
    if part.type == "input_image":
        if not part.image_url:
            raise BadRequest(
                "Send a picture in image_url, as data:image/…;base64: there are no stored files.", field=place
            )
        detail = {"detail": part.detail} if part.detail else {}
        return {"type": "image_url", "image_url": {"url": part.image_url, **detail}}
    raise BadRequest(f"Only text and pictures are supported here, not {part.type[:40]!r}.", field=place)


def _echo(request: ResponseRequest) -> dict[str, Any]:
    """Repeat what a response does of its request. `store` is false whatever was asked: nothing is kept for programs."""
    choice = request.tool_choice
    text = request.text.model_dump(exclude_none=True) if request.text else {}
    return {
        "instructions": request.instructions,
        "max_output_tokens": request.max_output_tokens,
        "metadata": request.metadata or {},
        "model": request.model,
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "previous_response_id": None,
        "reasoning": (request.reasoning or _Reasoning()).model_dump(),
        "store": False,
        "temperature": request.temperature,
        "text": {"format": {"type": "text"}, **text},
        "tool_choice": choice.model_dump(exclude_none=True) if isinstance(choice, _Choice) else choice or "auto",
        "tools": [tool.model_dump(exclude_none=True) for tool in request.tools or ()],
        "top_p": request.top_p,
        "truncation": "disabled",
        "user": request.user,
    }
