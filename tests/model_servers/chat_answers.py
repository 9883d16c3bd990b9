"""Answers of chat completions as each server writes them: whole, or as server-sent events in its manner."""

import json
from typing import Any

from tests.model_servers.spoken import Manner, Said, Use
from tests.scripted_rules import in_cuts, in_pieces

SIGNATURE = "c2lnbmVkLWJ5LXRoZS1kb3VibGU="


def calls_of(said: Said, manner: Manner, number: int) -> list[dict[str, Any]]:
    """The calls as one whole message bears them; `number` of the answer makes their ids."""
    found = []
    for at, use in enumerate(said.calls):
        call_id = "" if manner.ids_in == "empty" else use.id or manner.ids.format(n=number * 10 + at, tool=use.tool)
        call = {"id": call_id, "type": "function", "function": {"name": use.tool, "arguments": use.sent}}
        if manner.is_signed and at == 0:
            call["extra_content"] = {"google": {"thought_signature": f"{SIGNATURE}{number}"}}
        found.append(call)
    return found


def details_of(said: Said, model: str, number: int, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """OpenRouter's reasoning_details: text that is signed (Anthropic), text and a sealed part (Gemini), or sealed."""
    sealed = f"{SIGNATURE}{number}"
    if not said.thinking:
        return []
    if "gemini" in model:
        text = {"type": "reasoning.text", "text": said.thinking, "format": "google-gemini-v1", "index": 0}
        part = {"type": "reasoning.encrypted", "data": sealed, "format": "google-gemini-v1", "index": 1}
        return [text, {**part, "id": calls[0]["id"]}] if calls else [text]
    if "openai" in model:
        summary = {"type": "reasoning.summary", "summary": said.thinking, "format": "openai-responses-v1", "index": 0}
        part = {"type": "reasoning.encrypted", "data": sealed, "id": f"rs_{number}", "format": "openai-responses-v1"}
        return [summary, {**part, "index": 0}]
    text = {"type": "reasoning.text", "text": said.thinking, "signature": sealed, "format": "anthropic-claude-v1"}
    return [{**text, "index": 0}]


def _blocks_of(said: Said, number: int) -> list[dict[str, Any]]:
    """LiteLLM's thinking_blocks: Anthropic's own (docs.litellm.ai/docs/reasoning_content)."""
    return [{"type": "thinking", "thinking": said.thinking, "signature": f"{SIGNATURE}{number}"}]


def message_of(said: Said, manner: Manner, model: str, number: int) -> dict[str, Any]:
    """The whole message of an answer."""
    calls = calls_of(said, manner, number)
    content: Any = said.text if said.text or not calls else None
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if said.thinking and manner.thinks == "chunks":
        thought = {"type": "thinking", "thinking": [{"type": "text", "text": said.thinking}]}
        message["content"] = [thought, *([{"type": "text", "text": said.text}] if said.text else [])]
    elif said.thinking and manner.thinks == "details":
        message["reasoning"] = said.thinking
        message["reasoning_details"] = details_of(said, model, number, calls)
    elif said.thinking and manner.thinks == "blocks":
        message |= {"reasoning_content": said.thinking, "thinking_blocks": _blocks_of(said, number)}
    elif said.thinking and manner.thinks:
        message[manner.thinks] = said.thinking
    if calls:
        message["tool_calls"] = calls
    return message


def whole(said: Said, manner: Manner, body: dict[str, Any], usage: dict[str, Any], number: int) -> dict[str, Any]:
    """The answer as one JSON object."""
    message = message_of(said, manner, body["model"], number)
    choice = {"index": 0, "message": message, "finish_reason": _finish(said, manner), "logprobs": None}
    told = {} if manner.usage == "none" else {"usage": usage}
    return {**_head(body, "chat.completion"), "choices": [choice], **told}


def _head(body: dict[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1_700_000_000, "model": body["model"]}


def _finish(said: Said, manner: Manner) -> str | None:
    if manner.finish != "auto":
        return manner.finish
    return "tool_calls" if said.calls else "stop"


def usage_of(manner: Manner, total: int, cached: int, output: int) -> dict[str, Any]:
    """Token usage; the cached ones under the server's own keys."""
    usage: dict[str, Any] = {"prompt_tokens": total, "completion_tokens": output, "total_tokens": total + output}
    for path in manner.cached:
        outer, _, inner = path.rpartition(".")
        usage |= {outer: {inner: cached}} if outer else {inner: cached}
    return usage


def chunks(said: Said, manner: Manner, body: dict[str, Any], usage: dict[str, Any], number: int) -> list[bytes]:
    """The answer as server-sent events, with what `said.breaks` left out: the server adds that."""
    head = _head(body, "chat.completion.chunk")
    events: list[dict[str, Any]] = []

    def add(delta: dict[str, Any], finish: str | None = None, **more: Any) -> None:
        more |= {"usage": usage} if manner.usage == "each" else {}
        events.append({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more})

    if manner.has_empty_first:
        filters = [{"prompt_index": 0, "content_filter_results": {}}]
        events.append({**head, "choices": [], "prompt_filter_results": filters})
    if manner.in_one:
        add(message_of(said, manner, body["model"], number), _finish(said, manner))
    else:
        add({"role": "assistant", "content": ""})
        for delta in _deltas(said, manner, body["model"], number):
            add(delta)
    if manner.finish is not None and not manner.in_one:
        ends = {"usage": usage} if manner.usage == "finish" else {}
        ends = {"x_groq": {"id": "req_1", "usage": usage}} if manner.usage == "x_groq" else ends
        add({}, _finish(said, manner), **ends)
    if manner.has_null_end:
        events.append({**head, "choices": [{"index": 0, "delta": None, "finish_reason": None}]})
    if manner.usage in ("asked", "x_groq") and (body.get("stream_options") or {}).get("include_usage"):
        events.append({**head, "choices": [], "usage": usage})
    pieces = [_event(json.dumps(event, ensure_ascii=False).encode(), manner) for event in events]
    return [*pieces, _event(b"[DONE]", manner)] if manner.is_done_said else pieces


def _event(data: bytes, manner: Manner) -> bytes:
    end = manner.newline
    return manner.noise + b"data:" + manner.space + data + end + end


def _deltas(said: Said, manner: Manner, model: str, number: int) -> list[dict[str, Any]]:
    calls = calls_of(said, manner, number)
    found = _thoughts(said, manner, model, number, calls)
    found += [{"content": piece} for piece in _text_pieces(said.text, manner)]
    if manner.is_together and calls:
        return [*found, {"content": None, "tool_calls": calls}]
    for at, (call, use) in enumerate(zip(calls, said.calls, strict=True)):
        found += [{"tool_calls": [piece]} for piece in _call_pieces(call, use, at, manner)]
    return found


def _text_pieces(text: str, manner: Manner) -> list[str]:
    return [text[at : at + manner.cut] for at in range(0, len(text), manner.cut)] if manner.cut else in_pieces(text)


def _thoughts(said: Said, manner: Manner, model: str, number: int, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    pieces = in_pieces(said.thinking)
    if manner.thinks == "chunks":
        return [{"content": [{"type": "thinking", "thinking": [{"type": "text", "text": piece}]}]} for piece in pieces]
    if manner.thinks == "blocks":
        parts = [{"type": "thinking", "thinking": piece, "signature": None} for piece in pieces]
        told = [{"reasoning_content": part["thinking"], "thinking_blocks": [part]} for part in parts]
        end = {"type": "thinking", "thinking": "", "signature": f"{SIGNATURE}{number}"}
        return [*told, {"thinking_blocks": [end]}] if told else []
    if manner.thinks != "details":
        return [{manner.thinks: piece} for piece in pieces] if manner.thinks else []
    found: list[dict[str, Any]] = []
    for detail in details_of(said, model, number, calls):
        key = "summary" if detail["type"] == "reasoning.summary" else "text"
        if key not in detail:
            found.append({"reasoning_details": [detail]})
            continue
        plain = {name: value for name, value in detail.items() if name not in (key, "signature")}
        found += [{"reasoning": piece, "reasoning_details": [{**plain, key: piece}]} for piece in pieces]
        if "signature" in detail:
            found.append({"reasoning_details": [{**plain, "signature": detail["signature"]}]})
    return found


def _call_pieces(call: dict[str, Any], use: Use, at: int, manner: Manner) -> list[dict[str, Any]]:
    index = {"right": {"index": at}, "zero": {"index": 0}, "none": {}}[manner.numbering]
    first = {**index, **call}
    if manner.is_whole or not isinstance(use.sent, str):
        return [first]
    name = {"name": use.tool, "arguments": ""}
    later = {"id": call["id"]} if manner.ids_in == "all" else {}
    cuts = [{**index, **later, "function": {"arguments": cut}} for cut in in_cuts(use.sent)]
    return [{**first, "function": name}, *cuts]
