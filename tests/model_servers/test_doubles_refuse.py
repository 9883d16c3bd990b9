"""The doubles refuse what the real servers were seen to refuse, in their words; what is right they take."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.model_servers.rows import ROWS, row_of
from tests.model_servers.server import Double
from tests.model_servers.spoken import Abilities, Said, Use
from tests.model_servers.table import doubles
from tests.patience import PATIENCE_S

MILK = Use(tool="task_create", arguments={"title": "milk"})
TOOL = {"name": "task_create", "description": "Add.", "parameters": {"type": "object", "properties": {}}}
ASKED = {"role": "user", "content": "buy milk"}
SPOKEN = {"role": "assistant", "content": "Hello."}


def called(call_id: str = "abcdefghi", **more: Any) -> dict[str, Any]:
    function = {"name": "task_create", "arguments": '{"title": "milk"}'}
    call = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": "", "tool_calls": [call], **more}


def result(call_id: str = "abcdefghi") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "Done."}


DONE = (ASKED, called(), result())
DETAIL = {
    "type": "reasoning.text",
    "text": "Hm.",
    "signature": "another's",
    "format": "anthropic-claude-v1",
    "index": 0,
}
BROKEN = called(tool_calls=[{**called()["tool_calls"][0], "function": {"name": "a", "arguments": "{"}}])
CHAT = [  # row, messages, more of the body, status, words
    ("openai", (ASKED, called("x" * 41), result("x" * 41)), {}, 400, "Expected a string with maximum length 40"),
    ("openai", (ASKED, called(), ASKED), {}, 400, "The following tool_call_ids did not have response messages"),
    ("openai", (ASKED, result()), {}, 400, "must be a response to a preceeding message with 'tool_calls'"),
    ("openai", (ASKED,), {"tools": []}, 400, "Invalid 'tools': empty array"),
    ("openai", (ASKED,), {"tool_choice": "auto"}, 400, "'tool_choice' is only allowed when 'tools' are specified"),
    ("openai", (ASKED,), {"top_k": 3}, 400, "Unrecognized request argument supplied: top_k"),
    ("azure", (ASKED,), {"top_k": 3}, 400, "Unrecognized request argument supplied: top_k"),
    ("mistral", (ASKED, called("call_1"), result("call_1")), {}, 400, "Tool call id was call_1 but must be a-z, A-Z"),
    ("mistral", (*DONE, ASKED), {}, 400, "Unexpected role 'user' after role 'tool'"),
    ("mistral", (ASKED, SPOKEN), {}, 400, "Expected last role User or Tool (or Assistant with prefix True)"),
    ("mistral", (ASKED, {"role": "assistant", "content": ""}, ASKED), {}, 400, "either content or tool_calls"),
    ("mistral", (ASKED,), {"stream_options": {}}, 422, '"loc": ["body", "stream_options"]'),
    ("mistral", (ASKED, {**SPOKEN, "reasoning_content": "Hm."}, ASKED), {}, 422, '"assistant", "reasoning_content"'),
    ("groq", (ASKED, {**SPOKEN, "reasoning_content": "Hm."}, ASKED), {}, 400, "'reasoning_content' is unsupported"),
    ("groq", (ASKED, {**SPOKEN, "reasoning": "Hm."}, ASKED), {}, 400, "reasoning is not supported with this model"),
    ("google", DONE, {}, 400, "Function call is missing a thought_signature in functionCall parts"),
    ("google", (ASKED,), {"seed": 1, "store": True}, 400, 'Unknown name \\"store\\"'),
    ("google", (ASKED, SPOKEN, called(), result()), {}, 400, "function call turn comes immediately after a user turn"),
    ("deepseek", DONE, {}, 400, "The `reasoning_content` in the thinking mode must be passed back to the API."),
    ("openrouter", (ASKED, {**SPOKEN, "reasoning_details": [DETAIL]}, ASKED), {}, 400, "Invalid `signature`"),
    ("vllm", (ASKED, ASKED), {}, 400, "conversation roles must alternate user/assistant"),
    ("vllm", (ASKED, SPOKEN, {"role": "system", "content": "x"}, ASKED), {}, 400, "System message must be"),
    ("llamacpp", (ASKED, SPOKEN, {"role": "system", "content": "x"}, ASKED), {}, 500, "Jinja Exception: System"),
    ("ollama", (ASKED, BROKEN, result()), {}, 400, "Failed to parse tool call arguments as JSON"),
]  # fmt: skip


@pytest.fixture(scope="module")
def running() -> Iterator[dict[str, Double]]:
    with doubles() as found:
        yield found


def begun(running: dict[str, Double], row_id: str, *answers: Said | str, **abilities: Any) -> Double:
    double = running[row_id]
    double.begin(row_of(row_id), Abilities(**abilities))
    double.say(*answers)
    return double


def post(double: Double, body: dict[str, Any], key: str = "") -> httpx.Response:
    row = double.row
    path = {"chat": "/chat/completions", "responses": "/responses", "messages": "/v1/messages"}[row.wire]
    headers: dict[str, str] = {
        row.key_header: f"Bearer {key or double.api_key}" if row.key_header == "authorization" else double.api_key
    }
    body = {"model": row.model, **body}
    return httpx.post(double.origin + row.path + path, json=body, headers=headers, timeout=PATIENCE_S)


@pytest.mark.parametrize(("row_id", "messages", "more", "status", "words"), CHAT)
def test_chat_completions_are_refused_as_there(
    running: dict[str, Double], row_id: str, messages: tuple[Any, ...], more: dict[str, Any], status: int, words: str
) -> None:
    double = begun(running, row_id, "Never said.")
    body = {"messages": list(messages), "tools": [{"type": "function", "function": TOOL}]}
    if any(name in more for name in ("tool_choice", "stream_options")):
        del body["tools"]
    answer = post(double, {**body, **more})
    assert answer.status_code == status
    assert words in answer.text
    assert len(double.refused) == 1
    assert double.sent == []


@pytest.mark.parametrize("row_id", [row.id for row in ROWS if row.wire == "chat"])
def test_its_own_answer_sent_back_as_it_came_is_taken(running: dict[str, Double], row_id: str) -> None:
    row = row_of(row_id)
    double = begun(running, row_id, Said(thinking="Milk, then.", calls=(MILK,)), "Added.")
    model = {"model": row.thinker or row.model, "tools": [{"type": "function", "function": TOOL}]}
    first = post(double, {**model, "messages": [ASKED]}).json()["choices"][0]["message"]
    taken = first if row_id != "mistral" else {**first, "content": first["content"][1:] or ""}
    results = [result(call["id"]) for call in first["tool_calls"]]
    second = post(double, {**model, "messages": [ASKED, taken, *results]})
    assert (second.status_code, double.refused) == (200, []), second.text


@pytest.mark.parametrize(
    ("row_id", "change", "words"),
    [
        ("openrouter", {"reasoning_details": None}, "reasoning details to be preserved"),
        ("openrouter", {"reasoning_details": [{**DETAIL, "text": "altered"}]}, "Invalid `signature`"),
        ("deepseek", {"reasoning_content": None}, "must be passed back to the API"),
    ],
    ids=["OpenRouter, dropped", "OpenRouter, altered", "DeepSeek, dropped"],
)
def test_reasoning_that_was_dropped_or_altered_is_refused(
    running: dict[str, Double], row_id: str, change: dict[str, Any], words: str
) -> None:
    row = row_of(row_id)
    double = begun(running, row_id, Said(thinking="Milk, then.", calls=(MILK,)), "Never said.")
    model = {"model": row.thinker, "tools": [{"type": "function", "function": TOOL}]}
    first = post(double, {**model, "messages": [ASKED]}).json()["choices"][0]["message"]
    bent = {key: value for key, value in {**first, **change}.items() if value is not None or key == "content"}
    results = [result(call["id"]) for call in first["tool_calls"]]
    answer = post(double, {**model, "messages": [ASKED, bent, *results]})
    assert answer.status_code == 400
    assert words in answer.text


def block(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, **more}


USED = block("tool_use", id="toolu_1", name="task_create", input={})
ANSWERED = block("tool_result", tool_use_id="toolu_1", content="Done.")
THINKS = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
MESSAGES: list[tuple[list[Any], dict[str, Any], str]] = [
    ([[USED], "go on"], {}, "`tool_use` ids were found without `tool_result` blocks immediately after: toolu_1"),
    ([[{**USED, "id": "a.b:c"}], [{**ANSWERED, "tool_use_id": "a.b:c"}]], {}, "String should match pattern"),
    ([[SPOKEN["content"]], [ANSWERED]], {}, "unexpected `tool_use_id` found in `tool_result` blocks: toolu_1"),
    ([[block("text", text=" ")], "go on"], {}, "text content blocks must be non-empty"),
    ([[block("text", text="I am ")]], {}, "final assistant content cannot end with trailing whitespace"),
    ([[block("thinking", thinking="x", signature="y")], "and?"], {}, "Invalid `signature` in `thinking` block"),
    ([[USED], [ANSWERED]], THINKS, "Expected `thinking` or `redacted_thinking`, but found `tool_use`"),
    ([], {**THINKS, "temperature": 0.2}, "`temperature` may only be set to 1 when thinking is enabled"),
    ([], {"seed": 1}, "unknown key 'seed'"),
]


@pytest.mark.parametrize(("said", "more", "words"), MESSAGES)
def test_messages_are_refused_as_there(
    running: dict[str, Double], said: list[Any], more: dict[str, Any], words: str
) -> None:
    double = begun(running, "anthropic", "Never said.")
    texts = [[block("text", text=each[0])] if each and isinstance(each[0], str) else each for each in said]
    roles = [{"role": ("assistant", "user")[at % 2], "content": each} for at, each in enumerate(texts)]
    tool = {"name": "task_create", "input_schema": {"type": "object"}}
    answer = post(double, {"messages": [ASKED, *roles], "max_tokens": 4096, "tools": [tool], **more})
    assert (answer.status_code, answer.json()["type"]) == (400, "error")
    assert words in answer.text


CALL = {"type": "function_call", "call_id": "c1", "name": "task_create", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "Done."}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "another's"}
RESPONSES: list[tuple[list[dict[str, Any]], str]] = [
    ([CALL], "No tool output found for function call c1."),
    ([OUTPUT], "No tool call found for function call output with call_id c1."),
    ([{**CALL, "id": "c1"}, OUTPUT], "Expected an ID that begins with 'fc'"),
    ([{**CALL, "call_id": "c" * 65}, {**OUTPUT, "call_id": "c" * 65}], "Expected a string with maximum length 64"),
    ([REASONING, CALL, OUTPUT], "could not be verified"),
    ([{**REASONING, "encrypted_content": None}, CALL, OUTPUT], "Items are not persisted when `store` is set to false"),
    ([REASONING, ASKED], "of type 'reasoning' was provided without its required following item"),
]


@pytest.mark.parametrize(("items", "words"), RESPONSES)
def test_responses_are_refused_as_there(running: dict[str, Double], items: list[dict[str, Any]], words: str) -> None:
    double = begun(running, "responses", "Never said.")
    tools = [{"type": "function", **TOOL}]
    answer = post(double, {"input": [ASKED, *items], "tools": tools, "store": False})
    assert answer.status_code == 400
    assert words in answer.text


def test_a_call_of_responses_without_its_reasoning_is_refused(running: dict[str, Double]) -> None:
    double = begun(running, "responses", Said(thinking="Milk.", calls=(MILK,)), "Never said.")
    body = {"tools": [{"type": "function", **TOOL}], "store": False, "include": ["reasoning.encrypted_content"]}
    given = post(double, {**body, "input": [ASKED]}).json()["output"]
    call = next(item for item in given if item["type"] == "function_call")
    answer = post(double, {**body, "input": [ASKED, call, {**OUTPUT, "call_id": call["call_id"]}]})
    assert "was provided without its required 'reasoning' item" in answer.text


@pytest.mark.parametrize(
    ("row_id", "abilities", "words"),
    [
        ("openai", {"refuses": frozenset({"max_tokens"})}, "Use 'max_completion_tokens' instead."),
        ("openai", {"refuses": frozenset({"temperature"})}, "'temperature' does not support 0.2 with this model"),
        ("xai", {"refuses": frozenset({"presence_penalty"})}, "does not support parameter presencePenalty."),
        ("ollama", {"tools": False}, "registry.ollama.ai/library/qwen3:8b does not support tools"),
        ("vllm", {"tools": False}, '\\"auto\\" tool choice requires --enable-auto-tool-choice'),
        ("openrouter", {"tools": False}, "No endpoints found that support tool use."),
        ("vllm", {"output": 20}, "is too large: 50. This model's maximum context length is 20 tokens"),
        ("anthropic", {"window": 5}, "tokens > 5 maximum"),
        ("llamacpp", {"window": 5}, '"type": "exceed_context_size_error"'),
        ("lmstudio", {"window": 5}, "with context length of only 5 tokens"),
        ("litellm", {"window": 5}, "litellm.ContextWindowExceededError: litellm.BadRequestError"),
        ("google", {"bad_tool": "task_create"}, "at 'tools[0].function_declarations[0].parameters'"),
    ],
)
def test_what_a_model_cannot_do_is_refused_in_its_servers_words(
    running: dict[str, Double], row_id: str, abilities: dict[str, Any], words: str
) -> None:
    double = begun(running, row_id, "Never said.", **abilities)
    tools: list[Any] = [{"type": "function", "function": TOOL}]
    if row_id == "anthropic":
        tools = [{"name": "task_create", "input_schema": {"type": "object"}}]
    body = {"messages": [ASKED], "tools": tools, "max_tokens": 50}
    more = {"temperature": 0.2, "presence_penalty": 0.1} if "refuses" in abilities else {}
    answer = post(double, {**body, **more})
    assert answer.status_code >= 400
    assert words in answer.text


def test_a_wrong_key_is_refused_in_each_form(running: dict[str, Double]) -> None:
    told = {}
    for row_id in ("google", "xai", "mistral", "deepseek"):
        double = begun(running, row_id)
        answer = post(double, {"messages": [ASKED]}, key="wrong")
        told[row_id] = (answer.status_code, json.dumps(answer.json()))
    assert told["google"][0] == told["xai"][0] == 400
    assert told["google"][1].startswith('[{"error"')
    assert told["mistral"] == (401, '{"detail": "Unauthorized"}')
    assert "Authentication Fails" in told["deepseek"][1]
