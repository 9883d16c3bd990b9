"""The Responses side of the scripted server (OpenAI's newer API): strict checks of a body, and its answers."""

import json
import re
from typing import Any

from tests.scripted_openai import error
from tests.scripted_rules import Asked, Spoken, in_cuts, in_pieces

__all__ = ["chunks", "error", "prefix", "problems", "read", "usage", "whole"]

SEALED = "c2VhbGVkLXJlYXNvbmluZw=="
_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
_KEYS = {
    "model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "stream", "max_output_tokens",
    "temperature", "top_p", "store", "include", "reasoning", "text", "truncation", "metadata", "prompt_cache_key",
}  # fmt: skip
_IDS = {"message": "msg_", "function_call": "fc_", "reasoning": "rs_"}


def problems(body: dict[str, Any], headers: dict[str, str]) -> list[str]:
    """Everything that a strict server would refuse in this body."""
    del headers
    found = [f"unknown key {key!r}" for key in body if key not in _KEYS]
    tools = body.get("tools")
    if tools is not None:
        found += _tool_problems(tools)
    found += [f"{key} is only allowed when tools are given" for key in ("tool_choice",) if key in body and not tools]
    items = body.get("input")
    if not isinstance(items, list) or not items:
        return [*found, "input must be a list with something in it"]
    plain = {tool.get("name") for tool in tools or []}
    return found + _item_problems(items, plain, is_stored=body.get("store", True) is not False)


def _tool_problems(tools: Any) -> list[str]:
    if not isinstance(tools, list) or not tools:
        return ["tools must be a list with something in it"]
    found = [f"two tools are named {name!r}" for name in {t.get("name") for t in tools} if _count(tools, name) > 1]
    for tool in tools:
        if tool.get("type") != "function" or not _NAME.match(str(tool.get("name", ""))):
            found.append(f"bad tool {tool.get('name')!r}")
        if tool.get("parameters", {}).get("type") != "object":
            found.append(f"parameters of {tool.get('name')!r} must be of type object")
        if tool.get("defer_loading"):
            found.append("Deferred tools require tools.tool_search.")
    return found


def _count(tools: list[dict[str, Any]], name: Any) -> int:
    return sum(tool.get("name") == name for tool in tools)


def _item_problems(items: list[dict[str, Any]], plain: set[Any], *, is_stored: bool) -> list[str]:
    found: list[str] = []
    later = {tool.get("name", "") for each in items for tool in each.get("tools") or []}
    late: set[str] = set()
    open_ids: list[str] = []
    used: set[str] = set()
    for index, item in enumerate(items):
        kind = item.get("type", "message")
        problem = _id_problem(item, kind, is_stored=is_stored)
        if open_ids and kind in ("message", "additional_tools"):
            problem = f"calls {open_ids} have no output"
            open_ids = []
        match kind:
            case "message":
                is_known = item.get("role") in ("system", "developer", "user", "assistant")
                problem = problem or ("" if is_known and item.get("content") else "a message needs a role and content")
            case "additional_tools":
                names = [tool.get("name", "") for tool in item.get("tools", [])]
                problem = problem or _addition_problem(item, names, plain, late)
                late.update(names)
            case "function_call":
                problem = problem or _call_problem(item, later, used)
                open_ids.append(item.get("call_id", ""))
                used.add(item.get("call_id", ""))
            case "function_call_output":
                problem = problem or ("" if item.get("call_id") in open_ids else "an output that answers no call")
                open_ids = [each for each in open_ids if each != item.get("call_id")]
            case "reasoning":
                pass
            case _:
                problem = f"{kind!r} can't stand here"
        if problem:
            found.append(f"input[{index}]: {problem}")
    return [*found, f"calls {open_ids} have no output"] if open_ids else found


def _id_problem(item: dict[str, Any], kind: str, *, is_stored: bool) -> str:
    """An id is of its kind; what was not stored there is sent whole."""
    if item.get("id") and not str(item["id"]).startswith(_IDS.get(kind, "")):
        return f"id {item['id']!r} is none of a {kind}"
    if kind == "reasoning" and not is_stored and item.get("encrypted_content") != SEALED:
        return "reasoning that was not stored goes back sealed"
    return ""


def _addition_problem(item: dict[str, Any], names: list[str], plain: set[Any], late: set[str]) -> str:
    if item.get("role") != "developer" or not names:
        return "additional tools are the developer's, and some"
    known = [name for name in names if name in plain or name in late]
    return f"{known} are declared already" if known else "; ".join(_tool_problems(item["tools"]))


def _call_problem(item: dict[str, Any], late: set[str], used: set[str]) -> str:
    name = str(item.get("name", ""))
    if not item.get("call_id") or item["call_id"] in used or not _NAME.match(name):
        return f"bad call {name!r}"
    if not isinstance(item.get("arguments"), str) or not isinstance(json.loads(item["arguments"]), dict):
        return "arguments must be a string holding a JSON object"
    if name in late and item.get("namespace") != name:
        return f"Missing namespace for function_call {name!r}. It does not exist in the default namespace."
    return "" if name in late or "namespace" not in item else f"no namespace {item['namespace']!r} holds {name!r}"


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "\n\n".join(part.get("text", "") for part in content or [])


def _offered(body: dict[str, Any]) -> tuple[str, ...]:
    late = [tool for item in body["input"] if item.get("type") == "additional_tools" for tool in item["tools"]]
    return tuple(tool["name"] for tool in [*(body.get("tools") or []), *late])


def read(body: dict[str, Any]) -> Asked:
    """The request in the server's own terms."""
    items = body["input"]
    last_user = max((at for at, each in enumerate(items) if _is_person(each, items[at - 1])), default=-1)
    after = items[last_user + 1 :]
    return Asked(
        system="\n\n".join(_text(each["content"]) for each in items if each.get("role") == "system"),
        user=_text(items[last_user]["content"]) if last_user >= 0 else "",
        tools=_offered(body),
        is_calling_allowed=body.get("tool_choice") != "none",
        results=tuple(_text(each["output"]) for each in after if each.get("type") == "function_call_output"),
        answers_since_user=_answers(after),
        told=json.dumps(items),
    )


def _is_person(item: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether a person speaks; what stands in brackets behind a result is Cortex's own note."""
    is_behind = before.get("type") in ("function_call_output", "additional_tools")
    return item.get("role") == "user" and not (is_behind and _text(item["content"]).startswith("("))


def _answers(items: list[dict[str, Any]]) -> int:
    """Answers of the model: its items up to the next of somebody else's, a search for tools is none."""
    found, open_answer = 0, False
    for item in items:
        is_own = item.get("type") in ("function_call", "reasoning") or item.get("role") == "assistant"
        if is_own and not open_answer and item.get("name") != "tools_discover":
            found += 1
        open_answer = is_own
    return found


def _output(body: dict[str, Any], said: Spoken, status: str) -> list[dict[str, Any]]:
    late = {tool["name"] for item in body["input"] if item.get("type") == "additional_tools" for tool in item["tools"]}
    items: list[dict[str, Any]] = []
    if said.thinking:
        summary = [{"type": "summary_text", "text": said.thinking}]
        items.append({"type": "reasoning", "id": "rs_scripted", "summary": summary, "encrypted_content": SEALED})
    if said.text:
        part = {"type": "output_text", "text": said.text, "annotations": []}
        items.append(
            {"type": "message", "id": "msg_scripted", "role": "assistant", "status": status, "content": [part]}
        )
    for call in said.calls:
        item = {"type": "function_call", "id": f"fc_{call.id}", "call_id": call.id, "name": call.name}
        item |= {"arguments": call.arguments, "status": status}
        items.append({**item, "namespace": call.name} if call.name in late else item)
    return items


def whole(body: dict[str, Any], said: Spoken, usage: dict[str, Any]) -> dict[str, Any]:
    """The answer as one JSON object."""
    return _response(body, _output(body, said, "completed"), "completed", usage)


def _response(
    body: dict[str, Any], output: list[dict[str, Any]], status: str, usage: dict[str, Any] | None
) -> dict[str, Any]:
    details = {"reason": "max_output_tokens"} if status == "incomplete" else None
    return {
        "id": "resp_scripted",
        "object": "response",
        "created_at": 1_700_000_000,
        "model": body["model"],
        "status": status,
        "error": None,
        "incomplete_details": details,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": body.get("tools") or [],
        "usage": usage,
    }


def chunks(body: dict[str, Any], said: Spoken, usage: dict[str, Any], finish: str | None) -> list[bytes]:
    """The answer as server-sent events; without `finish` the stream ends as if it had been cut."""
    status = "incomplete" if finish == "length" else "completed"
    output = _output(body, said, status)
    events: list[dict[str, Any]] = [{"type": "response.created", "response": _response(body, [], "in_progress", None)}]
    for at, item in enumerate(output):
        events += _item_events(at, item)
    if finish is not None:
        events.append({"type": f"response.{status}", "response": _response(body, output, status, usage)})
    return [
        f"event: {each['type']}\ndata: {json.dumps({**each, 'sequence_number': number})}\n\n".encode()
        for number, each in enumerate(events)
    ]


def _item_events(at: int, item: dict[str, Any]) -> list[dict[str, Any]]:
    place = {"item_id": item["id"], "output_index": at}
    empty = {**item, **({"content": []} if item["type"] == "message" else {})}
    if item["type"] == "function_call":
        empty["arguments"] = ""
    events: list[dict[str, Any]] = [{"type": "response.output_item.added", "output_index": at, "item": empty}]
    match item["type"]:
        case "message":
            part, place = item["content"][0], {**place, "content_index": 0}
            events.append({"type": "response.content_part.added", **place, "part": {**part, "text": ""}})
            events += [
                {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
                for piece in in_pieces(part["text"])
            ]
            events.append({"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []})
            events.append({"type": "response.content_part.done", **place, "part": part})
        case "reasoning" if item["summary"]:
            part, place = item["summary"][0], {**place, "summary_index": 0}
            events[0]["item"] = {**item, "summary": []}
            events.append({"type": "response.reasoning_summary_part.added", **place, "part": {**part, "text": ""}})
            events += [
                {"type": "response.reasoning_summary_text.delta", **place, "delta": piece}
                for piece in in_pieces(part["text"])
            ]
            events.append({"type": "response.reasoning_summary_text.done", **place, "text": part["text"]})
            events.append({"type": "response.reasoning_summary_part.done", **place, "part": part})
        case "function_call":
            kind = "response.function_call_arguments.delta"
            events += [{"type": kind, **place, "delta": cut} for cut in in_cuts(item["arguments"])]
            events.append({"type": "response.function_call_arguments.done", **place, "arguments": item["arguments"]})
    return [*events, {"type": "response.output_item.done", "output_index": at, "item": item}]


def usage(total: int, cached: int, output: int, written: int) -> dict[str, Any]:
    """Token usage as this API words it; it does not tell what was written to the cache."""
    del written
    return {
        "input_tokens": total,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": total + output,
    }


def prefix(body: dict[str, Any]) -> list[Any]:
    """What the provider's cache sees, in its order."""
    return [body.get("tools") or [], body.get("instructions") or "", *body["input"]]
