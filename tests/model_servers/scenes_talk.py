"""Scenes of a talk that goes well: chat, calls, reasoning, pictures, a stop."""

import asyncio
import base64
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, cast

from cortex.base.messages import Message, Picture, Reveal, Thinking, user
from cortex.ports.loop import Delta, StreamEnd
from tests.model_servers.chat_answers import SIGNATURE
from tests.model_servers.spoken import Said, Use
from tests.model_servers.stage import ADD, FIND, Stage, request
from tests.patience import PATIENCE_S
from tests.scripted_responses import SEALED

MILK = Use(tool="task_create", arguments={"title": "milk"})
BREAD = Use(tool="task_create", arguments={"title": "Brötchen"})
LONG = " ".join(f"word{number}" for number in range(30))
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PHOTO = Picture(document="d1", sha256="abc", name="garden.png", media_type="image/png", width=1, height=1)
FAMILIES = ("google/gemini-3-pro-preview", "anthropic/claude-opus-5", "openai/gpt-5.4")


async def chat(stage: Stage) -> None:
    """A hello and its answer."""
    stage.begin("Good morning to you, Ann.")
    heard = await stage.hear(stage.dial(), user("good morning"), tools=())
    assert heard.text == "Good morning to you, Ann."
    assert heard.end.finish == "stop"
    assert heard.end.usage.input_tokens > 20
    assert heard.end.usage.output_tokens > 1
    stage.check()


async def stream(stage: Stage) -> None:
    """The first words are there while the rest is not written yet."""
    stage.begin(Said(text=LONG, pauses=True))
    heard = ""
    items = cast("AsyncGenerator[Delta | StreamEnd, None]", stage.dial().stream(request(user("tell me"))))
    async with aclosing(items):
        async for item in items:
            if isinstance(item, StreamEnd):
                assert item.message.text == LONG
            elif not heard:
                heard = item.text
                stage.double.go_on()
    assert heard
    assert heard != LONG
    stage.check()


async def not_streamed(stage: Stage) -> None:
    """The same answers as one piece."""
    stage.begin(Said(text="On it.", calls=(MILK,)), "Added.")
    provider = stage.dial(streams=False)
    first = await stage.hear(provider, user("buy milk"))
    assert (first.text, json.loads(first.call.arguments)) == ("On it.", {"title": "milk"})
    second = await stage.hear(provider, user("buy milk"), first.message, first.results())
    assert second.text == "Added."
    stage.check()


async def one_call(stage: Stage) -> None:
    """A call, its result, the answer."""
    stage.begin(Said(text="On it.", calls=(MILK,)), "Added milk.")
    provider = stage.dial()
    first = await stage.hear(provider, user("buy milk"))
    assert (first.text, first.end.finish, first.call.name) == ("On it.", "calls", "task_create")
    assert json.loads(first.call.arguments) == {"title": "milk"}
    second = await stage.hear(provider, user("buy milk"), first.message, first.results())
    assert (second.text, second.end.finish) == ("Added milk.", "stop")
    stage.check()


async def calls_in_a_row(stage: Stage) -> None:
    """Three calls one after another in one turn, then a second turn."""
    look = Use(tool="file_search", arguments={"query": "milk"})
    stage.begin(Said(calls=(look,)), Said(calls=(MILK,)), Said(text="One more.", calls=(BREAD,)), "All there.", "Bye.")
    provider = stage.dial()
    said: list[Message] = [user("buy milk and bread")]
    for _ in range(3):
        heard = await stage.hear(provider, *said)
        said += [heard.message, heard.results("Nothing there." if heard.call.name == "file_search" else "Done.")]
    last = await stage.hear(provider, *said)
    assert last.text == "All there."
    assert (await stage.hear(provider, *said, last.message, user("bye"))).text == "Bye."
    stage.check()


async def calls_side_by_side(stage: Stage) -> None:
    """Two calls in one answer, both results behind it."""
    await _two_calls(stage, {})


async def careless_zero(stage: Stage) -> None:
    """All pieces of parallel calls bear index 0, their ids differ (Ollama)."""
    await _two_calls(stage, {"numbering": "zero", "is_whole": True})
    await _two_calls(stage, {"numbering": "zero", "is_whole": False})


async def careless_none(stage: Stage) -> None:
    """Pieces of calls without an index, whole and with the id in each."""
    await _two_calls(stage, {"numbering": "none", "is_whole": True})
    await _two_calls(stage, {"numbering": "none", "is_whole": False, "ids_in": "all"})
    await _two_calls(stage, {"numbering": "zero", "is_whole": False, "ids_in": "all"})


async def careless_first_id(stage: Stage) -> None:
    """Pieces without an index, the id in the first of each call alone; and a single call so."""
    await _two_calls(stage, {"numbering": "none", "is_whole": False})
    stage.begin(Said(calls=(MILK,), manner={"numbering": "none", "is_whole": False, "ids_in": "all"}))
    heard = await stage.hear(stage.dial(), user("buy milk"))
    assert json.loads(heard.call.arguments) == {"title": "milk"}
    stage.check()


async def careless_empty_ids(stage: Stage) -> None:
    """Calls whose ids are empty get ids of ours, which the server takes."""
    await _two_calls(stage, {"ids_in": "empty", "is_whole": True, "is_signed": False}, is_ours=True)
    await _two_calls(stage, {"ids_in": "empty", "is_whole": False, "is_signed": False}, is_ours=True)


async def odd_calls(stage: Stage) -> None:
    """All calls in one piece, no arguments at all, or the arguments as an object."""
    await _two_calls(stage, {"is_together": True})
    nothing: tuple[Any, ...] = ("", None, {})
    for raw in nothing:
        look = Use(tool="task_list", raw=raw)
        stage.begin(Said(calls=(look, look)), "Empty.")
        provider = stage.dial()
        first = await stage.hear(provider, user("what is there?"))
        assert [json.loads(call.arguments) for call in first.message.calls] == [{}, {}], first.message.calls
        await stage.hear(provider, user("what is there?"), first.message, first.results())
        stage.check()
    stage.begin(Said(calls=(Use(tool="task_create", raw={"title": "milk"}),)), "Added.")
    provider = stage.dial()
    first = await stage.hear(provider, user("buy milk"))
    assert json.loads(first.call.arguments) == {"title": "milk"}
    await stage.hear(provider, user("buy milk"), first.message, first.results())
    stage.check()


async def _two_calls(stage: Stage, manner: dict[str, Any], *, is_ours: bool = False) -> None:
    said = Said(text="Both.", calls=(MILK, BREAD), manner=manner)
    stage.begin(said, "Added both.")
    provider = stage.dial()
    first = await stage.hear(provider, user("buy milk and bread"))
    calls = [(call.name, json.loads(call.arguments)["title"]) for call in first.message.calls]
    assert calls == [("task_create", "milk"), ("task_create", "Brötchen")]
    assert len({call.id for call in first.message.calls} - {""}) == 2
    if is_ours and stage.row.manner.is_signed:
        return  # an unsigned call cannot go back to this server: it never gives one
    second = await stage.hear(provider, user("buy milk and bread"), first.message, first.results("One.", "Two."))
    assert second.text == "Added both."
    stage.check()


async def thinking_answer(stage: Stage) -> None:
    """Reasoning is told apart from the answer, streamed and whole."""
    for streams in (True, False):
        stage.begin(Said(text="Forty-two.", thinking="Let me count it up."))
        provider = stage.dial(model=stage.row.thinker, streams=streams)
        heard = await stage.hear(provider, user("how many?"))
        assert (heard.text, heard.thinking) == ("Forty-two.", "Let me count it up.")
        thoughts = [part.text for part in heard.message.parts if isinstance(part, Thinking)]
        assert "".join(thoughts) == "Let me count it up."
        stage.check()


async def thinking_in_history(stage: Stage) -> None:
    """What was thought in earlier turns goes back as the server takes it, or not at all."""
    stage.begin(Said(text="Forty-two.", thinking="Let me count."), "You asked how many.", "Yes.")
    provider = stage.dial(model=stage.row.thinker)
    said: list[Message] = []
    for words in ("how many?", "what did I ask?", "really?"):
        said.append(user(words))
        said.append((await stage.hear(provider, *said)).message)
    stage.check()


async def thinking_with_tools(stage: Stage) -> None:
    """Reasoning ahead of calls over two turns goes back unread, where it has to."""
    models = FAMILIES if stage.row.id == "openrouter" else (stage.row.thinker,)
    for model in models:
        row = stage.row.with_model(model)
        first = Said(thinking="They want milk.", text="On it.", calls=(MILK,))
        both = Said(thinking="And bread.", calls=(BREAD, MILK))
        stage.begin(first, both, Said(thinking="Done now.", text="Added."), both, "Again.", "Bye.", row=row)
        provider = stage.dial(model=model)
        said: list[Message] = []
        for words, rounds in (("buy milk and bread", 3), ("again", 2), ("bye", 1)):
            said.append(user(words))
            for _ in range(rounds):
                heard = await stage.hear(provider, *said)
                said += [heard.message, heard.results()] if heard.message.calls else [heard.message]
        _went_back(stage)
        stage.check()


def _went_back(stage: Stage) -> None:
    """The reasoning ahead of the first calls stands in the next request as it was given, where it must."""
    sent = json.dumps(stage.double.sent[1])
    marks = {"words": ("They want milk.",), "signature": (SIGNATURE, SEALED)}
    for kind in stage.row.wants_back:
        assert any(mark in sent for mark in marks[kind]), f"its {kind} did not go back"


async def ids_used_twice(stage: Stage) -> None:
    """A server that numbers its calls anew in each answer: ours differ, and what was signed goes with them."""
    models = FAMILIES if stage.row.id == "openrouter" else (stage.row.thinker or stage.row.model,)
    again = Use(
        tool="task_create", arguments={"title": "milk"}, id=stage.row.manner.ids.format(n=0, tool="task_create")
    )
    for model in models:
        row = stage.row.with_model(model)
        stage.begin(*[Said(thinking="Milk.", calls=(again,))] * 2, "Added.", Said(calls=(again,)), "Bye.", row=row)
        provider = stage.dial(model=model)
        said: list[Message] = [user("buy milk twice")]
        for _ in range(2):
            heard = await stage.hear(provider, *said)
            said += [heard.message, heard.results()]
        said += [(await stage.hear(provider, *said)).message, user("once more")]
        heard = await stage.hear(provider, *said)
        said += [heard.message, heard.results()]
        await stage.hear(provider, *said)
        ids = [call.id for message in said for call in message.calls]
        assert len(set(ids)) == 3, ids
        stage.check()


async def marks_in_text(stage: Stage) -> None:
    """Reasoning between marks in the text is not shown as the answer, however the marks are cut."""
    for text in (
        "<think>\nLet me see.\n</think>\n\nHello there.",
        "Let me see.\n</think>\n\nHello there.",
        "[THINK]Let me see.[/THINK]Hello there.",
        "<thought>Let me see.</thought>Hello there.",
        "<thinking>\nLet me see.</thinking>\nHello there.",
        "<|channel|>analysis<|message|>Let me see.<|end|><|start|>assistant<|channel|>final<|message|>Hello there.",
    ):
        for cut in (3, 0):
            stage.begin(Said(text=text, manner={"cut": cut}))
            heard = await stage.hear(stage.dial(), user("hello"))
            assert heard.message.text.strip() == "Hello there.", heard.message.text
            stage.check()


async def picture(stage: Stage) -> None:
    """A picture is sent with the words."""
    stage.begin("A garden.", "Green.")
    provider = stage.dial(sees=True)
    asked = user("what is this?", pictures=(PHOTO,))
    first = await stage.hear(provider, asked, pictures={"abc": PIXEL})
    await stage.hear(provider, asked, first.message, user("which colour?"), pictures={"abc": PIXEL})
    for body in stage.double.sent:
        assert base64.b64encode(PIXEL).decode() in json.dumps(body)
    stage.check()


async def picture_to_a_blind_model(stage: Stage) -> None:
    """A model that sees nothing gets a line in place of the picture."""
    stage.begin("I cannot see it.", pictures=False)
    provider = stage.dial(sees=False)
    await stage.hear(provider, user("what is this?", pictures=(PHOTO,)), pictures={"abc": PIXEL})
    assert "garden.png" in json.dumps(stage.double.sent[0])
    stage.check()


async def stop(stage: Stage) -> None:
    """A stop in the middle closes the connection at once."""
    stage.begin(Said(text=LONG, pauses=True))
    items = cast("AsyncGenerator[Delta | StreamEnd, None]", stage.dial().stream(request(user("tell me"))))
    async with aclosing(items):
        async for item in items:
            assert isinstance(item, Delta)
            break
    assert await asyncio.to_thread(stage.double.log[-1].left.wait, PATIENCE_S)


async def late_tools(stage: Stage) -> None:
    """A tool that came after the prefix was cached is called and its result taken."""
    find = Use(tool="file_search", arguments={"query": "milk"})
    stage.begin("Hello.", Said(calls=(find,)), "Found it.", "Bye.")
    provider = stage.dial()
    tools = {"tools": (ADD, FIND), "late_from": 1}
    hello = await stage.hear(provider, user("hello"), tools=(ADD,))
    asked = user("look for milk")
    reveal = Message(speaker="user", parts=(*asked.parts, Reveal(names=("file_search",))))
    called = await stage.hear(provider, user("hello"), hello.message, reveal, **tools)
    assert called.call.name == "file_search"
    said = (user("hello"), hello.message, reveal, called.message, called.results("milk.txt"))
    found = await stage.hear(provider, *said, **tools)
    assert found.text == "Found it."
    await stage.hear(provider, *said, found.message, user("bye"), **tools)
    stage.check()
