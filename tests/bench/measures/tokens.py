"""Tokens of the reference messages: what `cortex prompt-size` says of the exact first request; calls for hello."""

from pathlib import Path

from tests.bench.figure import Bench, Figure
from tests.bench.processes import add_model, ask, check_streamed, running
from tests.bench.prompts import MESSAGES, size
from tests.e2e.caller import Caller
from tests.scripted_server import ScriptedServer, rule


def measure(bench: Bench) -> list[Figure]:
    """A line for each message, and how many model calls a hello makes over the wire."""
    figures = [
        Figure(
            what=f'first request of "{message}"',
            value=size(bench.folder / "home", message)["total"],
            unit="tokens",
            how="`cortex prompt-size`, o200k, orchestrator of an admin: system, tools, catalog, message",
            goal=goal,
        )
        for message, goal in MESSAGES.items()
    ]
    calls = _calls_for_hello(bench.folder / "other" / "home")
    how = "requests that reach the scripted OpenAI server"
    return [*figures, Figure(what="model calls for hello", value=calls, unit="", how=how, goal=1)]


def _calls_for_hello(home: Path) -> int:
    with ScriptedServer(rule(".", "Hello.")) as model, running(home) as daemon, Caller(daemon) as caller:
        caller.set_up()
        add_model(caller, model)
        before = len(model.log)
        ask(caller, "hello")
        check_streamed(model)
        return len(model.log) - before
