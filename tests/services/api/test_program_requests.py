"""What clients send that is more than words, where Cortex itself answers: in a conversation, with its own tools."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cortex.storage.documents import DocumentsRepository
from tests.program_door import PlainDoor, asked, drawn, plain_door, words_of
from tests.scripted_server import ScriptedServer, rule

AGE: Any = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
FORM = {"type": "json_schema", "json_schema": {"name": "person", "schema": AGE}}
DISCOVER = {"id": "c1", "type": "function", "function": {"name": "tools_discover", "arguments": '{"query":"lists"}'}}


@pytest.fixture
async def plain(tmp_path: Path) -> AsyncIterator[PlainDoor]:
    async with plain_door(tmp_path / "home") as made:
        yield made


def system(text: str) -> list[Any]:
    return [{"role": "system", "content": text}, *asked("hello")]


async def test_a_long_system_prompt_is_taken_up_to_the_models_window_and_named_beyond(plain: PlainDoor) -> None:
    long = await plain.post(messages=system("Be kind. " * 7_000))  # 63,000 characters
    assert (long.status_code, long.json()["choices"][0]["message"]["content"]) == (200, "hello")
    assert "Be kind. Be kind." in json.dumps(plain.model.bodies[0]["messages"])
    for name, messages in {
        "system prompt": system("Be kind. " * 30_000),
        "last message": asked("x y " * 30_000),
    }.items():
        refused = (await plain.post(messages=messages)).json()["error"]
        assert (refused["code"], refused["param"]) == ("context_length_exceeded", "messages")
        assert f"The {name} has about" in refused["message"]
        assert "32,000" in refused["message"]
    assert len(await plain.door.turns()) == 1


async def test_stop_sequences_hold_and_end_the_turn(plain: PlainDoor) -> None:
    plain.model.say("one ", "ST", "OP two", *[" three"] * 20)
    plain.model.gap_s = 0.05
    events = await plain.stream(stop=["STOP"])
    assert (words_of(events), events[-1]["choices"][0]["finish_reason"]) == ("one ", "stop")
    assert (await plain.door.ended()).state in ("stopped", "done")
    plain.model.gap_s = 0.0
    plain.model.say("one ST")
    assert (await plain.post(stop="STOP")).json()["choices"][0]["message"]["content"] == "one ST"


async def test_what_tunes_the_answer_reaches_the_model_of_the_turn(plain: PlainDoor) -> None:
    plain.model.answers.append([{"content": "cut", "finish": "length"}])
    tuning = {"temperature": 0.25, "seed": 3, "top_p": 0.5}
    choice = (await plain.post(max_tokens=9, **tuning)).json()["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("cut", "length")
    (body,) = plain.model.bodies
    assert {key: body.get(key) for key in tuning} == tuning
    assert 9 in (body.get("max_tokens"), body.get("max_completion_tokens"))
    await plain.post()
    assert not set(tuning) & set(plain.model.bodies[1])


async def test_json_is_asked_for_in_words_checked_and_told_whole_behind_the_work(plain: PlainDoor) -> None:
    plain.model.answers.append([{"content": "Let me look."}, {"tool_calls": [{"index": 0, **DISCOVER}]}])
    plain.model.say("```json\n", '{"age": 5}', "\n```")
    events = await plain.stream(response_format=FORM)
    assert words_of(events) == '{"age": 5}'
    assert '"required":["age"]' in plain.model.bodies[0]["messages"][-1]["content"]
    for wrong in ('{"age": "five"}', "five", "[5]"):
        plain.model.say(wrong)
        refused = await plain.post(response_format=FORM)
        assert (refused.status_code, refused.json()["error"]["param"]) == (502, "response_format")
    plain.model.say('{"any": 1}')
    whole = await plain.post(response_format={"type": "json_object"})
    assert whole.json()["choices"][0]["message"]["content"] == '{"any": 1}'


async def test_an_answer_that_is_begun_goes_on_there(plain: PlainDoor) -> None:
    begun = [*asked("count"), {"role": "assistant", "content": "One, two,"}]
    assert (await plain.post(messages=begun)).status_code == 200
    told = plain.model.bodies[0]["messages"][-1]
    assert told["role"] == "user"
    assert told["content"].index("count") < told["content"].index("One, two,")


async def test_a_history_of_tools_is_the_programs_own_and_passed_through(plain: PlainDoor) -> None:
    call = {"id": "call_a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    history = [*asked("go"), {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "call_a"}]
    assert (await plain.post(messages=history)).json()["choices"][0]["message"]["content"] == "hello"
    assert [one["role"] for one in plain.model.bodies[0]["messages"]] == ["user", "assistant", "tool"]
    assert await plain.door.turns() == []


async def test_pictures_are_kept_with_the_turn_and_shown_to_the_model(plain: PlainDoor) -> None:
    def shown(colour: str, words: str) -> dict[str, Any]:
        parts = [{"type": "text", "text": words}, {"type": "image_url", "image_url": {"url": drawn(colour)}}]
        return {"role": "user", "content": parts}

    assert (await plain.post(messages=[shown("red", "what is it?")])).status_code == 200
    sent = plain.model.bodies[0]["messages"][-1]["content"]
    assert [part["type"] for part in sent].count("image_url") == 1
    (turn,) = await plain.door.turns()
    assert [one.media_type for one in turn.attachments] == ["image/png"]
    answer = {"role": "assistant", "content": "hello"}
    await plain.post(messages=[shown("red", "what is it?"), answer, *asked("and now?")])
    assert len({one.conversation_id for one in await plain.door.turns()}) == 1, "it goes on, the picture is there"
    strange = [shown("blue", "what was it?"), {"role": "assistant", "content": "A cat."}, *asked("sure?")]
    await plain.post(messages=strange)
    (new,) = [one for one in await plain.door.turns() if one.text == "sure?"]
    assert len(new.attachments) == 1, "what was shown before comes along"
    before = len(await documents(plain))
    broken = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}
    refused = await plain.post(messages=[broken])
    assert refused.json()["error"]["code"] == "invalid_image_url"
    await plain.door.house.cortex.stop_all.stop(plain.door.house.admin, plain.door.house.admin)
    assert (await plain.post(messages=[shown("green", "x")])).status_code == 503
    assert len(await documents(plain)) == before, "what was refused leaves no file"


async def documents(plain: PlainDoor) -> Any:
    house = plain.door.house
    return await house.cortex.runtime.db.repository(DocumentsRepository, house.admin.id).list()


async def test_reasoning_goes_back_with_the_results_though_clients_drop_it(tmp_path: Path) -> None:
    async with plain_door(tmp_path / "home", pass_through="1") as plain:
        call = {"id": "call_a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        plain.model.answers.append([{"reasoning_content": "Think."}, {"tool_calls": [{"index": 0, **call}]}])
        tools = [{"type": "function", "function": {"name": "look"}}]
        whole = (await plain.post(tools=tools)).json()["choices"][0]["message"]
        assert whole["reasoning_content"] == "Think."
        kept = {key: whole[key] for key in ("role", "content", "tool_calls")}
        history = [*asked("hello"), kept, {"role": "tool", "tool_call_id": "call_a", "content": "sun"}]
        await plain.post(tools=tools, messages=history)
        assert plain.model.bodies[1]["messages"][1]["reasoning_content"] == "Think."
        other = [*asked("hello"), {**kept, "tool_calls": [{**call, "id": "call_b"}]}]
        await plain.post(tools=tools, messages=[*other, {"role": "tool", "tool_call_id": "call_b", "content": "sun"}])
        assert "reasoning_content" not in plain.model.bodies[2]["messages"][1]


async def test_what_anthropics_api_lacks_is_asked_for_in_words_and_by_stand_ins(
    tmp_path: Path, scripted: ScriptedServer
) -> None:
    async with plain_door(tmp_path / "home", pass_through="1") as plain:
        house = plain.door.house
        form = {"name": "claude", "provider": "anthropic", "model": "claude-x", "base_url": scripted.origin}
        await house.cortex.models.save(house.admin, {**form, "api_key": "test-key"})
        scripted.rules = [rule("age", '{"age": 5}'), rule("sun", "It is sunny.")]
        whole = await plain.post(model="claude", messages=asked("her age?"), response_format=FORM, stop=["END", "\n\n"])
        assert whole.json()["choices"][0]["message"]["content"] == '{"age": 5}'
        sent = scripted.log[0].body
        assert '"required":["age"]' in sent["system"][0]["text"]
        assert sent["stop_sequences"] == ["END"]
        call = {"id": "call_a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        history = [*asked("go"), {"role": "assistant", "tool_calls": [call]}]
        history.append({"role": "tool", "tool_call_id": "call_a", "content": "sun"})
        told = (await plain.post(model="claude", messages=history)).json()
        assert told["choices"][0]["message"]["content"], told
        sent = scripted.log[1].body
        assert ([tool["name"] for tool in sent["tools"]], sent["tool_choice"]) == (["look"], {"type": "none"})
        assert scripted.problems == []
