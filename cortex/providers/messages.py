"""Anthropic's Messages API, with its prompt cache switched on.

`body` builds a request, `MessagesReader` reads the answer. Blocks that go back unread (signed or redacted thinking,
kinds that Cortex does not know) are kept whole: in `Thinking.opaque` and `Opaque.data` as {"provider_name", "block"}.
"""

import json
from collections.abc import Mapping
from typing import Any

from cortex.base.messages import Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult, ToolSchema, Usage
from cortex.ports.loop import Delta, Request
from cortex.providers.late import SEARCH, places, search_for
from cortex.providers.terms import (
    NOTHING,
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
    whole_text,
)

PATH = "/v1/messages"
CHANGES_BETA = "mid-conversation-tool-changes-2026-07-01"
_MARK = {"cache_control": {"type": "ephemeral", "ttl": "5m"}}
_FINISHES: Mapping[str, Finish] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "window",
    "refusal": "filtered",
}
_NAMES = {"stop": "stop_sequences"}
_UNKNOWN_HERE = {
    "seed", "presence_penalty", "frequency_penalty", "logit_bias", "min_p", "repeat_penalty", "repetition_penalty",
    "chat_template_kwargs", "reasoning_effort", "verbosity", "response_format",
}  # fmt: skip
_BUDGETS = {"minimal": 1_024, "low": 2_048, "medium": 10_000, "high": 16_384, "xhigh": 32_768}


def body(request: Request, terms: Terms, most_tokens: int) -> dict[str, Any]:
    """Return what is sent: marks for the cache after the tools, the instructions and the last message."""
    entry = terms.entry
    settings = _settings(request, terms)
    found: dict[str, Any] = {"model": entry.model, "max_tokens": most_tokens}
    if request.system:
        found["system"] = [{"type": "text", "text": request.system}]
    messages = fitted(request, terms)
    revealed = places(request, messages, terms.late)
    if request.tools:
        late = {name for names in revealed.values() for name in names}
        found["tools"] = [
            _declared(one) | ({"defer_loading": True} if one.name in late else {}) for one in request.tools
        ]
        found["tool_choice"] = _choice(request, terms, is_thinking=_thinks(settings))
    found["messages"] = _messages(request, messages, revealed, terms)
    if not request.tools:
        found |= _tools_of(request)
    if entry.profile.caches:
        _mark(found)
    if terms.streams(request):
        found["stream"] = True
    found |= settings
    if "thinking" in settings:
        found |= _thinking(settings["thinking"], most_tokens)
        if _is_open(found):
            del found["thinking"]
    return {key: value for key, value in found.items() if value is not None and not terms.leaves_out(request, key)}


def _settings(request: Request, terms: Terms) -> dict[str, Any]:
    """Return what tunes the answer, as this API takes it: no warmer than 1, no blank stop sequences."""
    given = settings_of(request, terms)
    found = {_NAMES.get(key, key): value for key, value in given.items() if key not in _UNKNOWN_HERE}
    if isinstance(found.get("temperature"), int | float):
        found["temperature"] = min(found["temperature"], 1)
    if isinstance(stops := found.get("stop_sequences"), list):
        found["stop_sequences"] = [stop for stop in stops if str(stop).strip()] or None
    return found


def headers(sent: Mapping[str, Any]) -> dict[str, str]:
    """Return what goes over a body besides the key."""
    is_told = any(message["role"] == "system" for message in sent["messages"])
    return {"anthropic-beta": CHANGES_BETA} if is_told else {}


def _thinks(settings: Mapping[str, Any]) -> bool:
    value = settings.get("thinking")
    return bool(value) and not (isinstance(value, Mapping) and value.get("type") == "disabled")


def _thinking(value: Any, most_tokens: int) -> dict[str, Any]:
    """An entry's `thinking`: the API's own object, or a word for how much."""
    if isinstance(value, Mapping) or not value:
        return {"thinking": value or None}
    budget = min(_BUDGETS.get(str(value), _BUDGETS["medium"]), max(1_024, most_tokens // 2))
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _is_open(found: Mapping[str, Any]) -> bool:
    """Tell whether a turn goes on that began without the thinking that is asked for now: that is refused."""
    is_asked = isinstance(found["thinking"], Mapping) and found["thinking"].get("type") == "enabled"
    said = [message["content"] for message in found["messages"] if message["role"] == "assistant"]
    goes_on = found["messages"][-1]["content"][0].get("type") == "tool_result"
    return is_asked and goes_on and bool(said) and said[-1][0]["type"] not in ("thinking", "redacted_thinking")


def _tools_of(request: Request) -> dict[str, Any]:
    """The tools of the calls in the history, which this API wants declared, where none may be called any more."""
    names = sorted({call.name for message in request.messages for call in message.calls})
    tools = [{"name": name, "description": "", "input_schema": {"type": "object"}} for name in names]
    return {"tools": tools, "tool_choice": {"type": "none"}} if tools else {}


def _declared(tool: ToolSchema) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


def _choice(request: Request, terms: Terms, *, is_thinking: bool) -> dict[str, Any]:
    """A model that thinks aloud may not be forced to call (Anthropic refuses the request): it is left to choose."""
    if request.tool_choice == "none":
        return {"type": "none"}
    kind = "any" if request.tool_choice == "required" and not is_thinking else "auto"
    one = not (request.parallel_calls and terms.entry.parallel_calls)
    return {"type": kind} | ({"disable_parallel_tool_use": True} if one else {})


def _messages(
    request: Request, messages: tuple[Message, ...], revealed: Mapping[int, tuple[str, ...]], terms: Terms
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    added: list[str] = []  # tools that the system tells of, once the user has spoken
    for at, message in enumerate(messages):
        if message.speaker == "assistant":
            if added:
                found.append({"role": "system", "content": [_addition(name) for name in added]})
                added = []
            _put(found, "assistant", _assistant_blocks(message, request, terms))
            continue
        is_told = _is_searched(message) and at in revealed
        _put(found, "user", _user_blocks(message, request, terms, revealed[at] if is_told else ()))
        if at not in revealed or is_told:
            continue
        if terms.late == "by_exchange":
            search = search_for(revealed[at])
            _put(found, "assistant", [_tool_use(search, terms)])
            _put(found, "user", [_search_result(search.id, revealed[at], terms)])
        else:
            added += revealed[at]
    if added:
        found.append({"role": "system", "content": [_addition(name) for name in added]})
    return found


def _put(found: list[dict[str, Any]], role: str, blocks: list[dict[str, Any]]) -> None:
    """Add what somebody says; two messages of one speaker are one here."""
    if found and found[-1]["role"] == role:
        found[-1]["content"] += blocks
    elif blocks:
        found.append({"role": role, "content": blocks})


def _addition(name: str) -> dict[str, Any]:
    return {"type": "tool_addition", "tool": {"type": "tool_reference", "name": name}}


def _is_searched(message: Message) -> bool:
    return any(isinstance(part, ToolResult) and part.name == SEARCH and not part.is_error for part in message.parts)


def _user_blocks(message: Message, request: Request, terms: Terms, found: tuple[str, ...]) -> list[dict[str, Any]]:
    """The user's side: results first, then pictures and words. `found`: tools that a search in it has found."""
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    blocks: list[dict[str, Any]] = []
    for part in results:
        if found and part.name == SEARCH and not part.is_error:
            blocks.append(_search_result(part.call_id, found, terms))
            found = ()
        else:
            content = [{"type": "text", "text": part.text or NOTHING}]
            told = {"type": "tool_result", "tool_use_id": call_id(part.call_id, terms.row.call_ids)}
            blocks.append({**told, "content": content, "is_error": part.is_error})
    if message.speaker == "tool":
        return blocks
    pictures, words = seen_of(message, request, terms.entry)
    for picture, data in pictures:
        source = {"type": "base64", "media_type": picture.media_type, "data": data}
        blocks.append({"type": "image", "source": source})
    return [*blocks, {"type": "text", "text": words}] if words else blocks


def _search_result(search_id: str, names: tuple[str, ...], terms: Terms) -> dict[str, Any]:
    content = [{"type": "tool_reference", "tool_name": name} for name in names]
    told = {"type": "tool_result", "tool_use_id": call_id(search_id, terms.row.call_ids)}
    return {**told, "content": content, "is_error": False}


def _assistant_blocks(message: Message, request: Request, terms: Terms) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for part in message.parts:
        match part:
            case Text(text=text) if text.strip():
                blocks.append({"type": "text", "text": text})
            case Thinking(opaque=opaque) if opaque and not terms.leaves_out(request, "thinking"):
                blocks += _block(opaque, terms)
            case ToolCall():
                blocks.append(_tool_use(part, terms))
            case Opaque(provider=provider, data=data) if provider == terms.name:
                blocks += _block({**data, "provider_name": provider}, terms)
    return blocks


def _tool_use(call: ToolCall, terms: Terms) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": call_id(call.id, terms.row.call_ids),
        "name": call.name,
        "input": arguments_of(call),
    }


def _block(opaque: Mapping[str, Any], terms: Terms) -> list[dict[str, Any]]:
    """The provider's own block, if it is this one's; also as versions up to 2026-11 kept it."""
    if opaque.get("provider_name") != terms.name:
        return []
    if "block" in opaque:
        return [dict(opaque["block"])]
    if not opaque.get("signature"):
        return []
    if opaque.get("id") == "redacted_thinking":
        return [{"type": "redacted_thinking", "data": opaque["signature"]}]
    return [{"type": "thinking", "thinking": opaque.get("content", ""), "signature": opaque["signature"]}]


def _mark(found: dict[str, Any]) -> None:
    """Three of the four marks that are allowed. Deferred tools are outside of what is cached."""
    plain = [tool for tool in found.get("tools", ()) if "defer_loading" not in tool]
    last = [block for message in found["messages"][-1:] for block in message["content"]]
    for blocks in (found.get("system", []), plain, last):
        if blocks and blocks[-1]["type" if "type" in blocks[-1] else "name"] not in ("thinking", "redacted_thinking"):
            blocks[-1] |= _MARK


class MessagesReader:
    """Reads one answer."""

    def __init__(self, request: Request, terms: Terms) -> None:
        self._request, self._terms = request, terms
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, str] = {}
        self._usage: dict[str, int] = {}
        self.answer = Answer()

    def event(self, kind: str, data: Mapping[str, Any]) -> list[Delta]:
        """Take in one event."""
        match data.get("type") or kind:
            case "message_start":
                self._note(_mapping(data.get("message")).get("usage"))
            case "content_block_start":
                return self._begin(number(data.get("index")), _mapping(data.get("content_block")))
            case "content_block_delta":
                return self._grow(number(data.get("index")), _mapping(data.get("delta")))
            case "message_delta":
                self._take_finish(_mapping(data.get("delta")).get("stop_reason"))
                self._note(data.get("usage"))
            case "message_stop":
                self.answer.is_over = True
        return []

    def whole(self, body: Mapping[str, Any]) -> list[Delta]:
        """Take in an answer that came in one piece."""
        deltas: list[Delta] = []
        content = body.get("content")
        for index, block in enumerate(content if isinstance(content, list) else []):
            deltas += self._begin(index, _mapping(block))
        self._take_finish(body.get("stop_reason"))
        self._note(body.get("usage"))
        self.answer.is_over = True
        return deltas

    def end(self) -> tuple[list[Delta], Answer]:
        """The answer, block by block as it came."""
        made = [self._part_of(index, block) for index, block in sorted(self._blocks.items())]
        calls = iter(own_calls([part for part in made if isinstance(part, ToolCall)], self._request))
        parts: list[Part] = [next(calls) if isinstance(part, ToolCall) else part for part in made]
        self.answer.parts = [part for part in parts if not (isinstance(part, Text) and not part.text)]
        if self._usage:
            cached, written = self._usage.get("cache_read_input_tokens", 0), self._usage.get(_WRITTEN, 0)
            self.answer.usage = Usage(
                input_tokens=self._usage.get("input_tokens", 0) + cached + written,
                output_tokens=self._usage.get("output_tokens", 0),
                cached_tokens=cached,
                written_tokens=written,
            )
        return [], self.answer

    def _take_finish(self, reason: object) -> None:
        if isinstance(reason, str) and reason:
            self.answer.finish = _FINISHES.get(reason, "stop")

    def _note(self, usage: object) -> None:
        """Later counts stand in place of earlier ones; a count of nothing says nothing."""
        self._usage |= {key: count for key, value in _mapping(usage).items() if (count := number(value))}

    def _begin(self, index: int, block: Mapping[str, Any]) -> list[Delta]:
        self._blocks[index] = dict(block)
        return _deltas_of(block.get("type"), block.get("text") or block.get("thinking"))

    def _grow(self, index: int, delta: Mapping[str, Any]) -> list[Delta]:
        block = self._blocks.setdefault(index, {"type": "text", "text": ""})
        match delta.get("type"):
            case "input_json_delta":
                self._inputs[index] = self._inputs.get(index, "") + str(delta.get("partial_json") or "")
            case "text_delta" | "thinking_delta" | "signature_delta":
                name = str(delta["type"]).removesuffix("_delta")
                text = str(delta.get(name) or "")
                block[name] = str(block.get(name) or "") + text
                return _deltas_of(block.get("type"), text) if name != "signature" else []
        return []

    def _part_of(self, index: int, block: dict[str, Any]) -> Part:
        name = self._terms.name
        match block.get("type"):
            case "text":
                return Text(text=whole_text(str(block.get("text") or "")))
            case "tool_use":
                given = self._inputs.get(index) or json.dumps(block.get("input") or {}, ensure_ascii=False)
                return ToolCall(id=str(block.get("id") or ""), name=str(block.get("name") or ""), arguments=given)
            case "thinking" | "redacted_thinking":
                text = whole_text(str(block.get("thinking") or ""))
                is_signed = block.get("signature") or block["type"] == "redacted_thinking"
                return Thinking(text=text, opaque={"provider_name": name, "block": block} if is_signed else None)
            case _:
                return Opaque(provider=name, data={"block": block})


_WRITTEN = "cache_creation_input_tokens"


def _deltas_of(kind: object, text: object) -> list[Delta]:
    if not isinstance(text, str) or not text or kind not in ("text", "thinking"):
        return []
    return [Delta(kind="text" if kind == "text" else "thinking", text=text)]


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
