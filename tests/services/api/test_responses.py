"""`/v1/responses` with OpenAI's own client and plain HTTP: answers, the order of a stream's events, items, refusals."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import openai
import pytest

from cortex.base.errors import UserError
from cortex.services.api.response_requests import read_response_request
from tests.program_door import Door, events_of, program_door
from tests.scripted_server import Fault, Say, ScriptedServer, Use, rule

MILK = Use("task_create", {"title": "milk", "list_name": "shopping"}, is_blind=True)
WEATHER: Any = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "strict": True,
}
CALLS = Say("Let me look.", (Use("get_weather", {"city": "Rome"}), Use("get_weather", {"city": "Oslo"})))
CALL = {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": "{}", "id": "fc_1"}
DATA = "data:image/png;base64,iVBORw0KGgo="


@pytest.fixture
async def door(tmp_path: Path, scripted: ScriptedServer) -> AsyncIterator[Door]:
    scripted.rules = [rule("milk", MILK, "Added milk."), rule("weather", CALLS, "It is sunny.")]
    async with program_door(tmp_path / "home", scripted) as opened:
        yield opened


async def test_cortex_acts_with_its_tools_and_nothing_is_kept_for_the_program(
    door: Door, scripted: ScriptedServer
) -> None:
    client = await door.client()
    answer = await client.responses.create(model="cortex", input="put milk on my list", instructions="Be brief.")
    assert (answer.output_text, answer.status) == ("Added milk.", "completed")
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens > 0
    (turn,) = await door.turns()
    assert turn.text == "put milk on my list"
    assert "Be brief." in json.dumps(scripted.log[-1].body["messages"])
    with pytest.raises(openai.NotFoundError, match="keeps no responses"):
        await client.responses.retrieve(answer.id)
    with pytest.raises(openai.BadRequestError, match="keeps no responses") as refused:
        await client.responses.create(model="cortex", input="more", previous_response_id=answer.id)
    assert refused.value.param == "previous_response_id"


async def test_a_stream_of_words_comes_in_order(door: Door) -> None:
    http = await door.http()
    body = {"model": "cortex", "input": [{"role": "user", "content": "put milk on my list"}], "stream": True}
    answer = await http.post("/v1/responses", json=body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = events_of(answer.text)
    kinds = [one["type"].removeprefix("response.") for one in events]
    assert [one["sequence_number"] for one in events] == [*range(len(events))]
    assert list(dict.fromkeys(kinds)) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert "".join(one["delta"] for one in events if one["type"] == "response.output_text.delta") == "Added milk."
    assert {one["item_id"] for one in events if "item_id" in one} == {events[-1]["response"]["output"][0]["id"]}
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "Added milk."
    assert "[DONE]" not in answer.text


async def test_own_tools_are_called_and_their_results_come_back(door: Door, scripted: ScriptedServer) -> None:
    client = await door.client()
    asked: list[Any] = [{"role": "user", "content": "how is the weather?"}]
    async with client.responses.stream(model="cortex", input=asked, tools=[WEATHER], store=True) as stream:
        events = [event async for event in stream]
        first = await stream.get_final_response()
    kinds = [event.type.removeprefix("response.") for event in events]
    assert (
        kinds[-9:-1]
        == [
            "output_item.added",
            "function_call_arguments.delta",
            "function_call_arguments.done",
            "output_item.done",
        ]
        * 2
    )
    assert [one.type for one in first.output] == ["message", "function_call", "function_call"]
    assert [one.arguments for one in first.output if one.type == "function_call"] == [
        '{"city": "Rome"}',
        '{"city": "Oslo"}',
    ]
    calls: list[Any] = [one.model_dump(exclude_none=True) for one in first.output]
    results = [
        {"type": "function_call_output", "call_id": one["call_id"], "output": "sun"}
        for one in calls
        if "call_id" in one
    ]
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
    history: list[Any] = [*asked, thought, *calls, *results]
    again = await client.responses.create(model="m", input=history, tools=[WEATHER])
    assert again.output_text == "It is sunny."
    sent = scripted.log[-1].body["messages"]
    assert [one["role"] for one in sent if one["role"] != "system"] == ["user", "assistant", "tool", "tool"]
    assert [call["id"] for call in sent[-3]["tool_calls"]] == [one["call_id"] for one in results]
    assert scripted.problems == []
    assert await door.turns() == []


async def test_a_failure_is_an_error_before_the_first_word_and_an_event_behind_it(
    door: Door, scripted: ScriptedServer
) -> None:
    client = await door.client()
    scripted.fail(Fault(kind="status", status=401))
    with pytest.raises(openai.InternalServerError) as broken:
        await client.responses.create(model="cortex", input="hello", stream=True)
    assert broken.value.status_code == 502
    scripted.rules = [rule("long", "words " * 40)]
    scripted.fail(Fault(kind="cut", after_bytes=3_000), Fault(kind="cut", after_bytes=3_000))
    stream = await client.responses.create(model="cortex", input="long", stream=True)
    last = [event async for event in stream][-1]
    assert last.type == "response.failed"
    assert last.response.status == "failed"
    assert last.response.error is not None
    assert "cut off" in last.response.error.message
    with pytest.raises(openai.NotFoundError) as unknown:
        await client.responses.create(model="gpt-9", input="hello")
    assert unknown.value.code == "model_not_found"
    with pytest.raises(openai.AuthenticationError):
        await client.with_options(api_key="cx-wrong").responses.create(model="cortex", input="hello")


async def test_an_answer_whose_tokens_ran_out_is_incomplete(door: Door, scripted: ScriptedServer) -> None:
    client = await door.client()
    scripted.rules = [rule("long", "words " * 40)]
    scripted.fail(Fault(kind="length"))
    answer = await client.responses.create(model="m", input="long", tools=[WEATHER], max_output_tokens=20)
    assert (answer.status, answer.output[0].type) == ("incomplete", "message")
    assert answer.incomplete_details is not None
    assert answer.incomplete_details.reason == "max_output_tokens"
    assert 20 in [scripted.log[-1].body.get(name) for name in ("max_tokens", "max_completion_tokens")]


def chat_of(**body: Any) -> dict[str, Any]:
    """The chat completion that a request becomes."""
    return read_response_request(json.dumps(body).encode()).chat.model_dump(exclude_none=True)


def test_calls_of_one_round_stand_with_its_words() -> None:
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]}
    result = {"type": "function_call_output", "call_id": "c1", "output": "sun"}
    items = [{"role": "user", "content": "hi"}, said, CALL, {**CALL, "call_id": "c2"}, result, CALL | {"call_id": "c3"}]
    messages = chat_of(input=items, tools=[WEATHER])["messages"]
    assert [one["role"] for one in messages] == ["user", "assistant", "tool", "assistant"]
    assert [call["id"] for call in messages[1]["tool_calls"]] == ["c1", "c2"]
    assert messages[1]["content"] == "I look."


def test_instructions_and_developers_words_are_the_system_s() -> None:
    items = [{"role": "developer", "content": "No jokes."}, {"role": "user", "content": "hi"}]
    roles = [one["role"] for one in chat_of(input=items, instructions="Be brief.")["messages"]]
    assert roles == ["system", "developer", "user"]


def test_one_tool_may_be_chosen_and_some_allowed() -> None:
    other = {**WEATHER, "name": "get_time"}
    only = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "get_time"}]}
    chosen = chat_of(input="x", tools=[WEATHER, other], tool_choice={"type": "function", "name": "get_time"})
    assert chosen["tool_choice"]["function"] == {"name": "get_time"}
    allowed = chat_of(input="x", tools=[WEATHER, other], tool_choice=only)
    assert len(allowed["tools"]) == 2
    (name,) = allowed["tool_choice"]["allowed_tools"]["tools"]
    assert (name["function"]["name"], allowed["tool_choice"]["allowed_tools"]["mode"]) == ("get_time", "required")


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({}, "input", "needed"),
    ({"input": 3}, "input", ""),
    ({"input": []}, "input", ""),
    ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0]", "keeps no responses"),
    ({"input": [{"type": "computer_call"}]}, "input[0]", "computer_call"),
    ({"input": [{"type": "message", "content": "x"}]}, "input[0].role", "role"),
    ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role", ""),
    ({"input": [{"type": "function_call", "name": "x"}]}, "input[0]", "call_id"),
    ({"input": [{"type": "function_call_output", "output": "x"}]}, "input[0]", "call_id"),
    ({"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]}, "input[0]", "input_file"),
    ({"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]}, "input[0]", "image_url"),
    ({"input": "x", "tools": [{"type": "web_search"}]}, "tools[0]", "web_search"),
    ({"input": "x", "tools": [{"type": "function"}]}, "tools[0].name", "name"),
    ({"input": "x", "tools": [WEATHER], "tool_choice": {"type": "mcp"}}, "tool_choice", "mcp"),
    ({"input": "x", "conversation": "conv_1"}, "conversation", "keeps no"),
    ({"input": "x", "background": True}, "background", "wait"),
    ({"input": "x", "prompt": {"id": "p"}}, "prompt", "stored"),
    ({"input": "x", "max_output_tokens": 0}, "max_output_tokens", ""),
    ({"input": "x", "top_logprobs": 3}, "top_logprobs", ""),
    ({"input": "x", "include": ["message.output_text.logprobs"]}, "top_logprobs", ""),
]


@pytest.mark.parametrize(("body", "field", "words"), REFUSED, ids=[str(n) for n in range(len(REFUSED))])
def test_what_cannot_be_done_is_refused_by_the_names_of_the_program(
    body: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(UserError) as refused:
        read_response_request(json.dumps(body).encode())
    fields = " ".join([refused.value.field, *getattr(refused.value, "fields", {})])
    assert field in f"{fields} {refused.value.message}"
    assert words in refused.value.message
    assert "messages" not in f"{fields} {refused.value.message}"


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"\xff\xfe", b'"x"', b"{" * 100_000, b"null"])
def test_a_body_that_is_no_request_is_refused(body: bytes) -> None:
    with pytest.raises(UserError):
        read_response_request(body)
