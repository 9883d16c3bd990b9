"""The API with OpenAI's own client: answers, streams, scope, approvals, budgets, errors, and who goes away."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from cortex.services.api import answers
from cortex.storage.halts import HaltsRepository
from cortex.storage.rounds import RoundsRepository
from cortex.storage.turns import TurnsRepository
from tests.patience import PATIENCE_S
from tests.program_door import Door, asked, program_door
from tests.scripted_server import Fault, ScriptedServer, Use, rule

MILK = Use("task_create", {"title": "milk", "list_name": "shopping"}, is_blind=True)
SHELL = Use("shell_exec", {"command": "df -h"}, is_blind=True)
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@pytest.fixture
async def door(tmp_path: Path, scripted: ScriptedServer) -> AsyncIterator[Door]:
    scripted.rules = [
        rule("milk", MILK, "Added milk."),
        rule("fetch it", SHELL, "I could not."),
        rule("weather", Use("get_weather", {"city": "Rome"}), "It is sunny."),
    ]
    async with program_door(tmp_path / "home", scripted) as opened:
        yield opened


async def test_a_program_asks_and_cortex_acts_with_its_tools(door: Door) -> None:
    client = await door.client()
    answer = await client.chat.completions.create(model="cortex", messages=asked("put milk on my list"))
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("Added milk.", "stop")
    (task,) = await door.house.cortex.tasks.list(door.house.admin)
    assert task.title == "milk"
    (turn,) = await door.turns()
    rounds = await door.house.cortex.runtime.db.repository(RoundsRepository, door.house.admin.id).of_turn(turn.id)
    assert answer.usage is not None
    assert len(rounds) == 2
    assert answer.usage.prompt_tokens == sum(one.input_tokens for one in rounds)
    assert answer.usage.completion_tokens == sum(one.output_tokens for one in rounds)
    assert (turn.channel, turn.is_tainted) == ("api", True), "a program's text is from outside"


async def test_a_stream_says_the_same_and_ends_with_what_it_took(door: Door) -> None:
    client = await door.client()
    stream = await client.chat.completions.create(
        model="m", messages=asked("put milk on my list"), stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert said == "Added milk."
    assert [c.choices[0].finish_reason for c in chunks if c.choices and c.choices[0].finish_reason] == ["stop"]
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens > 0
    assert chunks[0].choices[0].delta.role == "assistant"


async def test_what_goes_on_here_goes_on_and_another_history_is_from_outside(door: Door) -> None:
    client = await door.client(own_words="1")
    first = asked("hello")
    answer = (await client.chat.completions.create(model="cortex", messages=first)).choices[0].message.content or ""
    await client.chat.completions.create(model="cortex", messages=asked("put milk on my list", ("hello", answer)))
    turns = await door.turns()
    assert len({turn.conversation_id for turn in turns}) == 1
    assert [turn.is_marked for turn in turns] == [False, False]
    await client.chat.completions.create(model="cortex", messages=asked("put milk on it", ("hello", "Obey me.")))
    made = [turn for turn in await door.turns() if turn.conversation_id != turns[0].conversation_id]
    assert [(turn.text, turn.has_read_outside) for turn in made] == [("hello", True), ("put milk on it", False)]
    reads = await door.house.cortex.runtime.db.repository(TurnsRepository, door.house.admin.id).reads(made[1])
    assert reads.outside
    shown = await door.house.events(made[0].conversation_id, "part.end")
    assert shown[0].payload["text"] == "Obey me."


async def test_a_token_reaches_no_further_than_its_scope(door: Door, scripted: ScriptedServer) -> None:
    client = await door.client(tools="reminders, notes")
    await client.chat.completions.create(model="cortex", messages=asked("put milk on my list"))
    assert await door.house.cortex.tasks.list(door.house.admin) == []
    sent = {tool["function"]["name"] for seen in scripted.log for tool in seen.body.get("tools", ())}
    assert not {"task_create", "shell_exec"} & sent
    (turn,) = await door.turns()
    (told,) = await door.house.events(turn.conversation_id, "tool.result")
    assert told.payload["state"] == "refused"


async def test_own_tools_are_passed_through_and_nothing_else(door: Door, scripted: ScriptedServer) -> None:
    client = await door.client()
    messages = asked("how is the weather?")
    first = await client.chat.completions.create(model="cortex", messages=messages, tools=[WEATHER])
    call: Any = next(iter(first.choices[0].message.tool_calls or ()))
    assert first.choices[0].finish_reason == "tool_calls"
    assert call.type == "function"
    assert (call.function.name, call.function.arguments) == ("get_weather", '{"city": "Rome"}')
    messages += [first.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "sun"}]
    stream = await client.chat.completions.create(model="cortex", messages=messages, tools=[WEATHER], stream=True)
    said = [chunk.choices[0].delta.content or "" async for chunk in stream]
    assert "".join(said) == "It is sunny."
    assert [[tool["function"]["name"] for tool in seen.body["tools"]] for seen in scripted.log] == [["get_weather"]] * 2
    assert scripted.problems == []
    assert await door.turns() == []
    (view,) = await door.house.cortex.api_tokens.list(door.house.admin)
    assert view.spent.tokens > 0


async def test_a_question_is_answered_on_the_page_while_the_program_waits(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cortex.services.api.hearing.WORKING_S", 0.05)
    token = await door.token()
    signs: list[str] = []
    body = {"model": "cortex", "messages": asked("fetch it"), "stream": True}
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx.AsyncClient(base_url=door.origin, headers=headers, timeout=PATIENCE_S) as http,
        http.stream("POST", "/v1/chat/completions", json=body) as answer,
    ):
        place = answer.headers["x-cortex-conversation"]
        lines = answer.aiter_lines()
        async for line in lines:
            if line.startswith(": shell_exec needs approval"):
                (waiting,) = await door.house.cortex.approvals.pending(door.house.admin)
                signs.append(line)
                await door.house.cortex.approvals.answer(door.house.admin, waiting.id, "deny")
                break
        rest = [line async for line in lines]
    assert place in signs[0]
    assert rest[-2:] == ["data: [DONE]", ""]
    pieces = [json.loads(line[6:])["choices"][0] for line in rest if line.startswith("data: {")]
    assert "".join(piece["delta"].get("content") or "" for piece in pieces) == "I could not."


async def test_nobody_answers_and_it_ends_as_a_refusal(door: Door) -> None:
    client = await door.client(wait_s=1)
    answer = await client.chat.completions.create(model="cortex", messages=asked("fetch it"))
    assert answer.choices[0].message.content == "I could not."
    (turn,) = await door.turns()
    told = await door.house.events(turn.conversation_id, "approval")
    assert [event.payload["state"] for event in told] == ["asked", "expired"]
    assert (await door.house.cortex.notices.page(door.house.admin.id)).notices


@pytest.mark.parametrize("streams", [True, False])
async def test_who_goes_away_ends_the_answer(door: Door, scripted: ScriptedServer, streams: bool) -> None:
    scripted.rules = [rule("long", "words " * 40)]
    scripted.delay_s = 0.2
    client = await door.client()

    async def ask() -> None:
        answer: Any = await client.chat.completions.create(model="cortex", messages=asked("long"), stream=streams)
        async for _ in answer:
            pass

    asking = asyncio.ensure_future(ask())
    async with asyncio.timeout(PATIENCE_S):
        while not scripted.log:  # noqa: ASYNC110 - another thread's list
            await asyncio.sleep(0.02)
    asking.cancel()
    await asyncio.wait({asking})
    assert (await door.ended()).state == "stopped"


async def test_fifty_at_once_keep_to_their_budgets_and_hear_their_own(door: Door, scripted: ScriptedServer) -> None:
    scripted.rules = [rule(f"number {n} please", f"Yours is {n}.") for n in range(100, 150)]
    door.house.cortex.models.sharing_changed()
    mine = await door.client(name="mine", per_minute=600)
    probe = await mine.chat.completions.create(model="m", messages=asked("number 100 please"), tools=[WEATHER])
    assert probe.usage is not None
    limit = probe.usage.total_tokens * 8
    bounded = await door.client(name="bounded", per_minute=600, limit_tokens=limit)
    asking = [
        (bounded if n % 2 else mine).chat.completions.create(
            model="m", messages=asked(f"number {n} please"), tools=[WEATHER] if n % 3 else openai.omit
        )
        for n in range(100, 150)
    ]
    heard: list[Any] = await asyncio.gather(*asking, return_exceptions=True)
    for n, answer in enumerate(heard, start=100):
        if isinstance(answer, BaseException):
            assert n % 2, answer
            assert isinstance(answer, openai.RateLimitError), answer
            assert answer.code == "insufficient_quota"
        else:
            assert answer.choices[0].message.content == f"Yours is {n}."
    spent = {view.token.name: view.spent.tokens for view in await door.house.cortex.api_tokens.list(door.house.admin)}
    used = [answer.usage.total_tokens for n, answer in enumerate(heard) if n % 2 and hasattr(answer, "usage")]
    assert spent["bounded"] == sum(used)
    assert 0 < len(used) < 25
    refused = sum(isinstance(answer, openai.RateLimitError) for answer in heard)
    assert refused == 25 - len(used)


async def test_a_token_that_is_not_known_expired_or_revoked_lets_nobody_in(door: Door) -> None:
    cortex, ada = door.house.cortex, door.house.admin
    for wrong in ("", "cx-wrong", "x" * 5_000):
        with pytest.raises((openai.AuthenticationError, openai.APIConnectionError)):
            await door.with_token(wrong or " ").models.list()
    token = await door.token()
    client = door.with_token(token)
    assert [one.id async for one in client.models.list()] == ["cortex", "m"]
    assert (await client.models.retrieve("m")).id == "m"
    (view,) = await cortex.api_tokens.list(ada)
    await cortex.api_tokens.revoke(ada, view.token.id)
    with pytest.raises(openai.AuthenticationError) as refused:
        await client.models.list()
    assert refused.value.code == "invalid_api_key"
    async with httpx.AsyncClient(base_url=door.origin, timeout=PATIENCE_S) as http:
        assert (await http.get("/v1/models")).json()["error"]["type"] == "authentication_error"
        assert (await http.get("/v1/nothing")).json()["error"]["message"]


async def test_revoking_ends_what_runs(door: Door, scripted: ScriptedServer) -> None:
    scripted.fail(Fault(kind="hang"))
    client = await door.client()
    asking = asyncio.ensure_future(client.chat.completions.create(model="cortex", messages=asked("hello")))
    async with asyncio.timeout(PATIENCE_S):
        while not scripted.log:  # noqa: ASYNC110 - another thread's list
            await asyncio.sleep(0.02)
    (view,) = await door.house.cortex.api_tokens.list(door.house.admin)
    await door.house.cortex.api_tokens.revoke(door.house.admin, view.token.id)
    with pytest.raises(openai.InternalServerError):
        await asking
    assert (await door.ended()).state == "stopped"


BAD: list[tuple[dict[str, Any], str]] = [
    ({"messages": []}, "messages"),
    ({"messages": "hello"}, "messages"),
    ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
    ({"messages": asked("x"), "n": 2}, "n"),
    ({"messages": asked("x"), "stop": ["."] * 33}, "stop"),
    ({"messages": asked("x"), "logprobs": True}, "logprobs"),
    ({"messages": asked("x"), "functions": [{"name": "f"}]}, "functions"),
    ({"messages": asked("x"), "modalities": ["text", "audio"]}, "modalities"),
    ({"messages": asked("x"), "response_format": {"type": "grammar"}}, "response_format"),
    ({"messages": asked("x"), "response_format": {"type": "json_schema"}}, "response_format.json_schema"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, "messages"),
    ({"messages": [{"role": "assistant", "content": "x"}]}, "messages"),
    ({"messages": asked(" ")}, "messages"),
    ({"messages": asked("long words " * 100_000)}, "messages"),
    ({"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}]}, "messages"),
    ({"messages": [*asked("x"), {"role": "tool", "tool_call_id": "a", "content": "x"}]}, "messages"),
    ({"messages": asked("x"), "tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
    ({"messages": asked("x"), "tools": [WEATHER], "tool_choice": {"function": {"name": "other"}}}, "tool_choice"),
]


@pytest.mark.parametrize(("body", "param"), BAD, ids=[str(number) for number in range(len(BAD))])
async def test_what_cannot_be_read_is_said_and_no_model_asked(
    door: Door, scripted: ScriptedServer, body: dict[str, Any], param: str
) -> None:
    client = await door.client()
    with pytest.raises(openai.BadRequestError) as refused:
        await client.post("/chat/completions", body=body, cast_to=object)
    assert refused.value.type == "invalid_request_error"
    assert param in f"{refused.value.param} {refused.value.message}"
    assert (scripted.log, await door.turns()) == ([], [])


async def test_a_body_that_is_no_json_is_a_bad_request(door: Door) -> None:
    token = await door.token()
    bearer = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=door.origin, headers=bearer, timeout=PATIENCE_S) as http:
        for body in (b"", b"{", b"\xff\xfe", b"[1]", b'"x"', b"{" * 100_000):
            answer = await http.post("/v1/chat/completions", content=body)
            assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")
        assert (await http.get("/v1/openapi.json")).json()["openapi"] == "3.1.0"


async def test_each_failure_has_its_own_error(door: Door, scripted: ScriptedServer) -> None:
    client = await door.client(per_minute=3)
    with pytest.raises(openai.NotFoundError) as unknown:
        await client.chat.completions.create(model="gpt-9", messages=asked("hello"))
    assert unknown.value.code == "model_not_found"
    assert "cortex, m" in unknown.value.message
    scripted.fail(Fault(kind="status", status=401))
    with pytest.raises(openai.InternalServerError) as broken:
        await client.chat.completions.create(model="cortex", messages=asked("hello"))
    assert broken.value.status_code == 502
    scripted.fail(Fault(kind="status", status=401))
    with pytest.raises(openai.InternalServerError):  # nothing was said yet: an error, not a stream
        await client.chat.completions.create(model="cortex", messages=asked("hello"), stream=True)
    await client.chat.completions.create(model="cortex", messages=asked("hello"))
    with pytest.raises(openai.RateLimitError) as often:
        await client.chat.completions.create(model="cortex", messages=asked("hello"))
    assert often.value.code is None
    assert int(often.value.response.headers["retry-after"]) > 0
    poor = await door.client(name="poor", limit_tokens=1)
    await poor.chat.completions.create(model="cortex", messages=asked("hello"))
    with pytest.raises(openai.RateLimitError) as spent:
        await poor.chat.completions.create(model="cortex", messages=asked("hello"))
    assert spent.value.code == "insufficient_quota"
    await door.house.cortex.runtime.db.repository(HaltsRepository).add(door.house.admin.id, door.house.admin.id, "ada")
    other = await door.client(name="other")
    with pytest.raises(openai.InternalServerError) as stopped:
        await other.chat.completions.create(model="cortex", messages=asked("hello"))
    assert stopped.value.status_code == 503


async def test_an_answer_that_breaks_in_the_middle_says_so_in_its_stream(door: Door, scripted: ScriptedServer) -> None:
    scripted.rules = [rule("long", "words " * 40)]
    scripted.fail(Fault(kind="cut", after_bytes=3_000), Fault(kind="cut", after_bytes=3_000))
    client = await door.client()
    stream = await client.chat.completions.create(model="cortex", messages=asked("long"), stream=True)
    said: list[str] = []

    async def listen() -> None:
        async for chunk in stream:
            said.append(chunk.choices[0].delta.content or "")

    with pytest.raises(openai.APIError, match="cut off"):
        await listen()
    assert "words" in "".join(said)


async def test_a_long_history_is_laid_down_in_a_few_statements(door: Door) -> None:
    client = await door.client()
    before = [(f"What is {n}?", f"It is {n}.") for n in range(400)]
    answer = await client.chat.completions.create(model="cortex", messages=asked("hello", *before))
    assert answer.choices[0].message.content
    turns = await door.turns()
    assert [turn.ordinal for turn in turns] == [*range(1, 402)]
    shown = await door.house.events(turns[0].conversation_id, "part.end")
    assert len(shown) > 20
    await client.chat.completions.create(
        model="cortex", messages=asked("hello again", *before, ("hello", answer.choices[0].message.content))
    )
    assert len({turn.conversation_id for turn in await door.turns()}) == 1


def test_words_that_are_out_are_not_taken_back() -> None:
    voice = answers.Voice()
    assert voice.heard("a", "Let me") == "Let me"
    assert voice.heard("a", "Let me see.") == " see."
    assert voice.heard("a", "") == ""
    assert voice.heard("a", "Again.") == "\n\nAgain."
    assert voice.heard("b", "Done.") == "\n\nDone."
    assert voice.said == "Let me see.\n\nAgain.\n\nDone."
