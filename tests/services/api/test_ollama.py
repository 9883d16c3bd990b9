"""Ollama's API as its clients speak it: lines of JSON, calls without ids, pictures, formats, options, and who asks."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from cortex.base.errors import UserError
from cortex.services.api.ollama_requests import read_chat, read_generate
from tests.patience import PATIENCE_S
from tests.program_door import Door, program_door
from tests.scripted_server import Fault, Say, ScriptedServer, Use, rule

MILK = Use("task_create", {"title": "milk", "list_name": "shopping"}, is_blind=True)
SHELL = Use("shell_exec", {"command": "df -h"}, is_blind=True)
WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CALLS = Say(calls=(Use("get_weather", {"city": "Rome"}), Use("get_weather", {"city": "Oslo"})))


@pytest.fixture
async def door(tmp_path: Path, scripted: ScriptedServer) -> AsyncIterator[Door]:
    scripted.rules = [
        rule("milk", MILK, "Added milk."),
        rule("weather", CALLS, "It is sunny."),
        rule("fetch it", SHELL, "I could not."),
    ]
    async with program_door(tmp_path / "home", scripted) as opened:
        yield opened


def asked(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "cortex", "messages": [{"role": "user", "content": text}], **more}


def lines(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    return [json.loads(line) for line in answer.text.splitlines()]


async def test_a_chat_streams_lines_and_ends_with_what_it_took(door: Door) -> None:
    http = await door.http()
    got = lines(await http.post("/api/chat", json=asked("put milk on my list")))
    assert "".join(one["message"]["content"] for one in got) == "Added milk."
    assert [one["done"] for one in got] == [*[False] * (len(got) - 1), True]
    last = got[-1]
    assert (last["done_reason"], last["model"], last["created_at"][-1]) == ("stop", "cortex", "Z")
    assert min(last["prompt_eval_count"], last["eval_count"], last["total_duration"]) > 0
    (task,) = await door.house.cortex.tasks.list(door.house.admin)
    assert task.title == "milk"


async def test_one_piece_where_no_stream_is_wanted(door: Door, scripted: ScriptedServer) -> None:
    http = await door.http()
    answer = (await http.post("/api/chat", json=asked("put milk on my list", stream=False))).json()
    assert (answer["message"], answer["done"]) == ({"role": "assistant", "content": "Added milk."}, True)
    said = {"model": "m", "prompt": "put milk on my list", "system": "Be brief.", "stream": False}
    written = (await http.post("/api/generate", json=said)).json()
    assert (written["response"], written["done_reason"]) == ("Added milk.", "stop")
    assert {turn.text for turn in await door.turns()} == {"put milk on my list"}
    assert "Be brief." in json.dumps(scripted.log[-1].body["messages"])


async def test_calls_are_objects_and_results_find_theirs_without_an_id(door: Door, scripted: ScriptedServer) -> None:
    http = await door.http()
    first = lines(await http.post("/api/chat", json=asked("how is the weather?", tools=[WEATHER])))
    calls = next(one["message"]["tool_calls"] for one in first if "tool_calls" in one["message"])
    assert [call["function"]["arguments"] for call in calls] == [{"city": "Rome"}, {"city": "Oslo"}]
    assert (first[-1]["done_reason"], first[-1]["message"]["content"]) == ("stop", "")
    bare = [{"function": {"name": one["function"]["name"], "arguments": one["function"]["arguments"]}} for one in calls]
    body = asked("how is the weather?", tools=[WEATHER], model="m:latest")
    body["messages"] += [
        {"role": "assistant", "content": "", "tool_calls": bare},
        {"role": "tool", "tool_name": "get_weather", "content": "sun"},
        {"role": "tool", "content": "rain"},
    ]
    assert (
        "".join(one["message"]["content"] for one in lines(await http.post("/api/chat", json=body))) == "It is sunny."
    )
    sent = scripted.log[-1].body["messages"]
    called = [call["id"] for call in sent[-3]["tool_calls"]]
    assert len(set(called)) == 2
    assert [(one["tool_call_id"], one["content"]) for one in sent[-2:]] == [(called[0], "sun"), (called[1], "rain")]
    assert scripted.problems == []


async def test_models_are_listed_and_shown(door: Door) -> None:
    http = await door.http()
    names = [one["name"] for one in (await http.get("/api/tags")).json()["models"]]
    assert names == ["cortex", "m"]
    shown = (await http.post("/api/show", json={"model": "m"})).json()
    assert shown["model_info"]["cortex.context_length"] == 128_000
    assert "tools" in shown["capabilities"]
    assert (await http.post("/api/show", json={"name": "cortex:latest"})).status_code == 200
    unknown = await http.post("/api/show", json={"model": "llama9"})
    assert (unknown.status_code, "llama9" in unknown.json()["error"]) == (404, True)
    assert (await http.get("/api/ps")).json() == {"models": []}
    assert (await http.get("/api/version")).json()["version"].count(".") == 2
    assert isinstance((await http.post("/api/pull", json={"model": "x"})).json()["error"], str)
    loaded = (await http.post("/api/chat", json={"model": "m", "messages": []})).json()
    assert (loaded["done"], loaded["done_reason"]) == (True, "load")


async def test_the_token_comes_as_a_header_or_as_the_password_of_the_address(door: Door) -> None:
    token = await door.token()
    async with httpx.AsyncClient(base_url=door.origin, timeout=PATIENCE_S) as http:
        assert (await http.get("/api/tags", auth=("ollama", token))).status_code == 200
        assert (await http.get("/v1/models", auth=("ollama", token))).status_code == 401
        for header in ("", "Basic", "Basic !", "Basic eA==", "Bearer cx-wrong", f"Token {token}"):
            refused = await http.get("/api/tags", headers={"Authorization": header})
            assert (refused.status_code, type(refused.json()["error"])) == (401, str)
        assert (await http.get(f"/api/tags?token={token}")).status_code == 401


async def test_a_failure_is_an_error_with_its_status_or_the_last_line(door: Door, scripted: ScriptedServer) -> None:
    http = await door.http(per_minute=4)
    unknown = await http.post("/api/chat", json=asked("hello", model="llama9"))
    assert (unknown.status_code, "llama9" in unknown.json()["error"]) == (404, True)
    scripted.fail(Fault(kind="status", status=401))
    broken = await http.post("/api/chat", json=asked("hello"))
    assert (broken.status_code, type(broken.json()["error"])) == (502, str)
    scripted.rules = [rule("long", "words " * 40)]
    scripted.fail(Fault(kind="cut", after_bytes=3_000), Fault(kind="cut", after_bytes=3_000))
    got = lines(await http.post("/api/chat", json=asked("long")))
    assert "cut off" in got[-1]["error"]
    assert "words" in got[0]["message"]["content"]
    bad = await http.post("/api/chat", content=b"{")
    assert (bad.status_code, type(bad.json()["error"])) == (400, str)
    poor = await door.http(name="poor", limit_tokens=1)
    await poor.post("/api/chat", json=asked("hello"))
    spent = await poor.post("/api/chat", json=asked("hello", stream=False))
    assert (spent.status_code, type(spent.json()["error"])) == (429, str)


async def test_a_sign_of_life_is_a_piece_without_words(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cortex.services.api.hearing.WORKING_S", 0.05)
    http = await door.http(wait_s=1)
    got = lines(await http.post("/api/chat", json=asked("fetch it")))
    assert [one["message"] for one in got[:2]] == [{"role": "assistant", "content": ""}] * 2
    assert "".join(one["message"]["content"] for one in got) == "I could not."


def chat_of(**body: Any) -> dict[str, Any]:
    chat = read_chat(json.dumps(asked("hi", **body)).encode()).chat
    assert chat is not None
    return chat.model_dump(exclude_none=True)


def test_options_become_the_fields_of_a_chat_completion() -> None:
    assert chat_of(options={"num_predict": 12, "num_ctx": 8192, "temperature": 0.2})["max_tokens"] == 12
    assert chat_of(options={"num_predict": -2})["max_tokens"] == -1
    tuned = chat_of(options={"top_k": 40, "min_p": 0.1, "repeat_penalty": 1.1, "mirostat": 2}, think="low")
    assert (tuned["top_k"], tuned["min_p"], tuned["repeat_penalty"], tuned["reasoning_effort"]) == (40, 0.1, 1.1, "low")
    assert "reasoning_effort" not in chat_of(think=False)
    assert chat_of()["stream"]
    assert not chat_of(stream=False)["stream"]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
    ({"messages": [{"role": "user", "content": "x", "images": ["%%%"]}]}, "base64"),
    ({"format": "xml"}, "JSON schema"),
    ({"options": {"num_predict": "many"}}, "options.num_predict"),
    ({"logprobs": True}, "logprobs"),
    ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "name"),
]


@pytest.mark.parametrize(("body", "words"), REFUSED, ids=[str(n) for n in range(len(REFUSED))])
def test_what_cannot_be_done_is_refused_by_ollama_s_names(body: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as refused:
        read_chat(json.dumps(asked("hi") | body).encode())
    assert words in f"{refused.value.field} {refused.value.message}"


@pytest.mark.parametrize("name", ["suffix", "raw", "template", "context"])
def test_a_prompt_in_the_model_s_own_form_is_refused(name: str) -> None:
    value = {"raw": True, "context": [1, 2]}.get(name, "x")
    with pytest.raises(UserError, match=name):
        read_generate(json.dumps({"model": "m", "prompt": "x", name: value}).encode())


@pytest.mark.parametrize(
    "sent",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
    ],
    ids=lambda sent: " ".join(sent.values()),
)
async def test_a_page_of_another_site_cannot_use_the_password_that_a_browser_keeps(
    door: Door, sent: dict[str, str]
) -> None:
    token = await door.token()
    body = json.dumps(asked("put milk on my list", stream=False))
    async with httpx.AsyncClient(base_url=door.origin, timeout=PATIENCE_S, auth=("x", token)) as http:
        refused = await http.post("/api/chat", content=body, headers={"Content-Type": "text/plain", **sent})
        assert (refused.status_code, "Bearer" in refused.json()["error"]) == (401, True)
        assert (await http.get("/api/tags", headers=sent)).status_code == 401
        assert not await door.turns()
        own = {"Sec-Fetch-Site": "same-origin", "Origin": door.origin}
        assert (await http.get("/api/tags", headers=own)).status_code == 200
    bearer = await door.http()
    assert (await bearer.get("/api/tags", headers=sent)).status_code == 200, "a page has no way to know a token"
