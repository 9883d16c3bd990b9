"""OpenAI's Responses, which keeps nothing there: Cortex sends the whole conversation each time.

`body` builds a request, `ResponsesReader` reads the answer. Reasoning goes back sealed, as the item that it came as: in
`Thinking.opaque` as {"provider_name", "item"}; ids and the like of words and calls stand behind them as an `Opaque` of
{"details"}.
"""

from collections.abc import Mapping
from typing import Any

from cortex.base.messages import Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult, ToolSchema, Usage
from cortex.ports.loop import Delta, Request
from cortex.providers.late import places
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

PATH = "/responses"
SEALED = "reasoning.encrypted_content"
_NAMES = {"max_tokens": "max_output_tokens", "max_completion_tokens": "max_output_tokens"}
_UNKNOWN_HERE = {
    "seed", "presence_penalty", "frequency_penalty", "stop", "stop_sequences", "logit_bias", "top_k", "min_p",
    "repeat_penalty", "repetition_penalty", "chat_template_kwargs",
}  # fmt: skip
_FINISHES: Mapping[str, Finish] = {"max_output_tokens": "length", "content_filter": "filtered"}
_OF_WORDS = ("id", "phase")
_OF_CALLS = ("id", "namespace")


def body(request: Request, terms: Terms, most_tokens: int) -> dict[str, Any]:
    """Return what is sent; what the server refuses is left out."""
    entry = terms.entry
    found: dict[str, Any] = {"model": entry.model}
    messages = fitted(request, terms)
    revealed = places(request, messages, terms.late)
    late = {name for names in revealed.values() for name in names}
    tools = [_declared(tool) for tool in request.tools if tool.name not in late]
    if tools:
        found["tools"] = tools
    if request.tools:
        found["tool_choice"] = request.tool_choice
        if not (request.parallel_calls and entry.parallel_calls):
            found["parallel_tool_calls"] = False
    found["input"] = _items(request, messages, revealed, terms)
    found |= {"max_output_tokens": most_tokens, "store": False, "include": [SEALED]}
    if terms.streams(request):
        found["stream"] = True
    given = {
        _NAMES.get(key, key): value for key, value in settings_of(request, terms).items() if key not in _UNKNOWN_HERE
    }
    if (effort := given.pop("thinking", given.pop("reasoning_effort", None))) is not None:
        given["reasoning"] = {"effort": {True: "medium", False: "none"}.get(effort, effort), "summary": "auto"}
    if text := _text(given):
        found["text"] = text
    found |= given
    return {key: value for key, value in found.items() if not terms.leaves_out(request, key)}


def _text(given: dict[str, Any]) -> dict[str, Any]:
    """Return how the words of an answer have to be, taken out of what chat completions call it."""
    found: dict[str, Any] = {}
    if (form := given.pop("response_format", None)) is not None:
        found["format"] = {"type": form["type"], **form.get("json_schema", {})}
    if (length := given.pop("verbosity", None)) is not None:
        found["verbosity"] = length
    return found


def _declared(tool: ToolSchema) -> dict[str, Any]:
    told = {"type": "function", "name": tool.name, "description": tool.description}
    return {**told, "parameters": tool.parameters, "strict": tool.strict}


def _items(
    request: Request, messages: tuple[Message, ...], revealed: Mapping[int, tuple[str, ...]], terms: Terms
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"role": "system", "content": request.system}] if request.system else []
    late = {name for names in revealed.values() for name in names}
    schemas = {tool.name: _declared(tool) for tool in request.tools}
    for at, message in enumerate(messages):
        match message.speaker:
            case "tool":
                found += [_output(part, terms) for part in message.parts if isinstance(part, ToolResult)]
            case "assistant":
                found += _assistant_items(message, request, terms, late)
            case _:
                found.append({"role": "user", "content": _user_content(message, request, terms)})
        if at in revealed:
            tools = [schemas[name] for name in revealed[at]]
            found.append({"type": "additional_tools", "role": "developer", "tools": tools})
    return found


def _output(part: ToolResult, terms: Terms) -> dict[str, Any]:
    answered = call_id(part.call_id, terms.row.call_ids)
    return {"type": "function_call_output", "call_id": answered, "output": text_of(part)}


def _user_content(message: Message, request: Request, terms: Terms) -> str | list[dict[str, Any]]:
    pictures, words = seen_of(message, request, terms.entry)
    if not pictures:
        return words
    shown: list[dict[str, Any]] = [
        {"type": "input_image", "image_url": f"data:{picture.media_type};base64,{data}", "detail": "auto"}
        for picture, data in pictures
    ]
    return [*shown, {"type": "input_text", "text": words}] if words else shown


def _assistant_items(message: Message, request: Request, terms: Terms, late: set[str]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for part in message.parts:
        match part:
            case Text(text=text) if text.strip():
                items.append({"role": "assistant", "content": text})
            case Thinking(opaque=opaque) if opaque and not terms.leaves_out(request, "thinking"):
                _restore(items, opaque, terms)
            case ToolCall():
                told = {"type": "function_call", "call_id": call_id(part.id, terms.row.call_ids), "name": part.name}
                arguments = arguments_of(part)
                plain = part.arguments if "INVALID_JSON" not in arguments else '{"INVALID_JSON":true}'
                # A tool that came late is in a namespace of its own name there.
                items.append({**told, "arguments": plain} | ({"namespace": part.name} if part.name in late else {}))
            case Opaque(provider=provider, data=data) if provider == terms.name and items:
                _amend(items[-1], data, late)
    return items if terms.leaves_out(request, "thinking") else _without_trailing_reasoning(items)


def _restore(items: list[dict[str, Any]], opaque: Mapping[str, Any], terms: Terms) -> None:
    """A reasoning item as it came, if it is this server's; also as versions up to 2026-11 kept it, part by part."""
    if opaque.get("provider_name") != terms.name:
        return
    if "item" in opaque:
        items.append(dict(opaque["item"]))
        return
    item_id, sealed, words = str(opaque.get("id") or ""), opaque.get("signature"), opaque.get("content")
    summary = [{"type": "summary_text", "text": words}] if words else []
    last = items[-1] if items else {}
    if last.get("type") == "reasoning" and last.get("id") == item_id:
        last["summary"] += summary
    elif sealed and item_id.startswith("rs_"):
        items.append({"type": "reasoning", "id": item_id, "summary": summary, "encrypted_content": sealed})


def _amend(item: dict[str, Any], data: Mapping[str, Any], late: set[str]) -> None:
    """Put back what the server said of the words or the call ahead of it: ids, the phase, the place of a late tool."""
    details = data.get("details")
    if not isinstance(details, Mapping):
        return
    told = {**details, **(details.get("provider_details") or {})}
    if item.get("type") == "function_call":
        # A call whose tool came late then and is declared plainly now has no place of its own any more.
        names = _OF_CALLS if item["name"] in late else ("id",)
        item |= {key: told[key] for key in names if told.get(key) and _fits(key, told[key], "fc_")}
    elif item.get("role") == "assistant" and _fits("id", told.get("id"), "msg_"):
        content = [{"type": "output_text", "text": item["content"], "annotations": []}]
        item |= {key: told[key] for key in _OF_WORDS if told.get(key)}
        item |= {"type": "message", "status": "completed", "content": content}


def _fits(key: str, value: object, start: str) -> bool:
    """Servers that imitate this API give ids of other forms, which none takes back."""
    return key != "id" or str(value).startswith(start)


def _without_trailing_reasoning(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without reasoning that nothing follows: it is refused."""
    while items and items[-1].get("type") == "reasoning":
        items.pop()
    return items


class ResponsesReader:
    """Reads one answer."""

    def __init__(self, request: Request, terms: Terms) -> None:
        self._request, self._terms = request, terms
        self._items: dict[int, Mapping[str, Any]] = {}
        self._texts: dict[int, str] = {}
        self.answer = Answer()

    def event(self, kind: str, data: Mapping[str, Any]) -> list[Delta]:
        """Take in one event."""
        kind = str(data.get("type") or kind)
        at = number(data.get("output_index"))
        delta = data.get("delta")
        match kind.removeprefix("response."):
            case "output_text.delta" | "refusal.delta" if isinstance(delta, str) and delta:
                self._texts[at] = self._texts.get(at, "") + delta
                return [Delta(kind="text", text=delta)]
            case "reasoning_summary_text.delta" | "reasoning_text.delta" if isinstance(delta, str) and delta:
                return [Delta(kind="thinking", text=delta)]
            case "reasoning_summary_part.added" if number(data.get("summary_index")):
                return [Delta(kind="thinking", text="\n\n")]
            case "output_item.done" if isinstance(item := data.get("item"), Mapping):
                self._items[at] = item
            case "completed" | "incomplete" | "failed" | "cancelled" if isinstance(data.get("response"), Mapping):
                self._take(data["response"])
        return []

    def whole(self, body: Mapping[str, Any]) -> list[Delta]:
        """Take in an answer that came in one piece."""
        self._take(body)
        deltas: list[Delta] = []
        for _, item in sorted(self._items.items()):
            kind, text = ("thinking", _summary(item)) if item.get("type") == "reasoning" else ("text", _words(item))
            if text:
                deltas.append(Delta(kind="thinking" if kind == "thinking" else "text", text=text))
        return deltas

    def end(self) -> tuple[list[Delta], Answer]:
        """The answer, item by item as it came."""
        made = [part for _, item in sorted(self._items.items()) for part in self._parts_of(item)]
        calls = iter(own_calls([part for part in made if isinstance(part, ToolCall)], self._request))
        self.answer.parts = [next(calls) if isinstance(part, ToolCall) else part for part in made]
        return [], self.answer

    def _take(self, response: Mapping[str, Any]) -> None:
        """The response at its end. Items that were streamed whole stand; some servers leave them out of it."""
        output = response.get("output")
        for at, item in enumerate(output if isinstance(output, list) else []):
            if isinstance(item, Mapping):
                self._items.setdefault(at, item)
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, Mapping) else None
        status = response.get("status")
        self.answer.finish = "stop" if status in ("completed", None) else _FINISHES.get(str(reason), "error")
        self.answer.is_over = True
        if isinstance(usage := response.get("usage"), Mapping):
            details = usage.get("input_tokens_details")
            details = details if isinstance(details, Mapping) else {}
            sent = number(usage.get("input_tokens"))
            self.answer.usage = Usage(
                input_tokens=sent,
                output_tokens=number(usage.get("output_tokens")),
                cached_tokens=min(sent, number(details.get("cached_tokens"))),
                written_tokens=min(sent, number(details.get("cache_write_tokens"))),
            )

    def _parts_of(self, item: Mapping[str, Any]) -> list[Part]:
        name = self._terms.name
        match item.get("type"):
            case "message":
                text = whole_text(_words(item))
                return [Text(text=text), *_details(item, _OF_WORDS, name)] if text else []
            case "reasoning":
                kept = {key: value for key, value in item.items() if value is not None and key != "status"}
                return [Thinking(text=whole_text(_summary(item)), opaque={"provider_name": name, "item": kept})]
            case "function_call":
                call = ToolCall(
                    id=str(item.get("call_id") or ""),
                    name=str(item.get("name") or ""),
                    arguments=str(item.get("arguments") or ""),
                )
                return [call, *_details(item, _OF_CALLS, name)]
        return []


def _details(item: Mapping[str, Any], names: tuple[str, ...], provider: str) -> list[Part]:
    found = {key: item[key] for key in names if item.get(key)}
    return [Opaque(provider=provider, data={"details": found})] if found else []


def _words(item: Mapping[str, Any]) -> str:
    content = item.get("content")
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    return "".join(str(part.get("text") or part.get("refusal") or "") for part in parts)


def _summary(item: Mapping[str, Any]) -> str:
    lists = [value for key in ("summary", "content") if isinstance(value := item.get(key), list)]
    parts = [part for value in lists for part in value if isinstance(part, Mapping)]
    return "\n\n".join(str(part["text"]) for part in parts if part.get("text"))
