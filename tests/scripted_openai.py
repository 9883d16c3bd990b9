"""The OpenAI side of the scripted server: strict checks of a chat-completions body, and its answers on the wire."""

import json
import re
from typing import Any

from tests.scripted_rules import Asked, Spoken, in_cuts, in_pieces

_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
_KEYS = {
    "model", "messages", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options", "max_tokens",
    "max_completion_tokens", "temperature", "top_p", "seed", "user", "stop", "prompt_cache_key", "reasoning_effort",
    "frequency_penalty", "presence_penalty", "response_format", "n", "metadata", "store",
}  # fmt: skip


def problems(body: dict[str, Any], headers: dict[str, str]) -> list[str]:
    """Everything that a strict server would refuse in this body."""
    del headers
    found = [f"unknown key {key!r}" for key in body if key not in _KEYS]
    if not isinstance(body.get("model"), str) or not body["model"]:
        found.append("model must be a string")
    tools = body.get("tools")
    if tools is not None:
        found += _tool_problems(tools)
    for key in ("tool_choice", "parallel_tool_calls"):
        if key in body and not tools:
            found.append(f"{key} is only allowed when tools are given")
    if body.get("stream_options") and not body.get("stream"):
        found.append("stream_options is only allowed when stream is on")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return [*found, "messages must be a list with something in it"]
    return found + _order_problems(messages, has_tools=bool(tools))


def _tool_problems(tools: Any) -> list[str]:
    if not isinstance(tools, list) or not tools:
        return ["tools must be a list with something in it"]
    found: list[str] = []
    names = [tool.get("function", {}).get("name") for tool in tools]
    if len(names) != len(set(names)):
        found.append("two tools have the same name")
    for tool, name in zip(tools, names, strict=True):
        if tool.get("type") != "function" or not isinstance(name, str) or not _NAME.match(name):
            found.append(f"bad tool {name!r}")
        if tool.get("function", {}).get("parameters", {}).get("type") != "object":
            found.append(f"parameters of {name!r} must be of type object")
    return found


def _order_problems(messages: list[dict[str, Any]], *, has_tools: bool) -> list[str]:
    found: list[str] = []
    open_ids: list[str] = []
    used: set[str] = set()
    before = ""
    for index, message in enumerate(messages):
        role = message.get("role", "")
        found += [f"messages[{index}]: {problem}" for problem in _role_problems(role, before, index)]
        if open_ids and role != "tool":
            found.append(f"messages[{index}]: tool_calls {open_ids} have no answer")
            open_ids = []
        if role == "tool":
            found += _answer_problems(message, open_ids, index)
        elif role == "assistant":
            found += _assistant_problems(message, used, index, has_tools=has_tools)
            open_ids = [call.get("id", "") for call in message.get("tool_calls") or []]
        elif not _is_content(message.get("content"), may_hold_pictures=role == "user"):
            found.append(f"messages[{index}]: content must be text")
        before = role
    if open_ids:
        found.append(f"tool_calls {open_ids} have no answer")
    if before == "assistant":
        found.append("the last message must not be the assistant's")
    return found


def _role_problems(role: str, before: str, index: int) -> list[str]:
    if role not in ("system", "developer", "user", "assistant", "tool"):
        return [f"unknown role {role!r}"]
    if role in ("system", "developer") and index:
        return ["a system message stands only at the beginning"]
    if before in ("", "system", "developer") and role not in ("system", "developer", "user"):
        return ["the first message after the system's must be the user's"]
    return ["two assistant messages in a row"] if role == before == "assistant" else []


def _answer_problems(message: dict[str, Any], open_ids: list[str], index: int) -> list[str]:
    call_id = message.get("tool_call_id")
    if call_id not in open_ids:
        return [f"messages[{index}]: tool_call_id {call_id!r} answers no call"]
    open_ids.remove(call_id)
    return (
        [] if _is_content(message.get("content"), may_be_empty=True) else [f"messages[{index}]: content must be text"]
    )


def _assistant_problems(message: dict[str, Any], used: set[str], index: int, *, has_tools: bool) -> list[str]:
    found: list[str] = []
    calls = message.get("tool_calls")
    if calls is not None and not calls:
        found.append(f"messages[{index}]: tool_calls must not be empty")
    if not calls and not _is_content(message.get("content")):
        found.append(f"messages[{index}]: an assistant message needs content or tool_calls")
    if calls and not has_tools:
        found.append(f"messages[{index}]: tool_calls in the history, but no tools are declared")
    for call in calls or []:
        function = call.get("function", {})
        if not call.get("id") or call["id"] in used:
            found.append(f"messages[{index}]: call id {call.get('id')!r} is missing or used twice")
        used.add(call.get("id", ""))
        if call.get("type") != "function" or not _NAME.match(str(function.get("name", ""))):
            found.append(f"messages[{index}]: bad call {function.get('name')!r}")
        if not _is_object_text(function.get("arguments")):
            found.append(f"messages[{index}]: arguments must be a string holding a JSON object")
    return found


def _is_content(content: Any, *, may_be_empty: bool = False, may_hold_pictures: bool = False) -> bool:
    if isinstance(content, str):
        return may_be_empty or bool(content)
    return isinstance(content, list) and all(
        isinstance(part, dict)
        and ((part.get("type") == "text" and part.get("text")) or (may_hold_pictures and _is_picture(part)))
        for part in content
    )


def _is_picture(part: dict[str, Any]) -> bool:
    url = part.get("image_url", {}).get("url", "")
    return (
        part.get("type") == "image_url" and re.match(r"data:image/(png|jpeg|webp);base64,[\w+/]+=*$", url) is not None
    )


def _is_object_text(text: Any) -> bool:
    try:
        return isinstance(text, str) and isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n\n".join(part["text"] for part in content if "text" in part)
    return content or ""


def read(body: dict[str, Any]) -> Asked:
    """The request in the server's own terms."""
    messages = body["messages"]
    last_user = max((i for i, each in enumerate(messages) if _is_person(each, messages[i - 1])), default=-1)
    after = messages[last_user + 1 :]
    return Asked(
        system="\n\n".join(_text(each["content"]) for each in messages if each["role"] in ("system", "developer")),
        user=_text(messages[last_user]["content"]) if last_user >= 0 else "",
        tools=tuple(tool["function"]["name"] for tool in body.get("tools") or []),
        is_calling_allowed=body.get("tool_choice") != "none",
        results=tuple(_text(each["content"]) for each in after if each["role"] == "tool"),
        answers_since_user=sum(each["role"] == "assistant" and not _is_discovery(each) for each in after),
        told=json.dumps(messages),
    )


def _is_person(message: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether a person speaks; what stands in brackets behind a result is Cortex's own note."""
    is_note = before["role"] == "tool" and _text(message.get("content")).startswith("(")
    return message["role"] == "user" and not is_note


def _is_discovery(message: dict[str, Any]) -> bool:
    return any(call["function"]["name"] == "tools_discover" for call in message.get("tool_calls") or [])


def whole(body: dict[str, Any], said: Spoken, usage: dict[str, Any]) -> dict[str, Any]:
    """The answer as one JSON object."""
    message: dict[str, Any] = {"role": "assistant", "content": said.text or None}
    if said.thinking:
        message["reasoning_content"] = said.thinking
    if said.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in said.calls
        ]
    finish = "tool_calls" if said.calls else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
    return {**_head(body, "chat.completion"), "choices": [choice], "usage": usage}


def _head(body: dict[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-scripted", "object": kind, "created": 1_700_000_000, "model": body["model"]}


def chunks(body: dict[str, Any], said: Spoken, usage: dict[str, Any], finish: str | None) -> list[bytes]:
    """The answer as server-sent events; without `finish` the stream ends as if it had been cut."""
    head = _head(body, "chat.completion.chunk")

    def event(delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return b"data: " + json.dumps({**head, "choices": [choice]}).encode() + b"\n\n"

    events = [event({"role": "assistant", "content": ""})]
    events += [event({"reasoning_content": piece}) for piece in in_pieces(said.thinking)]
    events += [event({"content": piece}) for piece in in_pieces(said.text)]
    for index, call in enumerate(said.calls):
        first = {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
        events.append(event({"tool_calls": [first]}))
        for cut in in_cuts(call.arguments):
            events.append(event({"tool_calls": [{"index": index, "function": {"arguments": cut}}]}))
    if finish is not None:
        events.append(event({}, finish))
        if (body.get("stream_options") or {}).get("include_usage"):
            events.append(b"data: " + json.dumps({**head, "choices": [], "usage": usage}).encode() + b"\n\n")
        events.append(b"data: [DONE]\n\n")
    return events


def usage(total: int, cached: int, output: int, written: int) -> dict[str, Any]:
    """Token usage as this API words it; it does not tell what was written to the cache."""
    del written
    return {
        "prompt_tokens": total,
        "completion_tokens": output,
        "total_tokens": total + output,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def prefix(body: dict[str, Any]) -> list[Any]:
    """What the provider's cache sees, in its order."""
    return [body.get("tools") or [], *body["messages"]]


def error(status: int, message: str) -> dict[str, Any]:
    """An error as this API words it."""
    kind = {401: "authentication_error", 429: "rate_limit_error", 400: "invalid_request_error"}.get(
        status, "server_error"
    )
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}
