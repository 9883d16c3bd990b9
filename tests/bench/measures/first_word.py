"""From sending to seeing: one's own message in the live stream, and what Cortex adds before a model's first word."""

import re
import statistics
import time

import httpx

from tests.bench.figure import Bench, Figure
from tests.bench.processes import add_model, check_streamed, running, until_idle
from tests.e2e.caller import Caller
from tests.e2e.daemon import Daemon
from tests.scripted_server import ScriptedServer, rule

TURNS = 12
WORD, LAST = "Zanzibar", "behind."
PACE_S = 0.02  # between two words: what waits for the whole answer sees the first and the last together
ASKED = "hello, say the word"


def measure(bench: Bench) -> list[Figure]:
    """Three lines: own message, the bare server's first word, what is added to it."""
    own: list[float] = []
    first: list[float] = []
    with (
        ScriptedServer(rule(".", f"{WORD} is the word, and there are a few more {LAST}")) as model,
        running(bench.folder / "home") as daemon,
        Caller(daemon) as caller,
    ):
        model.delay_s = PACE_S
        caller.set_up()
        add_model(caller, model)
        conversation = caller.send("new", ASKED)
        until_idle(caller, conversation)
        for _ in range(TURNS):
            message_ms, word_ms = _one_turn(daemon, caller, conversation)
            own.append(message_ms)
            first.append(word_ms)
            until_idle(caller, conversation)
        check_streamed(model)
        with httpx.Client(headers={"Authorization": f"Bearer {model.api_key}"}, trust_env=False) as client:
            bare = statistics.median(_bare_ms(client, model) for _ in range(TURNS))
    how = f"wall time over HTTP and SSE on this machine, median of {TURNS}"
    added = statistics.median(first) - bare
    return [
        Figure(what="send to own message visible", value=statistics.median(own), unit="ms", how=how, goal=100),
        Figure(what="first word of the bare scripted model", value=bare, unit="ms", how="httpx, the same server"),
        Figure(
            what="added before the first word", value=added, unit="ms", how=f"{how}, openai provider, less the bare"
        ),
    ]


def _one_turn(daemon: Daemon, caller: Caller, conversation: str) -> tuple[float, float]:
    """Milliseconds from the post to the message, and to the answer's first word, on the live stream."""
    page = caller.get(f"/c/{conversation}").text
    after = re.search(r"/events\?after=(\d+)", page)
    assert after
    cookie = {"cortex": caller.token}
    with (
        httpx.Client(base_url=daemon.origin, cookies=cookie, timeout=20, trust_env=False) as listening,
        listening.stream("GET", f"/c/{conversation}/events?after={after[1]}") as stream,
    ):
        pieces = stream.iter_text()
        next(pieces)  # the stream is open
        start_s = time.perf_counter()
        caller.send(conversation, ASKED)
        seen, message_ms = "", 0.0
        for piece in pieces:
            seen += piece
            if not message_ms and ASKED in seen:
                message_ms = (time.perf_counter() - start_s) * 1000
            if WORD in seen:
                if LAST in seen:
                    raise RuntimeError("the answer came in one piece: no first word can be measured")
                return message_ms, (time.perf_counter() - start_s) * 1000
    raise RuntimeError("the stream ended before the answer began")


def _bare_ms(client: httpx.Client, model: ScriptedServer) -> float:
    body = {"model": "scripted-1", "messages": [{"role": "user", "content": ASKED}], "stream": True}
    start_s = time.perf_counter()
    with client.stream("POST", f"{model.base_url}/chat/completions", json=body) as answer:
        seen = ""
        for piece in answer.iter_text():
            seen += piece
            if WORD in seen:
                return (time.perf_counter() - start_s) * 1000
    raise RuntimeError("the scripted model did not answer")
