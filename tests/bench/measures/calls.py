"""How many model calls a hello makes, over the wire."""

from pathlib import Path

from tests.bench.figure import Bench, Figure
from tests.bench.processes import add_model, ask, check_streamed, running
from tests.e2e.caller import Caller
from tests.scripted_server import ScriptedServer, rule


def measure(bench: Bench) -> list[Figure]:
    """The requests that reach the model."""
    how = "requests that reach the scripted OpenAI server"
    return [
        Figure(what="model calls for hello", value=_calls_for_hello(bench.folder / "home"), unit="", how=how, goal=1)
    ]


def _calls_for_hello(home: Path) -> int:
    with ScriptedServer(rule(".", "Hello.")) as model, running(home) as daemon, Caller(daemon) as caller:
        caller.set_up()
        add_model(caller, model)
        before = len(model.log)
        ask(caller, "hello")
        check_streamed(model)
        return len(model.log) - before
