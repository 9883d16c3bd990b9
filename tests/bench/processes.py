"""The real daemon under a meter: CPU time, memory and threads of its process tree, by psutil."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import psutil  # type: ignore[import-untyped]  # ships no types

from tests.bench.figure import Unmeasured
from tests.children import Child, Program
from tests.e2e.caller import Caller
from tests.e2e.daemon import Daemon
from tests.patience import PATIENCE_S
from tests.scripted_server import ScriptedServer

MB = 1e6
DATABASES = ("cortex.db", "engine.db")
UNENDED_TURNS = "SELECT count(*) FROM turns WHERE state IN ('queued', 'running', 'waiting')"
UNENDED_RUNS = "SELECT count(*) FROM workflow_status WHERE status IN ('PENDING', 'ENQUEUED')"
LOOK_EVERY_S = 0.1


@contextmanager
def running(home: Path, *, starts: type[Child | Program] = Program, **settings: object) -> Iterator[Daemon]:
    """A daemon that answers /readyz with 200; ended in order behind the block."""
    daemon = Daemon(home, **{"delay_ms": 0, **settings})  # type: ignore[arg-type]  # its settings are of many types
    daemon.starts = starts
    daemon.start()
    try:
        while httpx.get(f"{daemon.origin}/readyz", trust_env=False).status_code != 200:
            time.sleep(0.01)
        yield daemon
        daemon.stop()
    finally:
        daemon.close()


def process_of(daemon: Daemon) -> psutil.Process:
    """The daemon's process."""
    return psutil.Process(daemon.pid)


def cpu_s(process: psutil.Process) -> float:
    """User and system time of the process and all its children so far."""
    used = process.cpu_times()
    living = [child.cpu_times() for child in process.children(recursive=True)]
    ended = used.children_user + used.children_system
    return float(used.user + used.system + ended + sum(child.user + child.system for child in living))


def resident_mb(process: psutil.Process) -> float:
    """Resident memory of the process and its children."""
    return float(sum(one.memory_info().rss for one in (process, *process.children(recursive=True))) / MB)


def ask(caller: Caller, text: str, conversation: str = "new") -> str:
    """Send a message and wait for the end of its turn; the conversation."""
    conversation = caller.send(conversation, text)
    until_idle(caller, conversation)
    return conversation


def add_model(caller: Caller, model: ScriptedServer) -> None:
    """Set the scripted model up as the page's form does with its boxes ticked: a box that is not sent is off."""
    reach = {"provider": "openai", "model": "scripted-1", "base_url": model.base_url, "api_key": model.api_key}
    boxes = {"streams": "1", "tools": "1", "parallel_calls": "1"}
    caller.post("/models", name="scripted", context_tokens="128000", **boxes, **reach)  # what is said stays whole


def check_streamed(model: ScriptedServer) -> None:
    """RuntimeError unless the model was asked, and every time for a stream: else another thing was measured."""
    asked = [bool(seen.body.get("stream")) for seen in model.log]
    if not asked or not all(asked):
        raise RuntimeError(
            f"{asked.count(True)} of {len(asked)} answers of the scripted model were asked for as a stream"
        )


def until_idle(caller: Caller, conversation: str, patience_s: float = 30.0) -> None:
    """Until no answer is being written."""
    deadline_s = time.monotonic() + patience_s
    while 'data-running="0"' not in caller.get(f"/c/{conversation}").text:
        if time.monotonic() > deadline_s:
            raise TimeoutError("the turn did not end")
        time.sleep(0.1)


def until_ended(home: Path) -> None:
    """Until no turn is written and the engine has put the last one down. Asks the files, so that the daemon rests."""
    for _ in patiently("a turn did not end"):
        if not number_of(home / DATABASES[0], UNENDED_TURNS) and not number_of(home / DATABASES[1], UNENDED_RUNS):
            return


def number_of(file: Path, question: str) -> int:
    """The number that a database answers to this; Unmeasured where it knows no such table."""
    with closing(opened(file)) as rows:
        try:
            return int(rows.execute(question).fetchone()[0])
        except sqlite3.OperationalError as error:
            raise Unmeasured(f"{file.name} does not answer {question!r}: {error}") from error


def opened(file: Path) -> sqlite3.Connection:
    """A connection of its own, which only reads."""
    return sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=PATIENCE_S)


def patiently(otherwise: str) -> Iterator[None]:
    """Again and again; Unmeasured with these words when it takes longer than anything may."""
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        yield
        time.sleep(LOOK_EVERY_S)
    raise Unmeasured(otherwise)
