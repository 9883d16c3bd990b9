"""Real wires against the scripted server: the message format, each fault, time limits, byte-equal replays."""

import asyncio
import json
from typing import Any

import pytest
from msgspec.structs import replace

from cortex.base.address import PUBLIC, named
from cortex.base.errors import ProviderError
from cortex.base.messages import (
    Message,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSchema,
    assistant,
    from_json,
    results,
    to_json,
    user,
)
from cortex.base.model import ModelEntry, Profile
from cortex.ports.loop import Delta, Provider, Request, StreamEnd
from cortex.providers import ProviderContext, connect
from tests.patience import PATIENCE_S
from tests.scripted_rules import LONG
from tests.scripted_server import Fault, Say, ScriptedServer, Use, rule

KINDS = ("openai", "anthropic")
ADD = ToolSchema(
    name="task_create",
    description="Add a task.",
    parameters={"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]},
)
MILK = rule("milk", Say("On it.", (Use("task_create", {"title": "milk"}),)), "Added milk.")


def entry(server: ScriptedServer, kind: str, **more: Any) -> ModelEntry:
    base_url = server.base_url if kind == "openai" else server.origin
    caching = Profile(caches=True)
    return ModelEntry(
        **{
            "name": "scripted",
            "provider": kind,
            "model": "scripted-1",
            "base_url": base_url,
            "profile": caching,
            "timeout_s": PATIENCE_S,
            **more,
        }
    )


def dial(server: ScriptedServer, kind: str, **more: Any) -> Provider:
    limits = {key: more.pop(key) for key in ("first_s", "between_s") if key in more}
    surroundings = ProviderContext(policy=named(("127.0.0.1", server.port)), connect_s=PATIENCE_S, **limits)
    secret = more.pop("secret", server.api_key)
    return connect(entry(server, kind, **more), secret, surroundings)


def ask(*messages: Message, tools: tuple[ToolSchema, ...] = (ADD,), **more: Any) -> Request:
    return Request(system="You are Cortex.", messages=messages, tools=tools, **more)


async def run(provider: Provider, request: Request) -> tuple[str, StreamEnd]:
    text, done = "", None
    async for item in provider.stream(request):
        assert done is None
        if isinstance(item, Delta):
            text += item.text if item.kind == "text" else ""
        else:
            done = item
    assert done is not None
    return text, done


async def fail(provider: Provider, request: Request) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        await run(provider, request)
    await provider.close()
    return raised.value


@pytest.mark.parametrize("kind", KINDS)
async def test_a_turn_with_a_call_goes_through_the_wire(scripted: ScriptedServer, kind: str) -> None:
    scripted.rules = [MILK]
    provider = dial(scripted, kind)
    text, first = await run(provider, ask(user("buy milk"), hints=(("task_create", 0.9),)))
    assert text == "On it." == first.message.text
    assert first.finish == "calls"
    call = first.message.calls[0]
    assert (call.name, json.loads(call.arguments)) == ("task_create", {"title": "milk"})
    done = results(ToolResult(call_id=call.id, name=call.name, text="Done."))
    text, second = await run(provider, ask(user("buy milk"), first.message, done))
    assert (text, second.finish) == ("Added milk.", "stop")
    assert second.usage.input_tokens > first.usage.input_tokens > 20
    assert second.usage.output_tokens >= 1
    assert "hints" not in scripted.log[0].raw.decode()
    await provider.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_note_behind_a_result_goes_through_the_wire(scripted: ScriptedServer, kind: str) -> None:
    scripted.rules = [MILK]
    provider = dial(scripted, kind)
    _, first = await run(provider, ask(user("buy milk")))
    call = first.message.calls[0]
    done = results(ToolResult(call_id=call.id, name=call.name, text="Done."))
    text, _ = await run(provider, ask(user("buy milk"), first.message, done, user("(This is the last round.)")))
    assert text == "Added milk."
    await provider.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_without_streaming_the_answer_is_the_same(scripted: ScriptedServer, kind: str) -> None:
    scripted.rules = [MILK]
    provider = dial(scripted, kind, streams=False)
    text, done = await run(provider, ask(user("buy milk")))
    assert text == "On it."
    assert done.message.calls[0].name == "task_create"
    assert not scripted.log[0].body.get("stream")
    await provider.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_tool_choice_none_keeps_the_tools_in_the_request(scripted: ScriptedServer, kind: str) -> None:
    scripted.rules = [MILK]
    provider = dial(scripted, kind, parallel_calls=False)
    _, done = await run(provider, ask(user("buy milk"), tool_choice="none"))
    assert done.message.calls == ()
    body = scripted.log[0].body
    assert scripted.log[0].tools == ("task_create",)
    assert body["tool_choice"] in ("none", {"type": "none"})
    await provider.close()


@pytest.mark.parametrize(
    ("kind", "thinking", "choice"),
    [
        ("openai", "", "required"),
        ("anthropic", "", {"type": "any"}),
        ("anthropic", "true", None),
    ],
    ids=["openai", "anthropic", "thinking"],
)
async def test_a_required_call_is_asked_for_where_the_wire_allows_it(
    scripted: ScriptedServer, kind: str, thinking: str, choice: object
) -> None:
    scripted.rules = [MILK]
    extra = (("thinking", thinking),) if thinking else ()
    provider = dial(scripted, kind, extra_params=extra)
    _, done = await run(provider, ask(user("buy milk"), tool_choice="required"))
    assert done.message.calls[0].name == "task_create"
    assert scripted.log[0].body.get("tool_choice", {"type": "auto"}) == (choice or {"type": "auto"})
    await provider.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_no_tools_send_no_tool_keys(scripted: ScriptedServer, kind: str) -> None:
    provider = dial(scripted, kind)
    await run(provider, ask(user("hello"), tools=(), max_output_tokens=77))
    body = scripted.log[0].body
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & body.keys()
    assert body["max_tokens"] == 77
    await provider.close()


def steps() -> list[Message]:
    calls = [ToolCall(id=f"call_{n}", name="task_create", arguments='{"title": "a"}') for n in (1, 2)]
    return [
        user("one"),
        assistant("Two at once.", *calls),
        results(*(ToolResult(call_id=c.id, name=c.name, text="", is_error=c.id == "call_2") for c in calls)),
        user("and also this"),
        assistant("Done."),
        user("unanswered"),
        user("two"),
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 3, 4, 6, 7])
async def test_every_shape_of_history_is_accepted(scripted: ScriptedServer, kind: str, size: int) -> None:
    provider = dial(scripted, kind)
    await run(provider, ask(*steps()[:size]))
    assert scripted.problems == []
    await provider.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_opaque_parts_are_replayed_byte_for_byte(scripted: ScriptedServer, kind: str) -> None:
    """What came from the provider goes back as it came, also after a trip through the database."""
    scripted.rules = [
        rule("milk", Say("On it.", (Use("task_create", {"title": "milk"}),), thinking="Hm, milk."), "Added.")
    ]
    provider = dial(scripted, kind)
    question = user("buy milk " + "word " * 1500)
    _, first = await run(provider, ask(question))
    thought = first.message.parts[0]
    assert isinstance(thought, Thinking)
    assert thought.text == "Hm, milk."
    stored = from_json(json.loads(json.dumps(to_json(first.message))))
    assert stored == first.message
    call = first.message.calls[0]
    history = (question, stored, results(ToolResult(call_id=call.id, name=call.name, text="Done.")))
    _, second = await run(provider, ask(*history))
    await run(provider, ask(*history, second.message, user("thanks")))
    bodies = [seen.body for seen in scripted.log]
    replay = bodies[1]["messages"][2 if kind == "openai" else 1]
    assert "Hm, milk." in json.dumps(replay)
    assert scripted.cache_breaks() == []
    assert second.usage.cached_tokens > 1000
    await provider.close()


async def test_another_providers_reasoning_is_left_out(scripted: ScriptedServer) -> None:
    opaque = {"part_kind": "thinking", "content": "secret thoughts", "signature": "x", "provider_name": "elsewhere"}
    said = Message(
        speaker="assistant", parts=(Thinking(text="secret thoughts", opaque=opaque), *assistant("Hi.").parts)
    )
    provider = dial(scripted, "openai")
    await run(provider, ask(user("a"), said, user("b")))
    assert "secret thoughts" not in scripted.log[0].raw.decode()
    await provider.close()


@pytest.mark.parametrize(
    ("fault", "kind_of_error", "is_retryable"),
    [
        (Fault(kind="status", status=429, retry_after="7"), "rate_limit", True),
        (Fault(kind="status", status=500), "server", True),
        (Fault(kind="status", status=503), "server", True),
        (Fault(kind="status", status=400), "request", False),
        (Fault(kind="status", status=404), "request", False),
        (Fault(kind="status", status=401), "auth", False),
        (Fault(kind="status", status=403), "auth", False),
        (Fault(kind="status", status=307), "server", True),
        (Fault(kind="no_finish"), "cut", True),
        (Fault(kind="empty"), "empty", True),
        (Fault(kind="error_event"), "server", True),
        (Fault(kind="garbage"), "malformed", True),
    ],
    ids=lambda value: f"{value.kind}{value.status}" if isinstance(value, Fault) else "",
)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_fault_becomes_a_clear_error(
    scripted: ScriptedServer, kind: str, fault: Fault, kind_of_error: str, is_retryable: bool
) -> None:
    scripted.rules = [rule("hello", "Hello, how are you today?")]
    scripted.fail(fault)
    error = await fail(dial(scripted, kind), ask(user("hello")))
    assert (error.kind, error.is_retryable) == (kind_of_error, is_retryable), error.message
    assert error.message.startswith("scripted: ")
    assert error.retry_after_s == (7.0 if fault.retry_after else None)
    assert len(scripted.log) == 1, "the SDK must not retry on its own"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_stream_cut_at_any_byte_is_never_taken_for_whole(scripted: ScriptedServer, kind: str) -> None:
    """Cut at every 97th byte and round the ends; only a stream with its finish reason may count."""
    scripted.rules = [MILK]
    provider = dial(scripted, kind)
    await run(provider, ask(user("buy milk")))
    whole = scripted.log[0].sent_bytes
    kinds = set()
    for at in [1, *range(50, whole - 700, 97), whole - 600]:
        scripted.fail(Fault(kind="cut", after_bytes=at))
        with pytest.raises(ProviderError) as raised:
            await run(provider, ask(user("buy milk")))
        kinds.add(raised.value.kind)
        assert raised.value.is_retryable
    assert kinds <= {"cut", "malformed", "server", "connection"}, kinds
    await provider.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_malformed_arguments_are_handed_back_and_can_be_replayed(scripted: ScriptedServer, kind: str) -> None:
    scripted.rules = [MILK]
    scripted.fail(Fault(kind="malformed"))
    provider = dial(scripted, kind)
    _, first = await run(provider, ask(user("buy milk")))
    call = first.message.calls[0]
    with pytest.raises(ValueError, match="property name"):
        json.loads(call.arguments)
    told = results(ToolResult(call_id=call.id, name=call.name, text="The arguments are no JSON.", is_error=True))
    text, _ = await run(provider, ask(user("buy milk"), first.message, told))
    assert text == "Added milk."
    await provider.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_an_unknown_tool_is_handed_on_to_the_executor(scripted: ScriptedServer, kind: str) -> None:
    scripted.fail(Fault(kind="unknown_tool"))
    provider = dial(scripted, kind)
    _, done = await run(provider, ask(user("hello")))
    assert done.message.calls[0].name == "no_such_tool"
    await provider.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "fault", [Fault(kind="hang"), Fault(kind="stall", after_bytes=420)], ids=["no first byte", "silence in between"]
)
async def test_silence_is_a_time_out(scripted: ScriptedServer, kind: str, fault: Fault) -> None:
    scripted.rules = [rule("hello", "Hello, how are you today? " * 30)]
    scripted.fail(fault)
    error = await fail(dial(scripted, kind, first_s=0.6, between_s=0.6), ask(user("hello")))
    assert (error.kind, error.is_retryable) == ("timeout", True)


async def test_a_stream_without_any_choice_is_no_answer(scripted: ScriptedServer) -> None:
    scripted.fail(Fault(kind="no_choices"))
    error = await fail(dial(scripted, "openai"), ask(user("hello")))
    assert (error.kind, error.is_retryable) == ("cut", True)


async def test_an_answer_cut_by_the_token_limit_says_so(scripted: ScriptedServer) -> None:
    scripted.fail(Fault(kind="length"))
    provider = dial(scripted, "openai")
    _, done = await run(provider, ask(user("hello")))
    assert done.finish == "length"
    await provider.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_wrong_key_is_named_and_not_shown(scripted: ScriptedServer, kind: str) -> None:
    error = await fail(dial(scripted, kind, secret="sk-wrong-secret-key"), ask(user("hello")))
    assert error.kind == "auth"
    assert "sk-wrong" not in error.message


@pytest.mark.parametrize("kind", KINDS)
async def test_an_address_the_policy_forbids_is_not_dialled(scripted: ScriptedServer, kind: str) -> None:
    provider = connect(entry(scripted, kind), "test-key", ProviderContext(policy=PUBLIC))
    error = await fail(provider, ask(user("hello")))
    assert (error.kind, error.is_retryable) == ("connection", False)
    assert "not allowed" in error.message
    assert scripted.log == []


async def test_nobody_listening_is_a_connection_error(scripted: ScriptedServer) -> None:
    provider = connect(
        replace(entry(scripted, "openai"), base_url="http://127.0.0.1:9/v1"),
        "k",
        ProviderContext(policy=named(("127.0.0.1", 9))),
    )
    error = await fail(provider, ask(user("hello")))
    assert (error.kind, error.is_retryable) == ("connection", True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_cancelled", [False, True], ids=["closed", "cancelled"])
async def test_leaving_the_stream_closes_the_connection(
    scripted: ScriptedServer, kind: str, is_cancelled: bool
) -> None:
    scripted.rules = [rule("hello", "word " * 200)]
    scripted.delay_s = 0.05
    provider = dial(scripted, kind)
    stream: Any = provider.stream(ask(user("hello")))
    await anext(stream)
    if is_cancelled:
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    else:
        await stream.aclose()
    assert await asyncio.to_thread(scripted.log[0].left.wait, PATIENCE_S)
    await provider.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_halves_of_a_sign_in_two_pieces_are_one_sign(scripted: ScriptedServer, kind: str) -> None:
    """Some servers cut a sign outside the basic plane in two, each half written as JSON's escape."""
    numbers = " ".join(map(str, range(6_000)))
    at = LONG // 10 - 1  # the last letter of the first piece
    scripted.rules = [rule("hello", Say(f"{numbers[:at]}\ud83c\udf1e{numbers[at:LONG]} and half \udf1e"))]
    provider = dial(scripted, kind)
    text, end = await run(provider, ask(user("hello")))
    assert text == end.message.text == f"{numbers[:at]}\U0001f31e{numbers[at:LONG]} and half \ufffd"
    await provider.close()
