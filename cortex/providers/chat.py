"""Chat completions: OpenAI's older protocol, which almost every other server speaks in its own way.

`body` builds a request by the server's row, `ChatReader` reads the answer, streamed or whole. What the server wants
back unread (reasoning, signatures) is kept as it came: in `Thinking.opaque` as {"provider_name", "fields"}, and behind
a call as an `Opaque` of {"details"}.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cortex.base.messages import Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult, ToolSchema, Usage
from cortex.ports.loop import Delta, Request
from cortex.providers.call_pieces import CallPieces
from cortex.providers.servers import OTHER
from cortex.providers.terms import (
    Answer,
    Finish,
    Terms,
    arguments_of,
    call_id,
    fitted,
    number,
    own_calls,
    seen_of,
    settings_of,
    text_of,
    whole_text,
)

PATH = "/chat/completions"
_NAMES = {"stop_sequences": "stop", "thinking": "reasoning_effort"}  # as an entry's parameters were named so far
_FINISHES: Mapping[str, Finish] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "filtered",
    "content-filter": "filtered",
    "safety": "filtered",
    "error": "error",
}
_LISTS = ("reasoning_details", "thinking_blocks")  # reasoning in parts, OpenRouter's and LiteLLM's
_WORDS = ("text", "summary", "thinking")  # what of them is to be read


def body(request: Request, terms: Terms, most_tokens: int) -> dict[str, Any]:
    """Return what is sent; what the server refuses is left out."""
    entry, row = terms.entry, terms.row
    found: dict[str, Any] = {"model": entry.model, "messages": _messages(request, terms)}
    if request.tools:
        found["tools"] = [declared(tool) for tool in request.tools]
        is_taken = not terms.leaves_out(request, f"tool_choice={request.tool_choice}")
        found["tool_choice"] = request.tool_choice if is_taken else "auto"
        if not (request.parallel_calls and entry.parallel_calls):
            found["parallel_tool_calls"] = False
    found[row.output_limit] = most_tokens
    if terms.streams(request):
        found |= {"stream": True, "stream_options": {"include_usage": True}}
    found |= {_NAMES.get(key, key): value for key, value in settings_of(request, terms).items()}
    if isinstance(found.get("reasoning_effort"), bool):
        found["reasoning_effort"] = "medium" if found["reasoning_effort"] else "none"
    return {key: value for key, value in found.items() if not terms.leaves_out(request, key)}


def declared(tool: ToolSchema) -> dict[str, Any]:
    """A tool as this protocol declares it."""
    told: dict[str, Any] = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": told | ({"strict": True} if tool.strict else {})}


def _messages(request: Request, terms: Terms) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"role": "system", "content": request.system}] if request.system else []
    for message in fitted(request, terms):
        match message.speaker:
            case "tool":
                found += [_tool_message(part, terms) for part in message.parts if isinstance(part, ToolResult)]
            case "assistant":
                found.append(_with_gemini_signature(_assistant_message(message, request, terms), terms))
            case _:
                found.append({"role": "user", "content": _user_content(message, request, terms)})
    return found


def _tool_message(part: ToolResult, terms: Terms) -> dict[str, Any]:
    told = {"role": "tool", "tool_call_id": call_id(part.call_id, terms.row.call_ids), "content": text_of(part)}
    return {**told, "name": part.name} if terms.row.names_results else told


def _user_content(message: Message, request: Request, terms: Terms) -> str | list[dict[str, Any]]:
    """Pictures ahead of the words; in place of what cannot be sent, a line."""
    pictures, words = seen_of(message, request, terms.entry)
    if not pictures:
        return words
    shown: list[dict[str, Any]] = [
        {"type": "image_url", "image_url": {"url": f"data:{picture.media_type};base64,{data}"}}
        for picture, data in pictures
    ]
    return [*shown, {"type": "text", "text": words}] if words else shown


def _assistant_message(message: Message, request: Request, terms: Terms) -> dict[str, Any]:
    found: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    row = terms.row
    if not terms.leaves_out(request, "thinking"):
        for part in message.parts:
            if isinstance(part, Thinking):
                found |= {key: value for key, value in _fields(part, terms).items() if key in row.goes_back}
    calls: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            function = {"name": part.name, "arguments": _verbatim(part)}
            calls.append({"id": call_id(part.id, row.call_ids), "type": "function", "function": function})
        elif isinstance(part, Opaque) and part.provider == terms.name and calls:
            calls[-1] |= _details(part)
    said = {**found, "tool_calls": calls} if calls else found
    return said if terms.leaves_out(request, "thinking") else _with_stand_ins(said, terms)


def _with_stand_ins(said: dict[str, Any], terms: Terms) -> dict[str, Any]:
    """The answer with what its server insists on and another model's does not have."""
    for models, place, value in terms.row.stand_ins:
        *ways, key = place.split(".")
        if not re.search(models, terms.entry.model) or (ways[:1] == ["calls"] and "tool_calls" not in said):
            continue
        into = said
        if ways[:1] == ["calls"]:
            into = said["tool_calls"][0]
            ways = ways[1:]
        for way in ways:
            into[way] = dict(into[way]) if isinstance(into.get(way), Mapping) else {}
            into = into[way]
        if not into.get(key):
            into[key] = value
    return said


def _with_gemini_signature(said: dict[str, Any], terms: Terms) -> dict[str, Any]:
    """An answer with calls as OpenRouter's Gemini takes it: its signature under the id of one of its calls.

    Without one, another model's say, the word that none is to be checked, once for an answer, under the id of its
    first call (github.com/RooCodeInc/Roo-Code/pull/10640, UKGovernmentBEIS/inspect_ai/issues/3986).
    """
    if terms.row.id != "openrouter" or "gemini" not in terms.entry.model or "tool_calls" not in said:
        return said
    ids = [call["id"] for call in said["tool_calls"]]
    details = [
        {**detail, "id": ids[0]} if detail.get("type") == _SIGNED and detail.get("id") not in ids else detail
        for detail in said.get("reasoning_details") or ()
        if isinstance(detail, Mapping)
    ]
    if all(detail.get("type") != _SIGNED for detail in details):
        unsigned = {"type": _SIGNED, "data": "skip_thought_signature_validator", "format": "google-gemini-v1"}
        details.append({**unsigned, "id": ids[0], "index": 0})
    return {**said, "reasoning_details": details}


_SIGNED = "reasoning.encrypted"


def _verbatim(call: ToolCall) -> str:
    """The arguments as the model wrote them, so that its own words are found again in the cache."""
    found = arguments_of(call)
    return json.dumps(found, ensure_ascii=False) if "INVALID_JSON" in found else call.arguments


def _fields(part: Thinking, terms: Terms) -> dict[str, Any]:
    """The fields that held this reasoning, if it was this server's; also as versions up to 2026-11 kept them."""
    opaque = part.opaque or {}
    if opaque.get("provider_name") != terms.name:
        return {}
    if "fields" in opaque:
        return dict(opaque["fields"])
    return {opaque["id"]: opaque.get("content", "")} if opaque.get("id") in ("reasoning_content", "reasoning") else {}


def _details(part: Opaque) -> dict[str, Any]:
    details = part.data.get("details")
    return dict(details.get("call", {})) if isinstance(details, Mapping) else {}


class ChatReader:
    """Reads one answer."""

    def __init__(self, request: Request, terms: Terms) -> None:
        self._request, self._terms = request, terms
        self._text: list[str] = []
        self._thought: list[str] = []
        self._fields: dict[str, Any] = {}
        self._calls = CallPieces()
        self.answer = Answer()

    def event(self, kind: str, data: Mapping[str, Any]) -> list[Delta]:
        """Take in one chunk."""
        del kind
        self._note(data)
        choice = _first(data.get("choices"))
        told = choice.get("delta") or choice.get("message") or {}
        return self._take(told if isinstance(told, Mapping) else {}, choice)

    def whole(self, body: Mapping[str, Any]) -> list[Delta]:
        """Take in an answer that came in one piece."""
        self.answer.is_over = True
        return self.event("", body)

    def end(self) -> tuple[list[Delta], Answer]:
        """The answer, its parts in the order in which providers want them back: reasoning, words, calls."""
        calls = own_calls([call for call, _ in self._calls.calls()], self._request)
        details = [extra for _, extra in self._calls.calls()]
        parts: list[Part] = []
        thought = "".join(self._thought)
        if thought or self._fields:
            opaque = {"provider_name": self._terms.name, "fields": self._fields} if self._fields else None
            parts.append(Thinking(text=whole_text(thought), opaque=opaque))
        if text := "".join(self._text):
            parts.append(Text(text=whole_text(text)))
        for call, extra in zip(calls, details, strict=True):
            parts.append(call)
            if extra:
                parts.append(Opaque(provider=self._terms.name, data={"details": {"call": extra}}))
        self.answer.parts = parts
        return [], self.answer

    def _note(self, data: Mapping[str, Any]) -> None:
        if isinstance(usage := data.get("usage"), Mapping) or isinstance(usage := _groq(data), Mapping):
            self.answer.usage = _usage(usage, self._terms)
            if not data.get("choices"):
                self.answer.is_over = True  # the chunk behind the last

    def _take(self, told: Mapping[str, Any], choice: Mapping[str, Any]) -> list[Delta]:
        deltas = self._reasoning(told)
        for kind, text in _content(told.get("content") or told.get("refusal")):
            (self._text if kind == "text" else self._thought).append(text)
            deltas.append(Delta(kind="text" if kind == "text" else "thinking", text=text))
        calls = told.get("tool_calls")
        for piece in calls if isinstance(calls, list) else []:
            if isinstance(piece, Mapping):
                self._calls.add(piece)
        if isinstance(told.get("extra_content"), Mapping):
            self._fields["extra_content"] = told["extra_content"]
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.answer.finish = _FINISHES.get(reason.lower(), "stop")
        return deltas

    def _reasoning(self, told: Mapping[str, Any]) -> list[Delta]:
        """The reasoning of one piece; of fields that say the same, the first of the row is shown and all are kept."""
        shown = ""
        for name in self._terms.row.reasoning:
            value = told.get(name)
            if name in _LISTS and isinstance(value, list):
                words = _merge(self._fields.setdefault(name, []), value)
            elif name not in _LISTS and isinstance(value, str) and value:
                self._fields[name] = self._fields.get(name, "") + value
                words = value
            else:
                continue
            shown = shown or words
        if shown:
            self._thought.append(shown)
        return [Delta(kind="thinking", text=shown)] if shown else []


def _first(choices: Any) -> Mapping[str, Any]:
    """The first choice, which is the only one that was asked for."""
    found = [choice for choice in choices if isinstance(choice, Mapping)] if isinstance(choices, list) else []
    return next((choice for choice in found if not choice.get("index")), {})


def _content(value: Any) -> Iterable[tuple[str, str]]:
    """(kind, text) of a content: a text, or a list of parts as Mistral's models that think write it."""
    if isinstance(value, str):
        return [("text", value)] if value else []
    found: list[tuple[str, str]] = []
    for part in value if isinstance(value, list) else []:
        if isinstance(part, Mapping) and isinstance(part.get("text"), str):
            found.append(("text", part["text"]))
        elif isinstance(part, Mapping) and part.get("type") == "thinking":
            inner = part.get("thinking")
            words = inner if isinstance(inner, str) else "".join(text for _, text in _content(inner))
            found.append(("thinking", words))
    return found


def _merge(kept: list[dict[str, Any]], pieces: Sequence[Any]) -> str:
    """Add streamed details to those that came, piece by piece; what of them is to be read.

    A piece of the kind and the place of the last one goes on with it (OpenRouter, "Preserving reasoning"), until its
    signature has come (LiteLLM's, which have no place).
    """
    words = ""
    for piece in pieces:
        if not isinstance(piece, Mapping):
            continue
        words += next((text for key in _WORDS if isinstance(text := piece.get(key), str)), "")
        last = kept[-1] if kept else {}
        is_same = all(piece.get(key) in (None, last.get(key)) for key in ("type", "index", "id")) and bool(kept)
        is_closed = bool(last.get("signature")) and any(piece.get(key) for key in _WORDS)
        if not is_same or is_closed or piece.get("type") in ("reasoning.encrypted", "redacted_thinking"):
            kept.append(dict(piece))
            continue
        for key, value in piece.items():
            is_growing = key in (*_WORDS, "data") and isinstance(value, str)
            if is_growing:
                last[key] = value if not isinstance(last.get(key), str) else last[key] + value
            elif value is not None:
                last[key] = value
    return words


def _groq(data: Mapping[str, Any]) -> Any:
    return data["x_groq"].get("usage") if isinstance(data.get("x_groq"), Mapping) else None


def _usage(usage: Mapping[str, Any], terms: Terms) -> Usage:
    cached = next((found for path in (*terms.row.cached, *OTHER.cached) if (found := number(_at(usage, path)))), 0)
    sent = number(usage.get("prompt_tokens"))
    written = next((found for path in terms.row.written if (found := number(_at(usage, path)))), 0)
    return Usage(
        input_tokens=max(sent, cached),
        output_tokens=number(usage.get("completion_tokens")),
        cached_tokens=cached,
        written_tokens=min(written, max(sent, cached) - cached),
    )


def _at(value: Any, path: str) -> Any:
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
