"""What every wire makes of reasoning marks and of answers without end."""

from typing import Any

import pytest
from msgspec.structs import replace

from cortex.base.errors import ProviderError
from cortex.base.messages import Message, Opaque, Part, Text, Thinking, user
from cortex.base.model import Profile
from cortex.ports.loop import Delta, StreamEnd
from cortex.providers.heard import HeardAnswer
from cortex.providers.terms import Answer
from tests.providers.test_wire import ask, dial
from tests.scripted_server import Say, ScriptedServer, rule

WIRES = {
    "chat": ("openai", {}),
    "responses": ("openai", {"profile": Profile(caches=True, late_tools="native")}),
    "messages": ("anthropic", {}),
}
LOOP = "Good day to you. " + "Hello! How can I help you? " * 2_000


async def heard(scripted: ScriptedServer, wire: str, **more: Any) -> tuple[str, str, StreamEnd]:
    """What is read in the end as thought and as said, and the whole."""
    kind, how = WIRES[wire]
    read = {"text": "", "thinking": ""}
    done: StreamEnd | None = None
    async for item in dial(scripted, kind, **{**how, **more}).stream(ask(user("hello"), tools=())):
        if isinstance(item, StreamEnd):
            done = item
        elif item.kind == "void":
            read = {"text": "", "thinking": ""}
        else:
            read[item.kind] += item.text
    assert done is not None
    return read["thinking"], read["text"], done


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("begin", ["<think>\n", ""], ids=["both marks", "the last alone"])
async def test_reasoning_marks_are_read_on_every_wire(
    scripted: ScriptedServer, begin: str, wire: str, *, streams: bool
) -> None:
    scripted.rules = [rule("hello", f"{begin}They greet.\n</think>\n\nGood day!")]
    thought, text, done = await heard(scripted, wire, streams=streams)
    assert (thought, text, done.message.text, done.finish) == ("They greet.", "Good day!", "Good day!", "stop")
    assert [part.text for part in done.message.parts if isinstance(part, Thinking)] == ["They greet."]


@pytest.mark.parametrize("wire", WIRES)
async def test_an_answer_without_end_is_stopped_on_every_wire(scripted: ScriptedServer, wire: str) -> None:
    scripted.rules = [rule("hello", LOOP)]
    _, text, done = await heard(scripted, wire)
    assert (text, done.finish) == (done.message.text, "repeats")
    assert text.startswith("Good day to you. Hello! How can I help you?")
    assert len(text) < 100
    assert done.usage.input_tokens > 0
    assert done.usage.output_tokens > 150  # of what was really said


@pytest.mark.parametrize("wire", ["chat", "messages"])
async def test_reasoning_without_end_is_no_answer_and_is_not_tried_again(scripted: ScriptedServer, wire: str) -> None:
    scripted.rules = [rule("hello", Say("Never.", thinking="Wait, I look again. " * 3_000))]
    with pytest.raises(ProviderError) as raised:
        await heard(scripted, wire)
    assert (raised.value.kind, raised.value.is_retryable) == ("repeats", False)


@pytest.mark.parametrize("wire", ["chat", "messages"])
async def test_a_local_server_is_told_how_much_to_say_at_most(scripted: ScriptedServer, wire: str) -> None:
    await heard(scripted, wire, max_output_tokens=700)
    assert 700 in (scripted.log[-1].body.get("max_tokens"), scripted.log[-1].body.get("max_completion_tokens"))


def test_reasoning_in_a_field_of_its_own_stays_where_the_text_is_taken_back() -> None:
    answer = HeardAnswer("hello")
    given = [
        Delta(kind="thinking", text="One."),
        Delta(kind="text", text="Two."),
        Delta(kind="text", text="</think>OK"),
    ]
    told = [piece for delta in given for piece in answer.take(delta)]
    void = max(at for at, piece in enumerate(told) if piece.kind == "void")
    assert [(piece.kind, piece.text) for piece in told[void + 1 :]] == [
        ("thinking", "One."),
        ("thinking", "Two."),
        ("text", "OK"),
    ]


def test_parts_without_marks_stay_as_they_came() -> None:
    parts: list[Part] = [Text(text="Hello."), Opaque(provider="x", data={"details": {"id": "1"}}), Text(text="Bye.")]
    whole = Answer(parts=list(parts), finish="stop")
    answer = HeardAnswer("hello")
    answer.take(Delta(kind="text", text="Hello.Bye."))
    assert answer.end((), whole) == []
    assert whole.parts == parts
    marked = replace(whole, parts=[Text(text="<think>A.</think>B."), parts[1]])
    answer = HeardAnswer("hello")
    answer.take(Delta(kind="text", text="<think>A.</think>B."))
    answer.end((), marked)
    assert Message(speaker="assistant", parts=tuple(marked.parts)).parts == (Thinking(text="A."), Text(text="B."))
