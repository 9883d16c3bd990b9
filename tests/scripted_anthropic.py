"""The Anthropic side of the scripted server: strict checks of a messages body, and its answers on the wire."""

import json
import re
from typing import Any

from tests.scripted_rules import Asked, Spoken, in_cuts, in_pieces

SIGNATURE = "c2NyaXB0ZWQtc2lnbmF0dXJl"
_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")
_ID = re.compile(r"^[a-zA-Z0-9_-]+$")
_KEYS = {
    "model", "messages", "system", "tools", "tool_choice", "stream", "max_tokens", "temperature", "top_p", "top_k",
    "thinking", "metadata", "stop_sequences", "cache_control", "service_tier",
}  # fmt: skip
_BLOCKS = {"user": {"text", "image", "tool_result"}, "assistant": {"text", "tool_use", "thinking", "redacted_thinking"}}
_CHANGES_BETA = "mid-conversation-tool-changes-2026-07-01"
_TAKES_CHANGES = (
    "claude-fable-5",
    "claude-mythos-5",
    "claude-opus-4-8",
    "claude-opus-5",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
)


def problems(body: dict[str, Any], headers: dict[str, str]) -> list[str]:
    """Everything that a strict server would refuse in this body."""
    found = [f"unknown key {key!r}" for key in body if key not in _KEYS]
    if not isinstance(body.get("model"), str) or not isinstance(body.get("max_tokens"), int):
        found.append("model and max_tokens are required")
    tools = body.get("tools") or []
    for tool in tools:
        if not _NAME.match(str(tool.get("name", ""))) or tool.get("input_schema", {}).get("type") != "object":
            found.append(f"bad tool {tool.get('name')!r}")
        if tool.get("defer_loading") and tool.get("cache_control"):
            found.append(f"{tool['name']!r} can't have both defer_loading and cache_control")
    if tools and all(tool.get("defer_loading") for tool in tools):
        found.append("at least one tool must not be deferred")
    if body.get("tool_choice") and not tools:
        found.append("tool_choice is only allowed when tools are given")
    marks = json.dumps(body).count('"cache_control"')
    if marks > 4:
        found.append(f"{marks} cache marks, at most 4 are allowed")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return [*found, "messages must be a list with something in it"]
    found += _change_problems(messages, body["model"], headers.get("anthropic-beta", ""))
    found += _reference_problems(messages, {tool["name"]: bool(tool.get("defer_loading")) for tool in tools})
    spoken = [message for message in messages if message.get("role") != "system"]
    return found + _order_problems(spoken, has_tools=bool(tools))


def _change_problems(messages: list[dict[str, Any]], model: str, betas: str) -> list[str]:
    """A system message among the others: behind a user's, ahead of an answer, with changes of the tools alone."""
    found: list[str] = []
    for index, message in enumerate(messages):
        if message.get("role") != "system":
            continue
        kinds = {block.get("type") for block in _blocks(message)}
        if kinds != {"tool_addition"}:
            found.append(f"messages[{index}]: {kinds} can't stand in a system message")
        if _CHANGES_BETA not in betas or not model.startswith(_TAKES_CHANGES):
            found.append(f"messages[{index}]: tool_addition is not supported on this model without its beta")
        following = messages[index + 1]["role"] if index + 1 < len(messages) else "assistant"
        if not index or messages[index - 1]["role"] != "user" or following != "assistant":
            found.append(f"messages[{index}]: a system message stands between a user's and an assistant's")
    return found


def _reference_problems(messages: list[dict[str, Any]], deferred: dict[str, bool]) -> list[str]:
    """References name deferred tools of this request, each once."""
    found: list[str] = []
    known: set[str] = set()
    for index, message in enumerate(messages):
        named = _references(message)
        found += [f"messages[{index}]: no deferred tool {name!r}" for name in named if not deferred.get(name)]
        found += [f"messages[{index}]: {name!r} is referred to twice" for name in named if name in known]
        known.update(named)
    return found


def _references(message: dict[str, Any]) -> list[str]:
    """The tools that this message makes known."""
    found = [block["tool"]["name"] for block in _blocks(message) if block.get("type") == "tool_addition"]
    for block in _blocks(message):
        content = block.get("content") if block.get("type") == "tool_result" else None
        parts = content if isinstance(content, list) else []
        found += [part["tool_name"] for part in parts if part.get("type") == "tool_reference"]
    return found


def _offered(body: dict[str, Any]) -> tuple[str, ...]:
    """What the model can call: declared plainly, or referred to."""
    known = {name for message in body["messages"] for name in _references(message)}
    return tuple(
        tool["name"] for tool in body.get("tools") or [] if not tool.get("defer_loading") or tool["name"] in known
    )


def _order_problems(messages: list[dict[str, Any]], *, has_tools: bool) -> list[str]:
    found: list[str] = []
    open_ids: list[str] = []
    used: set[str] = set()
    for index, message in enumerate(messages):
        role = message.get("role", "")
        if role not in _BLOCKS:
            found.append(f"messages[{index}]: unknown role {role!r}")
            continue
        if role != ("user", "assistant")[index % 2]:
            found.append(f"messages[{index}]: roles must take turns, beginning with the user's")
        blocks = _blocks(message)
        if not blocks:
            found.append(f"messages[{index}]: content must not be empty")
        found += [
            f"messages[{index}]: {each.get('type')!r} can't stand here"
            for each in blocks
            if each.get("type") not in _BLOCKS[role]
        ]
        found += [
            f"messages[{index}]: empty text"
            for each in blocks
            if each.get("type") == "text" and not each.get("text", "").strip()
        ]
        answered = [each.get("tool_use_id", "") for each in blocks if each.get("type") == "tool_result"]
        if sorted(answered) != sorted(open_ids):
            found.append(f"messages[{index}]: tool_use ids {open_ids} are answered by {answered}")
        if answered and [each.get("type") for each in blocks[: len(answered)]] != ["tool_result"] * len(answered):
            found.append(f"messages[{index}]: tool results must come first")
        open_ids = []
        for each in blocks:
            found += _block_problems(each, index, used, has_tools=has_tools)
            if each.get("type") == "tool_use":
                open_ids.append(each.get("id", ""))
    return [*found, f"tool_use ids {open_ids} have no answer"] if open_ids else found


def _block_problems(block: dict[str, Any], index: int, used: set[str], *, has_tools: bool) -> list[str]:
    if block.get("type") == "thinking" and block.get("signature") != SIGNATURE:
        return [f"messages[{index}]: thinking with a wrong signature {block.get('signature')!r}"]
    if block.get("type") != "tool_use":
        return []
    found: list[str] = []
    if not has_tools:
        found.append(f"messages[{index}]: tool_use in the history, but no tools are declared")
    if not _ID.match(str(block.get("id", ""))) or block["id"] in used:
        found.append(f"messages[{index}]: call id {block.get('id')!r} is bad or used twice")
    used.add(block.get("id", ""))
    if not isinstance(block.get("input"), dict):
        found.append(f"messages[{index}]: input must be an object")
    return found


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content or []


def _words(blocks: list[dict[str, Any]]) -> str:
    return "\n\n".join(each["text"] for each in blocks if each.get("type") == "text")


def _result_text(block: dict[str, Any]) -> str:
    content = block.get("content")
    return _words(content) if isinstance(content, list) else content or ""


def read(body: dict[str, Any]) -> Asked:
    """The request in the server's own terms."""
    messages = body["messages"]
    said = [i for i, each in enumerate(messages) if _is_person(each)]
    last_user = max(said, default=-1)
    after = messages[last_user + 1 :]
    system = body.get("system") or ""
    results = [b for each in messages[last_user:] for b in _blocks(each) if b.get("type") == "tool_result"]
    return Asked(
        system=system if isinstance(system, str) else _words(system),
        user=_words(_blocks(messages[last_user])) if last_user >= 0 else "",
        tools=_offered(body),
        is_calling_allowed=(body.get("tool_choice") or {}).get("type") != "none",
        results=tuple(_result_text(block) for block in results),
        answers_since_user=sum(each["role"] == "assistant" and not _is_discovery(each) for each in after),
        told=json.dumps(body["messages"]),
    )


def _is_person(message: dict[str, Any]) -> bool:
    """Whether a person speaks; what stands in brackets behind a result is Cortex's own note."""
    words = _words(_blocks(message))
    has_results = any(block.get("type") == "tool_result" for block in _blocks(message))
    return message["role"] == "user" and bool(words) and not (has_results and words.startswith("("))


def _is_discovery(message: dict[str, Any]) -> bool:
    return any(block.get("name") == "tools_discover" for block in _blocks(message))


def _content(said: Spoken) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if said.thinking:
        blocks.append({"type": "thinking", "thinking": said.thinking, "signature": SIGNATURE})
    if said.text:
        blocks.append({"type": "text", "text": said.text})
    blocks += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}
        for call in said.calls
    ]
    return blocks


def whole(body: dict[str, Any], said: Spoken, usage: dict[str, Any]) -> dict[str, Any]:
    """The answer as one JSON object."""
    stop = "tool_use" if said.calls else "end_turn"
    return {**_head(body), "content": _content(said), "stop_reason": stop, "stop_sequence": None, "usage": usage}


def _head(body: dict[str, Any]) -> dict[str, Any]:
    return {"id": "msg_scripted", "type": "message", "role": "assistant", "model": body["model"]}


def chunks(body: dict[str, Any], said: Spoken, usage: dict[str, Any], finish: str | None) -> list[bytes]:
    """The answer as server-sent events; without `finish` the stream ends as if it had been cut."""
    events: list[dict[str, Any]] = []
    start = {
        **_head(body),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": 1},
    }
    events.append({"type": "message_start", "message": start})
    index = 0
    if said.thinking:
        events.append(_start(index, {"type": "thinking", "thinking": "", "signature": ""}))
        events += [_delta(index, "thinking_delta", "thinking", piece) for piece in in_pieces(said.thinking)]
        events += [_delta(index, "signature_delta", "signature", SIGNATURE), _stop(index)]
        index += 1
    if said.text:
        events.append(_start(index, {"type": "text", "text": ""}))
        events += [_delta(index, "text_delta", "text", piece) for piece in in_pieces(said.text)]
        events.append(_stop(index))
        index += 1
    for call in said.calls:
        events.append(_start(index, {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}))
        events += [_delta(index, "input_json_delta", "partial_json", piece) for piece in in_cuts(call.arguments)]
        events.append(_stop(index))
        index += 1
    if finish is not None:
        reason = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}[finish]
        delta = {"stop_reason": reason, "stop_sequence": None}
        events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": usage["output_tokens"]}})
        events.append({"type": "message_stop"})
    return [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in events]


def _start(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _delta(index: int, kind: str, key: str, text: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, key: text}}


def _stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def usage(total: int, cached: int, output: int, written: int) -> dict[str, Any]:
    """Token usage as this API words it: `input_tokens` without the cached and the written ones."""
    return {
        "input_tokens": total - cached - written,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
        "output_tokens": output,
    }


def prefix(body: dict[str, Any]) -> list[Any]:
    """What the provider's cache sees, block by block in its order, without the cache marks; nothing without a mark.

    Deferred tools are no part of it: what refers to them is.
    """
    if '"cache_control"' not in json.dumps(body):
        return []
    blocks = [[each["role"], block] for each in body["messages"] for block in _blocks(each)]
    plain = [tool for tool in body.get("tools") or [] if not tool.get("defer_loading")]
    unmarked = _unmarked([plain, body.get("system") or "", *blocks])
    return list(unmarked)


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unmarked(each) for key, each in value.items() if key != "cache_control"}
    return [_unmarked(each) for each in value] if isinstance(value, list) else value


def error(status: int, message: str) -> dict[str, Any]:
    """An error as this API words it."""
    kinds = {
        401: "authentication_error",
        429: "rate_limit_error",
        400: "invalid_request_error",
        529: "overloaded_error",
    }
    return {"type": "error", "error": {"type": kinds.get(status, "api_error"), "message": message}}
