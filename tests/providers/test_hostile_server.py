"""A server that is broken or means harm: each answer ends in words or in an error, and nobody else waits for it."""

import asyncio
import gzip
import json
import resource
from collections.abc import Callable
from time import process_time
from typing import Any

import httpx
import pytest

from cortex.base.address import named
from cortex.base.errors import ProviderError
from cortex.base.http import unpacked
from cortex.base.messages import Message, ToolCall, ToolSchema, user
from cortex.base.model import ModelEntry
from cortex.ports.loop import Request, StreamEnd
from cortex.providers import ProviderContext, chat, connect
from cortex.providers.call_pieces import CallPieces
from cortex.providers.failures import Unwanted, mapped
from cortex.providers.marks import ReasoningMarks
from cortex.providers.servers import by_id
from cortex.providers.terms import Terms, number, own_calls
from tests.patience import PATIENCE_S

ADD = ToolSchema(name="task_create", description="Add a task.", parameters={"type": "object", "properties": {}})
REQUEST = Request(system="You are Cortex.", messages=(user("hello"),), tools=(ADD,))
TERMS = Terms(entry=ModelEntry(name="m", provider="openai", model="gemini-3"), row=by_id("openrouter"), name="x")
SAID = 'data: {"choices":[{"index":0,"delta":{"content":"Hello."}}]}\n\n'
END = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
MUCH_S = 5.0  # of a processor; what grew with the square of its length took minutes


async def played(body: bytes, head: str = "", provider: str = "openai") -> StreamEnd:
    """What comes of an answer of these bytes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        kind = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n"
        writer.write(f"{kind}{head}\r\n".encode() + body)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    url = f"http://127.0.0.1:{port}{'/v1' if provider == 'openai' else ''}"
    entry = ModelEntry(name="m", provider=provider, model="some", base_url=url, timeout_s=PATIENCE_S)
    provider_ = connect(entry, "sk-1", ProviderContext(policy=named(("127.0.0.1", port)), connect_s=PATIENCE_S))
    try:
        done = [item async for item in provider_.stream(REQUEST) if isinstance(item, StreamEnd)]
    finally:
        await provider_.close()
        server.close()
    return done[0]


@pytest.mark.parametrize("count", ["1e999", "1e300", "9" * 30, "-5", "NaN", '"many"', "[1]", "true"])
async def test_a_count_that_cannot_be_one_is_counted_here(count: str) -> None:
    usage = f'data: {{"choices":[],"usage":{{"prompt_tokens":{count},"completion_tokens":{count}}}}}\n\n'
    done = await played(f"{SAID}{END}{usage}data: [DONE]\n\n".encode())
    assert done.message.text == "Hello."
    assert 0 < done.usage.input_tokens < 10_000


async def test_such_a_count_is_none_in_anthropics_protocol_either() -> None:
    events = [
        '{"type":"message_start","message":{"usage":{"input_tokens":1e999}}}',
        '{"type":"content_block_start","index":1e999,"content_block":{"type":"thinking","thinking":7}}',
        '{"type":"content_block_delta","index":1e999,"delta":{"type":"thinking_delta","thinking":"so"}}',
        '{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"Hello."}}',
        '{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1e999}}',
        '{"type":"message_stop"}',
    ]
    done = await played("".join(f"data: {event}\n\n" for event in events).encode(), provider="anthropic")
    assert done.message.text == "Hello."
    assert 0 < done.usage.input_tokens < 10_000
    assert number(3.0) == 3


async def test_a_body_that_is_packed_twice_is_refused_ahead_of_its_first_byte() -> None:
    packed = gzip.compress(gzip.compress(b"\n" * 200_000_000))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ProviderError, match="gzip, gzip"):
        await played(packed, "Content-Encoding: gzip, gzip\r\n")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150_000, "KB"


async def test_a_packed_body_is_unpacked_in_small_pieces_and_others_run_meanwhile() -> None:
    turns = 0

    async def counting() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    response = httpx.Response(
        200, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(gzip.compress(b"a" * 10_000_000))
    )
    other = asyncio.create_task(counting())
    sizes = [len(piece) async for piece in unpacked(response)]
    other.cancel()
    assert (sum(sizes), max(sizes) < 100_000) == (10_000_000, True)
    assert turns > 100
    plain = f"{SAID}{END}data: [DONE]\n\n".encode()
    assert (await played(gzip.compress(plain), "Content-Encoding: gzip\r\n")).message.text == "Hello."


@pytest.mark.parametrize(
    "piece",
    [
        lambda at: {"index": at, "id": f"c{at}", "function": {"name": "task_create", "arguments": "{}"}},
        lambda at: {"index": 0, "id": "c", "function": {"name": "task_create", "arguments": "}" if at else "{"}},
        lambda at: {
            "index": 0,
            "id": "c",
            "function": {"name": "task_create", "arguments": "aaaaaaaaaa" if at else "{"},
        },
        lambda at: {"function": {"name": "task_create", "arguments": ',"b":{}' if at else '{"a":{}'}},
    ],
    ids=["calls", "ends", "pieces", "objects"],
)
def test_a_hundred_thousand_pieces_of_calls_cost_little(piece: Callable[[int], dict[str, Any]]) -> None:
    calls, began_s = CallPieces(), process_time()
    for at in range(100_000):
        calls.add(piece(at))
    assert calls.calls()
    assert process_time() - began_s < MUCH_S


def test_more_calls_than_any_answer_means_are_an_error() -> None:
    calls = [ToolCall(id=f"c{at}", name="task_create", arguments="{}") for at in range(501)]
    with pytest.raises(ProviderError, match="did not end"):
        own_calls(calls, REQUEST)
    assert len(own_calls(calls[:500], REQUEST)) == 500
    with pytest.raises(ProviderError, match="did not end"):
        own_calls([ToolCall(id="c", name="task_create", arguments="x" * 2_000_001)], REQUEST)


def test_an_endless_name_or_id_is_not_sent_back_for_ever() -> None:
    found = own_calls([ToolCall(id="i" * 1_000_000, name="n" * 1_000_000, arguments="{}")], REQUEST)[0]
    assert (len(found.id) < 100, len(found.name)) == (True, 200)
    kept = own_calls([ToolCall(id="call_1__thought__" + "s" * 9_000, name="task_create", arguments="{}")], REQUEST)[0]
    assert len(kept.id) > 9_000, "LiteLLM keeps Google's signature there"


def test_reasoning_in_another_form_than_agreed_neither_fails_nor_poisons_the_chat() -> None:
    reader = chat.ChatReader(REQUEST, TERMS)
    for told in (
        {"reasoning_details": "thoughts", "tool_calls": [{"id": "c", "function": {"name": "task_create"}}]},
        {"reasoning_details": [{"type": "reasoning.text", "text": ["a"], "index": 0}]},
        {"reasoning_details": [{"type": "reasoning.text", "text": "b", "index": 0}, "x", None]},
        {"reasoning_details": "more"},
    ):
        reader.event("", {"choices": [{"delta": told}]})
    _, answer = reader.end()
    said = Message(speaker="assistant", parts=tuple(answer.parts))
    poisoned = {"provider_name": "x", "fields": {"reasoning_details": "thoughts"}}  # as it was kept once
    old = Message(speaker="assistant", parts=tuple(
        part if isinstance(part, ToolCall) else type(part)(text="so", opaque=poisoned)  # type: ignore[call-arg]
        for part in said.parts
    ))  # fmt: skip
    for message in (said, old):
        sent = chat.body(Request(system="s", messages=(user("a"), message, user("b"))), TERMS, 100)
        assert '"task_create"' in json.dumps(sent)


def test_a_refusal_in_odd_numbers_and_dates_is_still_told() -> None:
    for code in ("9" * 5_000, "\u00b2", "700", "-4", ""):
        body = json.dumps({"error": {"code": code, "message": "No."}})
        assert "No." in mapped(TERMS, Unwanted(200, body, {})).message
    late = {"retry-after": "Fri, 31 Dec 99999999999999 23:59:59 GMT"}
    assert mapped(TERMS, Unwanted(429, "{}", late)).retry_after_s is None


def test_channels_and_titles_without_end_are_read_in_little_time() -> None:
    began_s = process_time()
    marks = ReasoningMarks()
    marks.feed("<|channel|>analysis<|message|>a<|end|>" * 50_000)
    marks.end()
    for text in ("<title>" * 30_000, "<title" * 30_000, "<script>" * 30_000):
        mapped(TERMS, Unwanted(502, text, {}))
    assert process_time() - began_s < MUCH_S
