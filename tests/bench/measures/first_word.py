"""From sending to seeing one's own message in the live stream; the model's first word `make bench ARGS=weight` has."""

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
ASKED = "hello, say the word"


def measure(bench: Bench) -> list[Figure]:
    """One line."""
    own: list[float] = []
    with (
        ScriptedServer(rule(".", "Zanzibar is the word, and there are a few more behind.")) as model,
        running(bench.folder / "home") as daemon,
        Caller(daemon) as caller,
    ):
        caller.set_up()
        add_model(caller, model)
        conversation = caller.send("new", ASKED)
        until_idle(caller, conversation)
        for _ in range(TURNS):
            own.append(_one_turn(daemon, caller, conversation))
            until_idle(caller, conversation)
        check_streamed(model)
    how = f"wall time over HTTP and SSE on this machine, median of {TURNS}"
    return [Figure(what="send to own message visible", value=statistics.median(own), unit="ms", how=how, goal=100)]


def _one_turn(daemon: Daemon, caller: Caller, conversation: str) -> float:
    """Milliseconds from the post to the message on the live stream."""
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
        seen = ""
        for piece in pieces:
            seen += piece
            if ASKED in seen:
                return (time.perf_counter() - start_s) * 1000
    raise RuntimeError("the stream ended before the message was there")
