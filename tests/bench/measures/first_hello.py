"""The first message after a start in a home where somebody lives: at once, and after a quiet minute; and the memory."""

import statistics
import time

from tests.bench.figure import Bench, Figure
from tests.bench.processes import add_model, ask, check_streamed, cpu_s, process_of, resident_mb, running
from tests.e2e.caller import Caller
from tests.scripted_server import ScriptedServer, rule

QUIET_S = 60.0
WHERE = "user + system time from the message to its end, a known home with a person and a model"


def measure(bench: Bench) -> list[Figure]:
    """Five lines: processor at once and behind the quiet minute, memory ahead of and after it, a later message."""
    home = bench.folder / "home"
    with ScriptedServer(rule(".", "Hello. What can I do?")) as model:
        with running(home) as daemon, Caller(daemon) as caller:
            caller.set_up()
            add_model(caller, model)
            ask(caller, "hello")
            ask(caller, "add milk to my shopping list")
            token = caller.token
        seen: dict[float, list[tuple[float, float, float, float]]] = {0.0: [], QUIET_S: []}
        for wait_s, rounds in seen.items():
            for _ in range(bench.runs):
                with running(home) as daemon, Caller(daemon) as caller:
                    caller.become(token)
                    process = process_of(daemon)
                    time.sleep(wait_s)
                    idle, before = resident_mb(process), cpu_s(process)
                    ask(caller, "hello")
                    first, held = cpu_s(process) - before, resident_mb(process)
                    before = cpu_s(process)
                    ask(caller, "hello again")
                    rounds.append((first, cpu_s(process) - before, idle, held))
        check_streamed(model)
    at_once, quiet = ([statistics.median(values) for values in zip(*seen[wait_s], strict=True)] for wait_s in seen)
    how = f"{WHERE}, median of {bench.runs}"
    return [
        Figure(what="first hello, at once", value=at_once[0], unit="CPU-s", how=how, goal=1.2),
        Figure(what="first hello, a quiet minute after ready", value=quiet[0], unit="CPU-s", how=how, goal=0.3),
        Figure(what="a later hello", value=quiet[1], unit="CPU-s", how=how),
        Figure(what="memory a minute after ready, lived in", value=quiet[2], unit="MB", how="resident"),
        Figure(what="memory after its first hello", value=quiet[3], unit="MB", how="resident", goal=265),
    ]
