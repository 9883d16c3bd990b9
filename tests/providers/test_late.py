"""Tools that come after the prefix was cached, on the wires that declare them late: nothing cached is sent anew."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from cortex.base.address import named
from cortex.base.messages import Message, Reveal, ToolCall, ToolResult, ToolSchema, assistant, results, to_json, user
from cortex.base.model import ModelEntry, Profile
from cortex.ports.loop import Provider, Request, StreamEnd
from cortex.providers import ProviderContext, connect
from tests.patience import PATIENCE_S
from tests.scripted_server import ScriptedServer, Use, rule

TELLS, SEARCHES = "claude-opus-5", "claude-sonnet-4-6"
ANTHROPIC = (TELLS, SEARCHES)
OPENAI = "gpt-5.5"
NATIVE = Profile(caches=True, late_tools="native", minimum_tokens=1)
LONG = "word " * 300


def schema(name: str) -> ToolSchema:
    parameters = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    return ToolSchema(name=name, description=f"Does {name}.", parameters=parameters)


DISCOVER = ToolSchema(
    name="tools_discover",
    description="Find a tool.",
    parameters={"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)
OPENING = (DISCOVER, schema("task_create"))
LATE = (schema("note_add"), schema("note_list"))


@pytest.fixture
def strict() -> Iterator[ScriptedServer]:
    """A server that caches from the first token on; checked in the end."""
    with ScriptedServer(cache_minimum_tokens=1) as server:
        yield server
        assert server.problems == []
        assert server.cache_breaks() == []


def dial(server: ScriptedServer, model: str, profile: Profile = NATIVE, **more: Any) -> Provider:
    kind = "anthropic" if model.startswith("claude") else "openai"
    base_url = server.origin if kind == "anthropic" else server.base_url
    entry = ModelEntry(
        name="scripted", provider=kind, model=model, base_url=base_url, profile=profile, timeout_s=PATIENCE_S, **more
    )
    return connect(
        entry, server.api_key, ProviderContext(policy=named(("127.0.0.1", server.port)), connect_s=PATIENCE_S)
    )


def ask(*messages: Message, late: tuple[ToolSchema, ...] = ()) -> Request:
    return Request(system="You are Cortex.", messages=messages, tools=(*OPENING, *late), late_from=len(OPENING))


async def run(provider: Provider, request: Request) -> StreamEnd:
    items = [item async for item in provider.stream(request)]
    assert isinstance(items[-1], StreamEnd)
    return items[-1]


def revealing(message: Message, *names: str) -> Message:
    return replace(message, parts=(*message.parts, Reveal(names=names)))


def answered(call: ToolCall, text: str = "Done.", *, is_error: bool = False) -> Message:
    return results(ToolResult(call_id=call.id, name=call.name, text=text, is_error=is_error))


@pytest.mark.parametrize("model", ANTHROPIC)
async def test_a_found_tool_is_referred_to_in_the_result_of_the_search(strict: ScriptedServer, model: str) -> None:
    strict.rules = [rule("note", Use("note_add", {"title": "milk"}), "Noted.")]
    provider = dial(strict, model)
    first = await run(provider, ask(user(f"write a note {LONG}")))
    assert [call.name for call in first.message.calls] == ["tools_discover"]
    told = revealing(answered(first.message.calls[0], "- note_add(title: string)"), "note_add")
    history = (user(f"write a note {LONG}"), first.message, told)
    second = await run(provider, ask(*history, late=LATE[:1]))
    assert [call.name for call in second.message.calls] == ["note_add"]
    declared = {tool["name"]: tool for tool in strict.log[1].body["tools"]}
    assert declared["note_add"]["defer_loading"] is True
    assert "defer_loading" not in declared["task_create"]
    block = strict.log[1].body["messages"][2]["content"][0]
    assert block["content"] == [{"type": "tool_reference", "tool_name": "note_add"}]
    third = await run(provider, ask(*history, second.message, answered(second.message.calls[0]), late=LATE[:1]))
    assert third.message.text == "Noted."
    assert strict.log[2].usage["cache_read_input_tokens"] > 300
    await provider.close()


@pytest.mark.parametrize("model", ANTHROPIC)
async def test_a_tool_for_a_later_message_comes_behind_that_message(strict: ScriptedServer, model: str) -> None:
    strict.rules = [rule("note", Use("note_add", {"title": "milk"}), "Noted."), rule("hello", "Hello.")]
    provider = dial(strict, model)
    first = await run(provider, ask(user(f"hello {LONG}")))
    history = (user(f"hello {LONG}"), first.message, revealing(user("write a note"), "note_add", "note_list"))
    second = await run(provider, ask(*history, late=LATE))
    assert [call.name for call in second.message.calls] == ["note_add"]
    await run(provider, ask(*history, second.message, answered(second.message.calls[0]), late=LATE))
    roles = [message["role"] for message in strict.log[1].body["messages"]]
    assert (
        roles
        == {
            TELLS: ["user", "assistant", "user", "system"],
            SEARCHES: ["user", "assistant", "user", "assistant", "user"],
        }[model]
    )
    await provider.close()


@pytest.mark.parametrize("model", [*ANTHROPIC, OPENAI])
async def test_a_rescued_tool_comes_behind_its_result(strict: ScriptedServer, model: str) -> None:
    strict.rules = [rule("hello", Use("task_create", {"title": "a"}), Use("note_add", {"title": "b"}), "Both done.")]
    provider = dial(strict, model)
    first = await run(provider, ask(user("hello")))
    told = revealing(answered(first.message.calls[0]), "note_add")
    second = await run(provider, ask(user("hello"), first.message, told, late=LATE[:1]))
    assert [call.name for call in second.message.calls] == ["note_add"]
    await provider.close()


@pytest.mark.parametrize("model", [*ANTHROPIC, OPENAI])
async def test_a_failed_search_keeps_its_words(strict: ScriptedServer, model: str) -> None:
    strict.rules = [rule("note", "There is none.")]
    provider = dial(strict, model)
    call = ToolCall(id="call_1", name="tools_discover", arguments='{"query": "note"}')
    told = revealing(answered(call, "2 searches are enough.", is_error=True), "note_add")
    await run(provider, ask(user("write a note"), assistant("", call), told, late=LATE[:1]))
    assert "2 searches are enough." in json.dumps(strict.log[0].body)
    await provider.close()


@pytest.mark.parametrize("model", [*ANTHROPIC, OPENAI])
async def test_a_late_tool_whose_place_was_cut_off_is_declared_plainly(strict: ScriptedServer, model: str) -> None:
    strict.rules = [rule("note", Use("note_add", {"title": "b"}))]
    provider = dial(strict, model)
    done = await run(provider, ask(user("write a note"), late=LATE))
    assert [call.name for call in done.message.calls] == ["note_add"]
    assert "defer_loading" not in json.dumps(strict.log[0].body)
    assert strict.log[0].tools == ("tools_discover", "task_create", "note_add", "note_list")
    await provider.close()


BEFORE = ToolCall(id="call_1", name="note_add", arguments='{"title": "a"}')
EARLIER = (
    revealing(user("write a note"), "note_add"),
    assistant("", BEFORE),
    answered(BEFORE),
    assistant("Noted."),
    user("hello"),
)


@pytest.mark.parametrize("model", ANTHROPIC)
async def test_what_an_earlier_epoch_revealed_is_no_news_in_this_one(strict: ScriptedServer, model: str) -> None:
    strict.rules = [rule("again", Use("note_add", {"title": "b"}))]
    provider = dial(strict, model)
    await run(provider, ask(*EARLIER))
    again = revealing(user("and again"), "note_add")
    done = await run(provider, ask(*EARLIER, assistant("You said: hello"), again, late=LATE[:1]))
    assert [call.name for call in done.message.calls] == ["note_add"]
    await provider.close()


async def test_responses_name_the_place_of_an_earlier_call_once_its_tool_comes_late_again() -> None:
    """The one thing that moves the prefix: this API wants to know where a called tool was declared."""
    with ScriptedServer(rule("again", Use("note_add", {"title": "b"}))) as server:
        provider = dial(server, OPENAI)
        await run(provider, ask(*EARLIER))
        again = revealing(user("and again"), "note_add")
        done = await run(provider, ask(*EARLIER, assistant("You said: hello"), again, late=LATE[:1]))
        assert [call.name for call in done.message.calls] == ["note_add"]
        assert server.problems == []
        await provider.close()


@pytest.mark.parametrize(
    ("model", "profile", "extra"),
    [
        (TELLS, replace(NATIVE, late_tools="bridge"), ()),
        (SEARCHES, NATIVE, (("thinking", "true"),)),
        ("gpt-4o", replace(NATIVE, late_tools="rewrite"), ()),
    ],
    ids=["another way", "a thinking model without additions", "chat completions"],
)
async def test_a_wire_that_cannot_declare_late_takes_the_tools_as_they_are(
    model: str, profile: Profile, extra: tuple[tuple[str, str], ...]
) -> None:
    with ScriptedServer(rule("note", Use("note_add", {"title": "b"}))) as server:
        provider = dial(server, model, profile, extra_params=extra)
        done = await run(provider, ask(revealing(user("write a note"), "note_add"), late=LATE[:1]))
        assert [call.name for call in done.message.calls] == ["note_add"]
        assert server.log[0].tools == ("tools_discover", "task_create", "note_add")
        assert "defer_loading" not in server.log[0].raw.decode()
        await provider.close()


async def test_responses_carry_the_schema_behind_the_message(strict: ScriptedServer) -> None:
    strict.rules = [
        rule("hello", Use("task_create", {"title": "a"}), "Hello."),
        rule("note", Use("note_add", {"title": "milk"}), "Noted."),
    ]
    provider = dial(strict, OPENAI)
    asked = user(f"hello {LONG}")
    first = await run(provider, ask(asked))
    call = first.message.calls[0]
    second = await run(provider, ask(asked, first.message, answered(call)))
    assert second.message.text == "Hello."
    history = (asked, first.message, answered(call), second.message, revealing(user("write a note"), "note_add"))
    third = await run(provider, ask(*history, late=LATE[:1]))
    assert [call.name for call in third.message.calls] == ["note_add"]
    fourth = await run(provider, ask(*history, third.message, answered(third.message.calls[0]), late=LATE[:1]))
    assert fourth.message.text == "Noted."
    assert {seen.path for seen in strict.log} == {"/v1/responses"}
    assert [seen.tools for seen in strict.log] == [("tools_discover", "task_create")] * 4
    added = [item for item in strict.log[3].body["input"] if item.get("type") == "additional_tools"]
    assert [[tool["name"] for tool in item["tools"]] for item in added] == [["note_add"]]
    assert strict.log[3].usage["input_tokens_details"]["cached_tokens"] > 0
    assert strict.log[0].body["store"] is False
    await provider.close()


async def test_a_call_of_a_tool_that_came_late_is_no_such_call_once_the_tool_is_declared() -> None:
    with ScriptedServer(rule("note", Use("note_add", {"title": "milk"}), "Noted.")) as server:
        provider = dial(server, OPENAI)
        asked = revealing(user("write a note"), "note_add")
        first = await run(provider, ask(asked, late=LATE[:1]))
        history = (asked, first.message, answered(first.message.calls[0]))
        tools = (*OPENING, *LATE)
        await run(provider, Request(system="Anew.", messages=history, tools=tools, late_from=len(tools)))
        calls = [item for item in server.log[1].body["input"] if item.get("type") == "function_call"]
        assert '"namespace": "note_add"' in json.dumps(to_json(first.message))
        assert "namespace" not in calls[0]
        assert server.problems == []
        await provider.close()
