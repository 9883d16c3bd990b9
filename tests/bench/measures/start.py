"""Start-up in CPU-seconds, then the memory, the CPU share and the threads of a daemon that has nothing to do."""

import statistics
import time
from pathlib import Path

from tests.bench.figure import Bench, Figure
from tests.bench.processes import add_model, ask, check_streamed, cpu_s, process_of, resident_mb, running
from tests.e2e.caller import Caller
from tests.scripted_server import ScriptedServer, rule

SETTLE_S = 20.0


def measure(bench: Bench) -> list[Figure]:
    """Six lines: to ready on a new and on a known home, idle, after a turn of either kind of model."""
    known = bench.folder / "known" / "home"
    _to_ready(known)  # compiles the bytecode, makes the tables
    new = [_to_ready(bench.folder / f"new-{number}" / "home") for number in range(bench.runs)]
    again = [_to_ready(known) for _ in range(bench.runs)]
    how = f"`cortex serve` to /readyz 200, user + system time of the process tree, median of {bench.runs}"
    figures = [
        Figure(
            what="start on a known home",
            value=statistics.median(again),
            unit="CPU-s",
            how=how,
            goal=1.5,
            stretch=1.0,
        ),
        Figure(what="start on a new home, tables made", value=statistics.median(new), unit="CPU-s", how=how),
    ]
    return figures + _idle(known)


def _to_ready(home: Path) -> float:
    with running(home) as daemon:
        return cpu_s(process_of(daemon))


def _idle(home: Path) -> list[Figure]:
    with running(home) as daemon, ScriptedServer(rule(".", "Hello. What can I do?")) as model:
        process = process_of(daemon)
        time.sleep(SETTLE_S / 2)  # the engine looks for runs to take up at its start, then less often
        before = cpu_s(process)
        time.sleep(SETTLE_S)
        share = (cpu_s(process) - before) / SETTLE_S * 100
        idle, threads = resident_mb(process), process.num_threads()
        with Caller(daemon) as caller:
            caller.set_up()
            ask(caller, "add milk and eggs to my shopping list")
            time.sleep(SETTLE_S)
            after_offline = resident_mb(process)
            add_model(caller, model)
            ask(caller, "hello")
            time.sleep(SETTLE_S)
            after_sdk = resident_mb(process)
        check_streamed(model)
    return [
        Figure(what="idle memory", value=idle, unit="MB", how="resident, 30 s after ready", goal=130, stretch=95),
        Figure(what="memory after a turn of the offline model", value=after_offline, unit="MB", how="20 s after it"),
        Figure(what="memory after a turn of an OpenAI model", value=after_sdk, unit="MB", how="the same process"),
        Figure(what="idle CPU", value=share, unit="% of a core", how="over 20 s, nobody logged in", goal=1.0),
        Figure(what="threads, idle", value=threads, unit="", how="30 s after ready"),
    ]
