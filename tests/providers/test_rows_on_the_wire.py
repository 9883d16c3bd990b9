"""What a server's row says is what goes over the wire to it, and what came from another model is made whole for it."""

import re
from typing import Any

import pytest

from cortex.base.address import named
from cortex.base.messages import Message, Opaque, Thinking, ToolCall, ToolResult, ToolSchema, assistant, results, user
from cortex.base.model import ModelEntry
from cortex.ports.loop import Request, StreamEnd
from cortex.providers import ProviderContext, chat, connect
from cortex.providers.servers import by_id
from cortex.providers.terms import Terms
from tests import model_lists
from tests.model_lists import ModelLists
from tests.patience import PATIENCE_S

ADD = ToolSchema(name="task_create", description="Add a task.", parameters={"type": "object", "properties": {}})
CALL = ToolCall(id="call_abc-1", name="task_create", arguments="{}")
OTHER_MODELS = (
    user("buy milk"),
    Message(speaker="assistant", parts=(CALL, ToolCall(id="call_abc-2", name="task_create", arguments="{}"))),
    results(*(ToolResult(call_id=f"call_abc-{at}", name="task_create", text="Done.") for at in (1, 2))),
    assistant("Added."),
    user("and bread"),
)


async def sent(
    engine: str, *messages: Message, path: str = "/v1", model: str = "some-model", **more: Any
) -> tuple[dict[str, Any], ModelLists]:
    """The body of a request to this server, which a double answers, and the double."""
    with ModelLists(pages={f"POST {path}/chat/completions {model}": (200, model_lists.SPOKEN)}) as double:
        entry = ModelEntry(
            name="m",
            provider="openai",
            model=model,
            base_url=f"{double.origin}{path.partition('?')[0]}",
            engine=engine,
            streams=False,
            timeout_s=PATIENCE_S,
        )
        policy = named(("127.0.0.1", int(double.origin.rpartition(":")[2])))
        provider = connect(entry, "sk-1", ProviderContext(policy=policy, connect_s=PATIENCE_S))
        request = Request(system="You are Cortex.", messages=messages or OTHER_MODELS, tools=(ADD,), **more)
        done = [item async for item in provider.stream(request) if isinstance(item, StreamEnd)]
        await provider.close()
        assert done[0].message.text == "Hello there."
        return double.bodies[-1], double


def answers(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [message for message in body["messages"] if message["role"] == "assistant"]


async def test_deepseek_finds_reasoning_in_each_answer_also_of_a_model_that_told_none() -> None:
    body, _ = await sent("deepseek")
    assert [one["reasoning_content"] for one in answers(body)] == [" ", " "], "an empty one is refused"
    without, _ = await sent("deepseek", without=frozenset({"thinking"}))
    assert all("reasoning_content" not in one for one in answers(without))
    plain, _ = await sent("groq")
    assert all("reasoning_content" not in one for one in answers(plain)), "who refuses the field gets none"


async def test_what_deepseek_thought_goes_back_as_it_came() -> None:
    thought = Thinking(text="Hm.", opaque={"provider_name": "127.0.0.1", "fields": {"reasoning_content": "Hm."}})
    own = Message(speaker="assistant", parts=(thought, CALL))
    told = results(ToolResult(call_id=CALL.id, name=CALL.name, text="Done."))
    body, _ = await sent("deepseek", user("buy milk"), own, told)
    assert answers(body)[0]["reasoning_content"] == "Hm."


async def test_a_call_is_forced_only_where_the_server_takes_that() -> None:
    for engine, choice in (("deepseek", "auto"), ("openai", "required")):
        body, _ = await sent(engine, tool_choice="required")
        assert body["tool_choice"] == choice
    body, _ = await sent("deepseek", tool_choice="none")
    assert body["tool_choice"] == "none"


@pytest.mark.parametrize(("model", "stands"), [("gemini-3-pro", True), ("gemini-2.5-flash", False)])
async def test_google_finds_a_signature_in_the_first_of_another_models_calls(model: str, stands: bool) -> None:
    body, _ = await sent("google", model=model)
    first, second = answers(body)[0]["tool_calls"]
    stand_in = {"google": {"thought_signature": "skip_thought_signature_validator"}}
    assert first.get("extra_content") == (stand_in if stands else None)
    assert "extra_content" not in second
    assert [one["name"] for one in body["messages"] if one["role"] == "tool"] == ["task_create"] * 2


@pytest.mark.parametrize(
    ("engine", "refused"), [("google", "parallel_tool_calls"), ("mistral", "stream_options"), ("openai", "")]
)
def test_what_a_server_refuses_is_not_sent(engine: str, refused: str) -> None:
    terms = Terms(entry=ModelEntry(name="m", provider="openai", model="m"), row=by_id(engine), name="here")
    request = Request(system="", messages=(user("hi"),), tools=(ADD,), parallel_calls=False)
    body = chat.body(request, terms, 100)
    assert {"parallel_tool_calls", "stream_options"} - set(body) == {refused} - {""}


@pytest.mark.parametrize(
    ("engine", "given", "form"),
    [
        ("openai", "fc_" + "0" * 50, r"call_[0-9a-f]{24}"),
        ("openrouter", "functions.task_create:0", r"functions\.task_create:0"),
        ("mistral", "call_abc-1", r"[0-9a-f]{9}"),
        ("litellm", "call_1__thought__" + "x" * 200, r"call_1__thought__x{200}"),
    ],
)
async def test_an_id_of_another_server_is_made_one_that_this_one_takes(engine: str, given: str, form: str) -> None:
    call = ToolCall(id=given, name="task_create", arguments="{}")
    told = results(ToolResult(call_id=given, name=call.name, text="Done."))
    body, _ = await sent(engine, user("buy milk"), Message(speaker="assistant", parts=(call,)), told)
    sent_id = answers(body)[0]["tool_calls"][0]["id"]
    assert re.fullmatch(form, sent_id)
    assert [one["tool_call_id"] for one in body["messages"] if one["role"] == "tool"] == [sent_id]


async def test_googles_own_signature_is_left_as_it_came() -> None:
    own = {"google": {"thought_signature": "sig-1", "more": 7}}
    signed = Opaque(provider="127.0.0.1", data={"details": {"call": {"extra_content": own}}})
    told = results(ToolResult(call_id=CALL.id, name=CALL.name, text="Done."))
    history = (user("buy milk"), Message(speaker="assistant", parts=(CALL, signed)), told)
    body, _ = await sent("google", *history, model="gemini-3-pro")
    assert answers(body)[0]["tool_calls"][0]["extra_content"] == own


async def test_azure_gets_the_key_in_its_header_and_an_old_address_its_version() -> None:
    _, double = await sent("azure", path="/openai/v1")
    assert double.headers == ["api-key"]
    old = "/openai/deployments/our-chat"
    with ModelLists(
        pages={f"POST {old}/chat/completions?api-version=2024-10-21 m": (200, model_lists.SPOKEN)}
    ) as double:
        entry = ModelEntry(
            name="m", provider="openai", model="m", base_url=double.origin + old, engine="azure", streams=False
        )
        policy = named(("127.0.0.1", int(double.origin.rpartition(":")[2])))
        provider = connect(entry, "sk-1", ProviderContext(policy=policy, connect_s=PATIENCE_S))
        done = [item async for item in provider.stream(Request(system="", messages=(user("hi"),), tools=()))]
        assert isinstance(done[-1], StreamEnd)
        await provider.close()


def test_litellms_thinking_goes_back_in_blocks_each_with_its_signature() -> None:
    entry = ModelEntry(name="m", provider="openai", model="claude")
    reader = chat.ChatReader(
        Request(system="", messages=(), tools=()), Terms(entry=entry, row=by_id("litellm"), name="here")
    )
    shown = []
    for block in (
        {"type": "thinking", "thinking": "First "},
        {"type": "thinking", "thinking": "this."},
        {"type": "thinking", "thinking": "", "signature": "sig-1"},
        {"type": "redacted_thinking", "data": "opaque-1"},
        {"type": "redacted_thinking", "data": "opaque-2"},
        {"type": "thinking", "thinking": "Then that."},
        {"type": "thinking", "thinking": "", "signature": "sig-2"},
    ):
        delta = {"thinking_blocks": [block], "reasoning_content": block.get("thinking", "")}
        shown += [one.text for one in reader.event("", {"choices": [{"delta": delta}]})]
    reader.event("", {"choices": [{"delta": {"content": "Done."}, "finish_reason": "stop"}]})
    _, answer = reader.end()
    assert "".join(shown) == "First this.Then that."
    thought = answer.parts[0]
    assert isinstance(thought, Thinking)
    assert thought.opaque is not None
    assert thought.opaque["fields"]["thinking_blocks"] == [
        {"type": "thinking", "thinking": "First this.", "signature": "sig-1"},
        {"type": "redacted_thinking", "data": "opaque-1"},
        {"type": "redacted_thinking", "data": "opaque-2"},
        {"type": "thinking", "thinking": "Then that.", "signature": "sig-2"},
    ]
