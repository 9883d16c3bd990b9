"""Pass-through tokens by real requests: the program's own prompt and tools, the person's models and limits."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from msgspec.structs import replace

from cortex.integrations.web import Web
from cortex.services.api.requests import BadRequest
from cortex.storage.audit import AuditRepository
from tests.patience import PATIENCE_S
from tests.plain_model import refusal
from tests.program_door import PlainDoor, asked, drawn, plain_door, words_of

WEATHER: Any = {
    "type": "function",
    "function": {"name": "get_weather", "description": None, "parameters": None, "strict": None},
}
CALL = {
    "index": 0,
    "id": "call_a",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city":"Rome"}'},
}


@pytest.fixture
async def passing(tmp_path: Path) -> AsyncIterator[PlainDoor]:
    async with plain_door(tmp_path / "home", pass_through="1") as made:
        yield made


async def test_only_what_the_program_sent_reaches_the_model_and_it_is_no_turn(passing: PlainDoor) -> None:
    told = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
        {"role": "assistant", "content": "three"},
        {"role": "user", "content": "four", "name": None},
    ]
    answer = await passing.client.chat.completions.create(model="cortex", messages=told)  # type: ignore[arg-type]
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("hello", "stop")
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (11, 7)
    (body,) = passing.model.bodies
    said = [(one["role"], one["content"]) for one in body["messages"]]
    assert said[0][1] == "Be brief."
    assert [role for role, _ in said[1:]] == ["user", "assistant", "user"]
    assert (said[2][1], said[3][1]) == ("three", "four")
    assert not {"tools", "tool_choice"} & set(body)
    assert await passing.door.turns() == []
    (view,) = await passing.door.house.cortex.api_tokens.list(passing.door.house.admin)
    assert view.spent.tokens == 18


async def test_tools_and_their_history_go_both_ways_and_calls_are_streamed(passing: PlainDoor) -> None:
    passing.model.answers.append([{"reasoning_content": "Look."}, {"content": "I ask."}, {"tool_calls": [CALL]}])
    events = await passing.stream(tools=[WEATHER], tool_choice=None, parallel_tool_calls=None)
    assert (words_of(events, "reasoning_content"), words_of(events)) == ("Look.", "I ask.")
    (calls,) = [
        one["choices"][0]["delta"]["tool_calls"] for one in events if "tool_calls" in str(one["choices"][0]["delta"])
    ]
    assert calls == [CALL]
    assert events[-1]["choices"][0]["finish_reason"] == "tool_calls"
    (tool,) = passing.model.bodies[0]["tools"]
    assert tool["function"]["name"] == "get_weather"
    assert tool["function"]["parameters"]["type"] == "object"
    asking = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{key: CALL[key] for key in ("id", "type", "function")}],
    }
    history = [*asked("weather?"), asking, {"role": "tool", "tool_call_id": "call_a", "name": None, "content": "sun"}]
    whole = (await passing.post(messages=history)).json()  # its tools are not sent any more
    assert whole["choices"][0]["message"]["content"] == "hello"
    sent = passing.model.bodies[1]["messages"]
    assert [one["role"] for one in sent] == ["user", "assistant", "tool"]
    assert (sent[1]["tool_calls"][0]["id"], sent[2]["tool_call_id"], sent[2]["content"]) == ("call_a", "call_a", "sun")


async def test_calls_without_ids_and_arguments_that_are_an_object_find_their_results(passing: PlainDoor) -> None:
    calls = [{"id": None, "function": {"name": name, "arguments": {"n": 1}}} for name in ("a", "b")]
    history = [
        *asked("go"),
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "tool_call_id": None, "content": "first"},
        {"role": "tool", "content": [{"type": "text", "text": "second"}]},
    ]
    for _ in range(2):
        assert (await passing.post(messages=history)).status_code == 200
    first, second = (body["messages"] for body in passing.model.bodies)
    assert first == second, "the same each time, so that what a server cached holds"
    ids = [call["id"] for call in first[1]["tool_calls"]]
    assert [(one["tool_call_id"], one["content"]) for one in first[2:]] == [*zip(ids, ("first", "second"), strict=True)]
    assert json.loads(first[1]["tool_calls"][0]["function"]["arguments"]) == {"n": 1}


async def test_a_choice_of_tools_leaves_those(passing: PlainDoor) -> None:
    tools = [{"type": "function", "function": {"name": name}} for name in ("a", "b", "c")]
    allowed = {"mode": "auto", "tools": [{"type": "function", "function": {"name": name}} for name in ("a", "c")]}
    await passing.post(tools=tools, tool_choice={"type": "allowed_tools", "allowed_tools": allowed})
    await passing.post(tools=tools, tool_choice={"type": "function", "function": {"name": "b"}})
    await passing.post(tools=tools, tool_choice="none")
    names = [[one["function"]["name"] for one in body.get("tools", ())] for body in passing.model.bodies]
    assert names[:2] == [["a", "c"], ["b"]]
    assert passing.model.bodies[1]["tool_choice"] == "required"
    wrong = await passing.post(tools=tools, tool_choice={"type": "function", "function": {"name": "z"}})
    assert wrong.json()["error"]["param"] == "tool_choice"


EMPTY = dict.fromkeys(
    (
        "tools", "tool_choice", "stop", "n", "stream", "stream_options", "max_tokens", "max_completion_tokens", "seed",
        "temperature", "top_p", "presence_penalty", "frequency_penalty", "logit_bias", "logprobs", "top_logprobs",
        "response_format", "parallel_tool_calls", "user", "metadata", "store", "functions", "function_call",
        "reasoning_effort", "modalities", "audio", "prediction", "service_tier", "web_search_options", "model",
    )
)  # fmt: skip


async def test_null_is_as_good_as_nothing_and_unknown_fields_do_no_harm(passing: PlainDoor) -> None:
    message = {"role": "user", "content": "hello", "name": None, "tool_calls": None, "tool_call_id": None, "x": 1}
    answer = await passing.post(
        **{**EMPTY, "messages": [message], "user": "u", "metadata": {"a": "b"}, "store": True, "x": [1]}
    )
    assert answer.status_code == 200, answer.text
    assert passing.model.bodies[0]["messages"] == [{"role": "user", "content": "hello"}]
    assert not {"user", "metadata", "store", "x"} & set(passing.model.bodies[0])


STOPS: list[tuple[Any, list[str], str]] = [
    ("STOP", ["one S", "TO", "P two"], "one "),
    (["###", "\n\n"], ["a\n", "b\n", "\nc"], "a\nb"),
    ("STOP", ["one ST", "ILL"], "one STILL"),
    (["xx"], ["x", "y", "x"], "xyx"),
    (["ab", "b"], ["za", "b"], "z"),
]


async def test_no_letter_of_a_stop_sequence_is_told(passing: PlainDoor) -> None:
    for stop, pieces, heard in STOPS:
        passing.model.say(*pieces)
        events = await passing.stream(stop=stop)
        assert (words_of(events), events[-1]["choices"][0]["finish_reason"]) == (heard, "stop")
        passing.model.say(*pieces)
        choice = (await passing.post(stop=stop)).json()["choices"][0]
        assert (choice["message"]["content"], choice["finish_reason"]) == (heard, "stop")
    (view,) = await passing.door.house.cortex.api_tokens.list(passing.door.house.admin)
    assert view.spent.tokens > 0


PERSON = {
    "type": "json_schema",
    "json_schema": {
        "name": "person",
        "strict": True,
        "schema": {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]},
    },
}


FORMED: list[tuple[Any, str, str | None, bool]] = [  # what is asked for, said and heard, and whether a stream may be so
    (PERSON, '{"age": 5}', '{"age": 5}', True),
    (PERSON, '```json\n{"age": 5}\n```', '{"age": 5}', False),
    ({"type": "json_object"}, ' {"any": []} ', '{"any": []}', True),
    (PERSON, '{"age": "five"}', None, False),
    (PERSON, "I am five.", None, False),
    ({"type": "json_object"}, "[1]", None, False),
    ({"type": "text"}, "words", "words", True),
]


async def test_an_answer_that_has_to_be_json_is_or_is_refused(passing: PlainDoor) -> None:
    for form, said, heard, may_stream in FORMED:
        passing.model.say(said)
        whole = await passing.post(response_format=form)
        passing.model.say(said)
        last = (await passing.stream(response_format=form))[-1]
        assert last.get("error", {}).get("param") == (None if may_stream else "response_format"), said
        found = whole.json()
        assert found.get("error", {}).get("param") == ("response_format" if heard is None else None), said
        assert [one["message"]["content"] for one in found.get("choices", ())] == ([] if heard is None else [heard])


async def test_pictures_reach_a_model_that_sees_and_are_refused_in_words_by_others(passing: PlainDoor) -> None:
    parts = [
        {"type": "text", "text": "what is it?"},
        {"type": "image_url", "image_url": {"url": drawn("red"), "detail": None}},
    ]
    asking = [{"role": "user", "content": parts}]
    assert (await passing.post(messages=asking)).status_code == 200
    sent = passing.model.bodies[0]["messages"][0]["content"]
    (url,) = [part["image_url"]["url"] for part in sent if part["type"] == "image_url"]
    assert url.startswith("data:image/png;base64,")
    house = passing.door.house
    blind = {"name": "blind", "provider": "openai", "model": "plain", "base_url": passing.model.base_url, "sees": "0"}
    await house.cortex.models.save(house.admin, {**blind, "api_key": "k"})
    refused = await passing.post(model="blind", messages=asking)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "unsupported_value")
    assert "not take pictures" in refused.json()["error"]["message"]


UNREAD = {
    "data:image/png;base64,AAAA": "damaged",
    "data:image/png;base64,?": "base64",
    "data:image/png,abc": "base64",
    "file:///etc/passwd": "https",
    "data:image/gif;base64,R0lGODlhAQABAAAAACw=": "GIF is not taken",
    "http://127.0.0.1:9/x.png": "not allowed",
    "http://[::1]/x.png": "not allowed",
    "": "https",
}


async def test_a_picture_that_cannot_be_read_is_said_and_nothing_inside_is_fetched(passing: PlainDoor) -> None:
    for url, why in UNREAD.items():
        content = [{"type": "image_url", "image_url": {"url": url}}]
        refused = (await passing.post(messages=[{"role": "user", "content": content}])).json()["error"]
        assert refused["code"] == "invalid_image_url"
        assert why in refused["message"]
    assert passing.model.bodies == []


async def test_pictures_of_the_public_web_are_fetched_and_each_fault_is_said(passing: PlainDoor) -> None:
    png = base64.b64decode(drawn("blue").partition(",")[2])

    def web(request: httpx.Request) -> httpx.Response:
        found = {"/a.png": png, "/page": b"<html>", "/large": b"x" * 6_000_000}.get(request.url.path)
        return httpx.Response(200 if found else 404, stream=httpx.ByteStream(found or b""))

    opened = Web(lambda: httpx.AsyncClient(transport=httpx.MockTransport(web)))
    pictures = replace(passing.door.house.cortex.program_pictures, web=opened)
    given = await pictures.read(["https://example.com/a.png"])
    (part,) = given.parts.values()
    assert (part.media_type, part.width, part.height) == ("image/png", 40, 30)
    assert [*given.data] == [part.sha256]
    for path, why in {"/none": "404", "/page": "damaged", "/large": "too large"}.items():
        with pytest.raises(BadRequest, match=why):
            await pictures.read([f"https://example.com{path}"])
    with pytest.raises(BadRequest, match="At most 20"):
        await pictures.read([f"https://example.com/{n}" for n in range(21)])


async def test_what_is_too_long_is_named_and_the_models_window_is_the_bound(passing: PlainDoor) -> None:
    long = "system words " * 8_000  # about 16,000 tokens, over 100,000 characters
    fits = await passing.post(messages=[{"role": "system", "content": long}, *asked("hello")])
    assert fits.status_code == 200
    for name, body in {
        "system prompt": {"messages": [{"role": "system", "content": long * 3}, *asked("x")]},
        "conversation": {"messages": asked(long * 3)},
        "list of tools": {"tools": [{"type": "function", "function": {"name": "f", "description": long * 3}}]},
    }.items():
        refused = (await passing.post(**body)).json()["error"]
        assert (refused["code"], refused["param"]) == ("context_length_exceeded", "messages")
        assert name in refused["message"]
        assert "32,000" in refused["message"]
    assert len(passing.model.bodies) == 1
    (view,) = await passing.door.house.cortex.api_tokens.list(passing.door.house.admin)
    assert (view.spent.tokens, view.spent.held_tokens) == (18, 0)


async def test_the_answer_is_as_long_as_the_request_allows(passing: PlainDoor) -> None:
    passing.model.answers.append([{"content": "cut", "finish": "length"}])
    choice = (await passing.post(max_completion_tokens=5, max_tokens=None)).json()["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("cut", "length")
    await passing.post(max_tokens=7)
    await passing.post(max_tokens=-1)
    limits = [body.get("max_tokens") or body.get("max_completion_tokens") for body in passing.model.bodies]
    assert limits[:2] == [5, 7]
    assert limits[2] != -1


TUNING = {
    "temperature": 0.5,
    "top_p": 0.9,
    "seed": 7,
    "presence_penalty": 0.1,
    "frequency_penalty": 0.2,
    "logit_bias": {"5": 1.0},
    "reasoning_effort": "low",
    "top_k": 5,
    "stop": ["END"],
    "response_format": PERSON,
}


async def test_what_tunes_the_answer_goes_along(passing: PlainDoor) -> None:
    passing.model.say('{"age": 5}')
    assert (await passing.post(**TUNING)).status_code == 200
    sent = passing.model.bodies[0]
    assert {key: sent.get(key) for key in TUNING} == TUNING
    strict = {"type": "function", "function": {"name": "exact", "strict": True}}
    await passing.post(tools=[WEATHER, strict], parallel_tool_calls=False)
    assert passing.model.bodies[1]["parallel_tool_calls"] is False
    assert [tool["function"].get("strict") for tool in passing.model.bodies[1]["tools"]] == [None, True]
    assert not set(TUNING) & set(passing.model.bodies[1])


async def test_a_beginning_of_the_answer_goes_along(passing: PlainDoor) -> None:
    begun = [*asked("count"), {"role": "assistant", "content": "One, two,"}]
    assert (await passing.post(messages=begun)).status_code == 200
    assert passing.model.bodies[0]["messages"][-1] == {"role": "assistant", "content": "One, two,"}


async def test_who_goes_away_ends_the_call_at_once_and_what_came_is_counted(passing: PlainDoor) -> None:
    passing.model.say(*["words "] * 500)
    passing.model.gap_s = 0.05
    body = {"model": "m", "messages": asked("hello"), "stream": True}
    async with passing.http.stream("POST", "/chat/completions", json=body) as answer:
        async for line in answer.aiter_lines():
            if "words" in line:
                break
    async with asyncio.timeout(PATIENCE_S):
        await passing.model.left.wait()
        while True:
            (view,) = await passing.door.house.cortex.api_tokens.list(passing.door.house.admin)
            if view.spent.tokens:
                break
            await asyncio.sleep(0.02)


async def test_an_answer_that_breaks_off_is_not_begun_again_in_a_stream_but_is_in_one_piece(passing: PlainDoor) -> None:
    broken: list[dict[str, Any]] = [{"content": "half"}, {"cut": True}]
    for _ in range(2):
        passing.model.answers.append(broken)
        passing.model.say("whole")
    events = await passing.stream()
    assert words_of(events) == "half"
    assert "cut off" in events[-1]["error"]["message"]
    assert len(passing.model.bodies) == 1
    passing.model.answers.popleft()
    whole = (await passing.post()).json()
    assert whole["choices"][0]["message"]["content"] == "whole"


async def test_the_limits_of_the_token_hold(passing: PlainDoor) -> None:
    poor = passing.door.with_token(await passing.door.token(name="poor", pass_through="1", limit_tokens=1))
    await poor.chat.completions.create(model="m", messages=asked("hello"))
    with pytest.raises(openai.RateLimitError) as spent:
        await poor.chat.completions.create(model="m", messages=asked("hello"))
    assert spent.value.code == "insufficient_quota"
    seldom = passing.door.with_token(await passing.door.token(name="seldom", pass_through="1", per_minute=1))
    await seldom.chat.completions.create(model="m", messages=asked("hello"))
    with pytest.raises(openai.RateLimitError):
        await seldom.chat.completions.create(model="m", messages=asked("hello"))


async def test_what_the_model_server_refuses_is_said(passing: PlainDoor) -> None:
    passing.model.answers.append(refusal(400, "No such thing here."))
    refused = await passing.post()
    assert refused.status_code >= 400
    assert "No such thing here." in refused.json()["error"]["message"]
    for _ in range(2):
        passing.model.answers.append(refusal(429, "Slow down."))
    busy = await passing.post()
    assert (busy.status_code, busy.json()["error"]["code"]) == (429, "rate_limit_exceeded")
    unknown = await passing.post(model="gpt-9")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "model_not_found")


async def test_the_models_are_listed_with_their_windows(passing: PlainDoor) -> None:
    listed = (await passing.http.get("/models")).json()["data"]
    assert [(one["id"], one["context_length"]) for one in listed] == [("cortex", 32_000), ("m", 32_000)]


async def test_a_pass_through_token_reaches_no_tool_of_cortex(passing: PlainDoor) -> None:
    cortex = passing.door.house.cortex
    (view,) = await cortex.api_tokens.list(passing.door.house.admin)
    caller = await cortex.api_tokens.who(passing.client.api_key)
    assert await cortex.program_tools.list(caller) == []
    await cortex.api_tokens.set_pass_through(passing.door.house.admin, view.token.id, is_so=False)
    assert await cortex.program_tools.list(await cortex.api_tokens.who(passing.client.api_key))
    answer = await passing.client.chat.completions.create(model="m", messages=asked("hello"))
    assert answer.choices[0].message.content == "hello"
    assert len(await passing.door.turns()) == 1, "now it is a conversation with Cortex"
    assert "token.mode" in await cortex.runtime.db.repository(AuditRepository).actions()
