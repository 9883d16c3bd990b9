"""What editors send, written after their public sources (read 2026-11-27), through a pass-through token.

Cline: src/core/api/providers/openai.ts, ollama.ts and transform/openai-format.ts. Continue: llms/OpenAI.ts,
llms/Ollama.ts and openaiTypeConverters.ts in core/llm. GitHub Copilot Chat asks Ollama for its version, tags and what a
model can before it offers one.
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.program_door import PlainDoor, drawn, events_of, plain_door, words_of

PROMPT = "You are Cline, a highly skilled software engineer.\n\n" + "TOOL USE. You have access to tools. " * 1_800
READ: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Read a file.",
        "strict": False,
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
            "additionalProperties": False,
        },
    },
}
CALL = {"id": "toolu_01", "type": "function", "function": {"name": "read_file", "arguments": '{"path":"a.py"}'}}
PARTS = [{"type": "text", "text": "<task>\nFix it\n</task>"}, {"type": "text", "text": "<environment_details>\n"}]
STOPS = ["<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "/src/", "#- coding", "```", "\nEND"]


@pytest.fixture
async def passing(tmp_path: Path) -> AsyncIterator[PlainDoor]:
    async with plain_door(tmp_path / "home", pass_through="1") as made:
        yield made


async def test_cline_has_a_long_prompt_parts_and_tools_and_sends_its_calls_back(passing: PlainDoor) -> None:
    assert len(PROMPT) > 60_000
    passing.model.answers.append([{"content": "I read it."}, {"tool_calls": [{"index": 0, **CALL}]}])
    messages: list[Any] = [{"role": "system", "content": PROMPT}, {"role": "user", "content": PARTS}]
    body = {"model": "m", "messages": messages, "temperature": 0, "stream_options": {"include_usage": True}}
    events = await passing.stream(**body, tools=[READ])
    deltas = [one["choices"][0]["delta"] for one in events if one["choices"]]
    (called,) = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert called["function"]["name"] == "read_file"
    assert events[-1]["usage"]["prompt_tokens"] > 0
    messages += [
        {"role": "assistant", "content": "I read it.", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "toolu_01", "content": "print(1)"},
        {"role": "user", "content": [*PARTS, {"type": "image_url", "image_url": {"url": drawn("red")}}]},
    ]
    assert words_of(await passing.stream(**body, tools=[READ])) == "hello"
    sent = passing.model.bodies[-1]
    assert (sent["messages"][0]["content"], sent["temperature"]) == (PROMPT, 0)
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["read_file"]
    assert [one["role"] for one in sent["messages"]] == ["system", "user", "assistant", "tool", "user"]


async def test_cline_speaks_to_ollama_with_a_window_and_nothing_else(passing: PlainDoor) -> None:
    messages = [{"role": "system", "content": PROMPT}, {"role": "user", "content": "Fix it"}]
    body = {"model": "m:latest", "messages": messages, "stream": True, "options": {"num_ctx": 32_768}}
    answer = await passing.http.post("../api/chat", json=body)
    got = [json.loads(line) for line in answer.text.splitlines()]
    assert "".join(one["message"]["content"] for one in got) == "hello"
    assert (got[-1]["prompt_eval_count"], got[-1]["eval_count"]) == (11, 7)


async def test_continue_has_many_stop_words_blanks_for_nothing_and_a_prediction(passing: PlainDoor) -> None:
    picture = {"type": "image_url", "image_url": {"url": drawn("red"), "detail": "auto"}}
    messages: list[Any] = [
        {"role": "user", "content": [{"type": "text", "text": "What is it?"}, picture]},
        {"role": "assistant", "content": " ", "tool_calls": [CALL]},
        {"role": "tool", "content": "print(1)", "tool_call_id": "toolu_01"},
        {"role": "user", "content": "Go on."},
    ]
    passing.model.say("one\n", "EN", "D two")
    prediction = {"type": "content", "content": "print(1)"}
    more = {"max_tokens": 4096, "top_p": None, "stop": STOPS, "prediction": prediction, "tools": [READ]}
    assert words_of(await passing.stream(messages=messages, **more)) == "one"
    (sent,) = passing.model.bodies
    assert sent["stop"] == STOPS[:4], "servers refuse more; the others are met here"
    assert sent["max_tokens"] == 4096


async def test_continue_leaves_the_calls_out_of_what_it_tells_ollama(passing: PlainDoor) -> None:
    picture = drawn("red").partition(",")[2]
    messages: list[Any] = [
        {"role": "user", "content": "What is it?", "images": [picture]},
        {"role": "assistant", "content": ""},
        {"role": "tool", "content": "print(1)"},
    ]
    options = {"temperature": 0.1, "num_predict": 100, "stop": STOPS, "num_ctx": 8192, "mirostat": 0, "num_thread": 4}
    body = {"model": "m", "messages": messages, "options": options, "keep_alive": 1_800, "stream": True}
    answer = await passing.http.post("../api/chat", json=body)
    assert json.loads(answer.text.splitlines()[0])["message"]["content"] == "hello"
    (sent,) = passing.model.bodies
    assert "print(1)" in str(sent["messages"][-1]["content"])
    assert "image_url" in str(sent["messages"][0]["content"])
    assert (sent["temperature"], sent["max_tokens"]) == (0.1, 100)


async def test_copilot_finds_version_models_and_what_they_can(passing: PlainDoor) -> None:
    version = (await passing.http.get("../api/version")).json()["version"]
    assert tuple(map(int, version.split("."))) >= (0, 6, 4)
    listed = (await passing.http.get("../api/tags")).json()["models"]
    shown = (await passing.http.post("../api/show", json={"model": listed[1]["model"]})).json()
    info = shown["model_info"]
    assert info[f"{info['general.architecture']}.context_length"] == 32_000
    assert {"tools", "vision"} <= set(shown["capabilities"])


async def test_a_coding_agent_over_responses_keeps_its_history_itself(passing: PlainDoor) -> None:
    tool = {"type": "function", **READ["function"]}
    items: list[Any] = [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Sandbox: read-only."}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix it"}]},
    ]
    body = {
        "model": "m",
        "instructions": PROMPT,
        "tools": [tool],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "reasoning": {"effort": "medium", "summary": "auto"},
        "store": False,
        "stream": False,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "c1",
        "text": {"verbosity": "low"},
    }
    passing.model.answers.append([{"tool_calls": [{"index": 0, **CALL}]}])
    first = (await passing.http.post("responses", json={**body, "input": items})).json()
    (call,) = first["output"]
    assert (call["type"], call["name"], call["arguments"]) == ("function_call", "read_file", '{"path":"a.py"}')
    shot = [{"type": "input_text", "text": "shot"}, {"type": "input_image", "image_url": drawn("red")}]
    items += [call, {"type": "function_call_output", "call_id": call["call_id"], "output": shot}]
    again = (await passing.http.post("responses", json={**body, "input": items})).json()
    assert again["output"][0]["content"][0]["text"] == "hello"
    sent = passing.model.bodies[-1]["messages"]
    assert sent[0]["content"].startswith(PROMPT)
    assert [one["role"] for one in sent[-3:]] == ["assistant", "tool", "user"]
    assert (sent[-2]["content"], "image_url" in str(sent[-1])) == ("shot", True)
    assert passing.model.bodies[-1]["parallel_tool_calls"] is False


async def test_reasoning_is_an_item_of_its_own_and_a_field_of_ollama_s(passing: PlainDoor) -> None:
    thinks = [{"reasoning_content": "Look "}, {"reasoning_content": "there."}, {"content": "Seen."}]
    passing.model.answers.append(thinks)
    body = {"model": "m", "input": "hi", "stream": True}
    events = events_of((await passing.http.post("responses", json=body)).text)
    kinds = list(dict.fromkeys(one["type"].removeprefix("response.") for one in events))
    assert kinds == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "completed",
    ]
    assert [one["sequence_number"] for one in events] == [*range(len(events))]
    thought, said = events[-1]["response"]["output"]
    assert (thought["type"], thought["summary"][0]["text"]) == ("reasoning", "Look there.")
    assert said["content"][0]["text"] == "Seen."
    assert [one["output_index"] for one in events if one["type"] == "response.output_item.done"] == [0, 1]
    passing.model.answers.append(thinks)
    whole = (await passing.http.post("responses", json={"model": "m", "input": "hi"})).json()
    assert [one["type"] for one in whole["output"]] == ["reasoning", "message"]
    passing.model.answers.append(thinks)
    local = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    got = [json.loads(line) for line in (await passing.http.post("../api/chat", json=local)).text.splitlines()]
    assert "".join(one["message"].get("thinking", "") for one in got) == "Look there."
    assert "".join(one["message"]["content"] for one in got) == "Seen."
