"""Scenes of answers that are written oddly: endings, lines between, bytes cut anywhere, usage."""

import json
from typing import Any

from cortex.base.messages import user
from tests.model_servers.scenes_talk import BREAD, MILK
from tests.model_servers.spoken import Said
from tests.model_servers.stage import Stage

_NOISE = (
    b": OPENROUTER PROCESSING\n\n",
    b"data:\n\n",
    b"data: \n\n",
    b"id: 7\n\n",
    b"retry: 3000\n\n",
    b"data: : comment\n\n",
    b"data: null\n\n",
    b"\n\n",
)
_EMPTY: tuple[dict[str, Any], ...] = (
    {},
    {"choices": []},
    {"choices": None},
    {"choices": [{"index": 0, "delta": None}]},
    {"choices": [{"index": 0}]},
    {
        "choices": [
            {"index": 0, "delta": {"role": None, "content": None, "tool_calls": None, "reasoning_content": None}}
        ]
    },
    {"choices": [{"index": 0, "delta": {"content": "", "tool_calls": []}, "finish_reason": ""}]},
    {"object": "ping", "error": None, "usage": None},
)
_CHAT_NOISE = (b"event: message\n", b"id: 7\nretry: 3000\n", b"event: ping\ndata: {}\n\n")


async def finish_missing(stage: Stage) -> None:
    """A whole answer without a reason for its end is a whole answer."""
    for finish in (None, ""):
        stage.begin(
            Said(text="All of it.", manner={"finish": finish}), Said(calls=(MILK,), manner={"finish": finish}), "Added."
        )
        provider = stage.dial()
        assert (await stage.hear(provider, user("hello"))).message.text == "All of it."
        called = await stage.hear(provider, user("buy milk"))
        assert json.loads(called.call.arguments) == {"title": "milk"}
        await stage.hear(provider, user("buy milk"), called.message, called.results())
        stage.check()


async def finish_odd(stage: Stage) -> None:
    """An unknown reason, the wrong one, no `[DONE]`, or a last delta of null behind it."""
    for manner in (
        {"finish": "eos"},
        {"finish": "STOP"},
        {"is_done_said": False},
        {"has_null_end": True},
        {"finish": None, "has_null_end": True},
    ):
        stage.begin(Said(text="All of it.", manner=manner))
        assert (await stage.hear(stage.dial(), user("hello"))).message.text == "All of it."
        stage.check()
    stage.begin(Said(calls=(MILK,), manner={"finish": "stop"}))
    assert (await stage.hear(stage.dial(), user("buy milk"))).end.finish == "calls"
    stage.check()


async def odd_lines(stage: Stage) -> None:
    """Lines that mean nothing stand between the events."""
    noises = _NOISE if stage.row.wire != "chat" else (*_NOISE, *_CHAT_NOISE)
    for noise in noises:
        stage.begin(Said(text="Quiet here.", calls=(MILK,), manner={"noise": noise}))
        heard = await stage.hear(stage.dial(), user("hello"))
        assert (heard.message.text, heard.call.name) == ("Quiet here.", "task_create"), noise
        stage.check()


async def odd_chunks(stage: Stage) -> None:
    """Chunks that say nothing, an answer that is one chunk, usage with each, and no space behind `data:`."""
    manners: list[dict[str, Any]] = [{"noise": b"data: " + json.dumps(each).encode() + b"\n\n"} for each in _EMPTY]
    manners += [{"in_one": True}, {"usage": "each"}, {"space": b""}]
    for manner in manners:
        stage.begin(Said(text="Quiet here.", calls=(MILK,), manner=manner), "Added.")
        provider = stage.dial()
        heard = await stage.hear(provider, user("hello"))
        assert (heard.message.text, heard.call.name) == ("Quiet here.", "task_create"), manner
        assert heard.end.usage.input_tokens > 20
        await stage.hear(provider, user("hello"), heard.message, heard.results())
        stage.check()


async def whole_for_a_stream(stage: Stage) -> None:
    """A server that never streams answers a request for a stream in one piece."""
    stage.begin(Said(text="In one piece.", calls=(MILK,), is_whole=True))
    heard = await stage.hear(stage.dial(), user("hello"))
    assert (heard.message.text, heard.call.name) == ("In one piece.", "task_create")
    stage.check()


async def cut_anywhere(stage: Stage) -> None:
    """Lines end with CR LF or CR, and packets end in the middle of a letter."""
    text = "Grüße 🌷 aus 東京, e\u0301t voilà."
    for newline in (b"\n", b"\r\n", b"\r"):
        stage.begin(Said(text=text, calls=(BREAD,), packet=7, manner={"newline": newline}))
        heard = await stage.hear(stage.dial(), user("hello"))
        assert (heard.message.text, json.loads(heard.call.arguments)) == (text, {"title": "Brötchen"})
        stage.check()


async def ends_at_a_limit(stage: Stage) -> None:
    """An answer that ends at a limit is kept and told as that; with nothing in it, it is an error that says why."""
    for ends in ("length", "window"):
        stage.begin(Said(text="It begins well and", ends=ends))
        heard = await stage.hear(stage.dial(), user("tell me"))
        assert (heard.message.text, heard.end.finish) == ("It begins well and", "length")
        stage.begin(Said(text="", ends=ends))
        error = await stage.fail(stage.dial(), user("tell me"))
        assert not error.is_retryable, f"{error.kind}: {error.message}"
        is_full = ends == "window" and stage.row.wire == "messages"
        assert ("fills" if is_full else "output tokens") in error.message, error.message


async def long_answer(stage: Stage) -> None:
    """An answer of many pages in one piece and in many."""
    page = " ".join(f"Row {number} of the garden has {number * 7 % 13} plants." for number in range(900))
    for cut in (0, 4_000):
        stage.begin(Said(text=page, manner={"cut": cut}))
        assert (await stage.hear(stage.dial(), user("tell me"))).message.text.strip() == page.strip()
        stage.check()


async def cached_usage(stage: Stage) -> None:
    """What the server read from its cache is counted as cached, and into the input."""
    for streams in (True, False):
        stage.begin(Said(text="Hello.", cached=32))
        heard = await stage.hear(stage.dial(streams=streams), user("hello"))
        usage = heard.end.usage
        assert usage.cached_tokens == 32, usage
        assert usage.input_tokens > 64, usage
        stage.check()


async def no_usage(stage: Stage) -> None:
    """A server that tells no usage: it is counted here."""
    for streams in (True, False):
        stage.begin(Said(text="Hello to you.", manner={"usage": "none"}))
        usage = (await stage.hear(stage.dial(streams=streams), user("hello"))).end.usage
        assert usage.input_tokens > 20
        assert usage.output_tokens > 1
        stage.check()
