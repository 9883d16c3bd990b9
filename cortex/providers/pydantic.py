"""The one mapper between Cortex's messages and a wire: pydantic-ai's message types, both ways, kept verbatim.

What a provider wants back unread (signatures, ids, details) is stored in `opaque` and replayed as it came, so that the
prefix of the next request is byte-equal. `wire.py` sends; `openai.py` and `anthropic.py` build the model.
"""

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from cortex.base.attachments import words_of_gone, words_of_unseen
from cortex.base.messages import Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult, Usage
from cortex.ports.loop import Request
from cortex.providers.late import Late, places, reveal

_PARTS: TypeAdapter[ModelResponsePart] = TypeAdapter(ModelResponsePart)
_SAFE_ID = re.compile(r"[^a-zA-Z0-9_-]")
_NOT_SAID = "(nothing)"


@dataclass(frozen=True, slots=True, kw_only=True)
class WireTraits:
    """What differs between the wires. `name`: whose opaque parts go back. `has_safe_ids`: call ids must be plain.

    `late`: how it takes tools that came after the prefix was cached. `sees`: whether it takes pictures.
    """

    name: str
    has_safe_ids: bool = False
    late: Late = "none"
    sees: bool = False


def parameters(request: Request, wire: WireTraits) -> ModelRequestParameters:
    """The tools as pydantic-ai declares them, schemas untouched."""
    late = _late_names(request, wire)
    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=tool.name,
                description=tool.description,
                parameters_json_schema=tool.parameters,
                strict=False,
                defer_loading=tool.name in late,
            )
            for tool in request.tools
        ],
        revealed_tool_names=late,
    )


def _late_names(request: Request, wire: WireTraits) -> set[str]:
    return {name for names in places(request, wire.late).values() for name in names}


def to_wire(request: Request, wire: WireTraits) -> list[ModelMessage]:
    """The request's history in pydantic-ai's types; the same request gives the same messages, always."""
    sent: list[ModelMessage] = []
    asked: list[ModelRequestPart] = [SystemPromptPart(content=request.system)] if request.system else []
    revealed, late = places(request, wire.late), _late_names(request, wire)
    for at, message in enumerate(request.messages):
        if message.speaker == "assistant":
            answered = _response(message, wire, late)
            if answered is None:
                continue
            if asked:
                sent.append(ModelRequest(parts=asked))
                asked = []
            sent.append(answered)
        else:
            asked += _asked(message, wire, request.pictures)
            if at in revealed:
                asked = reveal(sent, asked, revealed[at], wire.late)
    if asked:
        sent.append(ModelRequest(parts=asked))
    return sent


def _asked(message: Message, wire: WireTraits, pictures: Mapping[str, bytes]) -> list[ModelRequestPart]:
    if message.speaker == "tool":
        return [
            ToolReturnPart(
                tool_name=part.name,
                content=part.text or _NOT_SAID,
                tool_call_id=_call_id(part.call_id, wire),
                outcome="failed" if part.is_error else "success",
            )
            for part in message.parts
            if isinstance(part, ToolResult)
        ]
    if message.speaker == "system":
        return [SystemPromptPart(content=message.text)]
    if message.pictures:
        return [UserPromptPart(content=_with_pictures(message, wire, pictures))]
    return [UserPromptPart(content=message.text or _NOT_SAID)]


def _with_pictures(message: Message, wire: WireTraits, pictures: Mapping[str, bytes]) -> list[UserContent]:
    """Pictures ahead of the words, as Anthropic advises; in place of what cannot be sent, a line."""
    sent: list[UserContent] = []
    lines: list[str] = []
    for picture in message.pictures:
        data = pictures.get(picture.sha256)
        if wire.sees and data is not None:
            sent.append(BinaryContent(data=data, media_type=picture.media_type))
        else:
            lines.append(words_of_gone(picture.name) if wire.sees else words_of_unseen(picture.name))
    words = "\n\n".join(filter(None, (*lines, message.text)))
    return [*sent, words] if words or not sent else sent


def _response(message: Message, wire: WireTraits, late: set[str]) -> ModelResponse | None:
    parts: list[ModelResponsePart] = []
    for part in message.parts:
        match part:
            case Text(text=text) if text.strip():
                parts.append(TextPart(content=text))
            case Thinking(opaque=opaque) if opaque is not None:
                _restore(parts, opaque, wire)
            case ToolCall():
                call_id = _call_id(part.id, wire)
                parts.append(ToolCallPart(tool_name=part.name, args=part.arguments, tool_call_id=call_id))
            case Opaque(provider=provider, data=data) if provider == wire.name:
                _amend(parts, data, wire, late)
            case _:
                continue
    if not any(isinstance(part, TextPart | ToolCallPart) for part in parts):
        return None
    return ModelResponse(parts=parts, provider_name=wire.name)


def _restore(parts: list[ModelResponsePart], opaque: dict[str, Any], wire: WireTraits) -> None:
    """Put a provider's own part back; another provider's reasoning is not for this one."""
    if opaque.get("provider_name") == wire.name:
        parts.append(_PARTS.validate_python(opaque))


def _amend(parts: list[ModelResponsePart], data: dict[str, Any], wire: WireTraits, late: set[str]) -> None:
    """An opaque part either stands for itself (`part`) or carries the details of the part before it (`details`)."""
    if "part" in data:
        _restore(parts, {**data["part"], "provider_name": wire.name}, wire)
    elif parts and isinstance(parts[-1], TextPart | ToolCallPart):
        details = dict(data["details"])
        if isinstance(parts[-1], ToolCallPart) and parts[-1].tool_name not in late:
            details["provider_details"] = _without_namespace(details.get("provider_details"))
        parts[-1] = replace(parts[-1], provider_name=wire.name, **details)


def _without_namespace(details: dict[str, Any] | None) -> dict[str, Any] | None:
    """What OpenAI said of a call whose tool came late then and is declared plainly now."""
    return {key: value for key, value in details.items() if key != "namespace"} if details else None


def _call_id(call_id: str, wire: WireTraits) -> str:
    return _SAFE_ID.sub("_", call_id)[:64] if wire.has_safe_ids else call_id


def from_wire(response: ModelResponse, request: Request, wire: WireTraits) -> Message:
    """A finished answer as a message of ours. A call id that is empty or was used before gets a fresh one."""
    used = {call.id for message in request.messages for call in message.calls}
    parts: list[Part] = []
    for part in response.parts:
        match part:
            case TextPart():
                if part.content:
                    parts += [Text(text=_whole(part.content)), *_details(part, wire)]
            case ThinkingPart():
                dumped = {**_dumped(part), "provider_name": wire.name}
                # Reasoning cut out of the text (tags) goes back nowhere; the rest is the provider's own.
                parts.append(Thinking(text=part.content, opaque=None if part.id == "content" else dumped))
            case ToolCallPart():
                call = _call(part, used)
                used.add(call.id)
                parts += [call, *_details(part, wire)]
            case _:
                parts.append(Opaque(provider=wire.name, data={"part": _dumped(part)}))
    return Message(speaker="assistant", parts=tuple(parts))


def _call(part: ToolCallPart, used: set[str]) -> ToolCall:
    call_id = part.tool_call_id
    if not call_id or call_id in used:
        call_id = f"call_{uuid.uuid4().hex[:24]}"
    arguments = part.args if isinstance(part.args, str) else json.dumps(part.args or {}, ensure_ascii=False)
    return ToolCall(id=call_id, name=_whole(part.tool_name), arguments=_whole(arguments) or "{}")


def _whole(text: str) -> str:
    """The text with U+FFFD for each half of a surrogate pair: nothing can send or keep one."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _details(part: TextPart | ToolCallPart, wire: WireTraits) -> list[Part]:
    details = {key: value for key in ("id", "provider_details") if (value := getattr(part, key)) is not None}
    return [Opaque(provider=wire.name, data={"details": _portable(details)})] if details else []


def _dumped(part: ModelResponsePart) -> dict[str, Any]:
    dumped: dict[str, Any] = _PARTS.dump_python(part, mode="json", exclude_none=True)
    return dumped


def _portable(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str))


def usage_of(usage: RequestUsage) -> Usage:
    """Token usage; pydantic-ai already counts cached and written tokens into the input."""
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cache_read_tokens,
        written_tokens=usage.cache_write_tokens,
    )
