"""The scripted server itself, cross-checked with the vendors' own clients."""

from typing import Any

import anthropic
import openai
import pytest

from tests.patience import PATIENCE_S
from tests.scripted_server import Fault, Say, ScriptedServer, Use, rule

ADD: Any = {
    "type": "function",
    "function": {"name": "task_create", "parameters": {"type": "object", "properties": {"title": {"type": "string"}}}},
}
MILK = rule("milk", Use("task_create", {"title": "milk"}), "Added milk.")


def called(arguments: str) -> dict[str, Any]:
    function = {"name": "task_create", "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"id": "x", "type": "function", "function": function}]}


def client(server: ScriptedServer, **more: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.base_url, api_key="test-key", max_retries=0, timeout=PATIENCE_S, **more)


def test_the_openai_client_reads_a_whole_turn(scripted: ScriptedServer) -> None:
    scripted.rules = [MILK]
    history: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "buy milk"}]
    with client(scripted) as api:
        first = api.chat.completions.create(model="scripted", messages=history, tools=[ADD])
        message = first.choices[0].message
        assert message.tool_calls is not None
        call: Any = message.tool_calls[0]
        assert (call.function.name, call.function.arguments) == ("task_create", '{"title": "milk"}')
        assert first.choices[0].finish_reason == "tool_calls"
        history += [message.to_dict(), {"role": "tool", "tool_call_id": call.id, "content": "Done."}]
        with api.chat.completions.create(
            model="scripted", messages=history, tools=[ADD], stream=True, stream_options={"include_usage": True}
        ) as stream:
            chunks = list(stream)
        assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "Added milk."
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.prompt_tokens > (first.usage.prompt_tokens if first.usage else 0)
        assert [model.id for model in api.models.list()] == ["scripted"]


def test_a_tool_that_was_not_offered_is_asked_for_or_missed(scripted: ScriptedServer) -> None:
    scripted.rules = [MILK]
    discover: Any = {"type": "function", "function": {"name": "tools_discover", "parameters": {"type": "object"}}}
    with client(scripted) as api:
        bare = api.chat.completions.create(model="scripted", messages=[{"role": "user", "content": "buy milk"}])
        asked = api.chat.completions.create(
            model="scripted", messages=[{"role": "user", "content": "buy milk"}], tools=[discover]
        )
    assert "I don't have a tool" in str(bare.choices[0].message.content)
    calls: Any = asked.choices[0].message.tool_calls
    assert calls[0].function.name == "tools_discover"


def test_the_anthropic_client_reads_thinking_text_and_calls(scripted: ScriptedServer) -> None:
    scripted.rules = [rule("milk", Say("On it.", (Use("task_create", {"title": "milk"}),), thinking="Hm, milk."))]
    tool: Any = {"name": "task_create", "input_schema": {"type": "object"}}
    with anthropic.Anthropic(base_url=scripted.origin, api_key="test-key", max_retries=0, timeout=PATIENCE_S) as api:
        asking: Any = {"role": "user", "content": "buy milk"}
        with api.messages.stream(model="scripted", max_tokens=99, messages=[asking], tools=[tool]) as stream:
            message = stream.get_final_message()
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
    assert message.stop_reason == "tool_use"
    assert message.usage.input_tokens > 10


def test_a_repeated_prefix_counts_as_cached(scripted: ScriptedServer) -> None:
    long: Any = [{"role": "system", "content": "word " * 2000}, {"role": "user", "content": "hello"}]
    with client(scripted) as api:
        first = api.chat.completions.create(model="scripted", messages=long)
        again = api.chat.completions.create(model="scripted", messages=long)
    assert first.usage is not None
    assert first.usage.prompt_tokens > 2000
    assert again.usage is not None
    assert again.usage.prompt_tokens_details is not None
    assert (again.usage.prompt_tokens_details.cached_tokens or 0) >= 1920
    assert scripted.cache_breaks() == []


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([{"role": "user", "content": "a"}, {"role": "system", "content": "b"}], "only at the beginning"),
        ([{"role": "user", "content": "a"}, {"role": "tool", "tool_call_id": "x", "content": "b"}], "answers no call"),
        ([{"role": "assistant", "content": "a"}], "must be the user's"),
        ([{"role": "user", "content": ""}], "content must be text"),
        (
            [
                {"role": "user", "content": "a"},
                called("{"),
                {"role": "tool", "tool_call_id": "x", "content": "b"},
            ],
            "a string holding a JSON object",
        ),
        (
            [
                {"role": "user", "content": "a"},
                called("{}"),
                {"role": "user", "content": "b"},
            ],
            "have no answer",
        ),
    ],
    ids=["late system", "answer without call", "assistant first", "empty", "bad arguments", "unanswered call"],
)
def test_a_body_that_a_strict_server_refuses_is_refused(
    scripted: ScriptedServer, messages: list[Any], problem: str
) -> None:
    with client(scripted) as api, pytest.raises(openai.BadRequestError, match=problem):
        api.chat.completions.create(model="scripted", messages=messages, tools=[ADD])
    scripted.log.clear()


def test_faults_come_one_a_request(scripted: ScriptedServer) -> None:
    scripted.fail(Fault(kind="status", status=429, retry_after="7"), Fault(kind="cut", after_bytes=30))
    asking: Any = [{"role": "user", "content": "hello"}]
    with client(scripted) as api:
        with pytest.raises(openai.RateLimitError) as limited:
            api.chat.completions.create(model="scripted", messages=asking)
        assert limited.value.response.headers["retry-after"] == "7"
        with (
            api.chat.completions.create(model="scripted", messages=asking, stream=True) as cut,
            pytest.raises(openai.APIConnectionError),
        ):
            list(cut)
        assert api.chat.completions.create(model="scripted", messages=asking).choices[0].finish_reason == "stop"


def test_it_notices_that_the_client_left(scripted: ScriptedServer) -> None:
    scripted.delay_s = 5
    with client(scripted) as api:
        api.chat.completions.create(model="scripted", messages=[{"role": "user", "content": "a"}], stream=True).close()
    assert scripted.log[0].left.wait(PATIENCE_S)
