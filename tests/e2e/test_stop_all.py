"""The emergency stop on the real daemon: all work ends within two seconds, and none begins until it is lifted."""

import logging
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from cortex.app import Cortex
from cortex.base.user import User
from cortex.storage.approvals import GrantsRepository
from cortex.storage.audit import AuditRepository
from cortex.storage.schema import TurnTable
from cortex.storage.turns import AllTurnsRepository, TurnRow
from tests.children import run
from tests.e2e.caller import PASSWORD, Caller
from tests.e2e.crew import Crew, until
from tests.e2e.daemon import Daemon
from tests.e2e.person import poll
from tests.e2e.tables import ask
from tests.postgres import private_postgres
from tests.scripted_server import ScriptedServer, Use, rule

NAP = f"86399.{os.getpid()}"  # of no other process on this machine
SLEEPING = {"command": f"sleep {NAP} & sleep {NAP}", "timeout_s": 60}
TALE = "tell a tale without an end"
RAIN = "".join(f"and then it rained on day {day}, " for day in range(600))  # three minutes, word by word
STOPPED = "Everything was stopped"

log = logging.getLogger(__name__)


@contextmanager
def storyteller() -> Iterator[ScriptedServer]:
    """A model that tells without end, naps in the shell, and hands over."""
    rules = (
        rule("^nap", Use("shell_exec", SLEEPING, is_blind=True), "I have slept."),
        rule(
            "^hand over",
            Use("spawn_agent", {"task": f"Please {TALE}."}, is_blind=True),
            RAIN,
        ),
        rule("tale", RAIN),
        rule("hello", "Hello to you too."),
    )
    with ScriptedServer(*rules) as server:
        server.delay_s = 0.05
        yield server


def settle(caller: Caller, model: ScriptedServer) -> None:
    """Be the admin, who talks to this model."""
    caller.set_up()
    form = {"provider": "openai", "model": "s", "base_url": model.base_url, "api_key": model.api_key}
    caller.post("/models", name="teller", streams="on", tools="on", **form)


def naps() -> int:
    """How many processes of the shell's command live."""
    found = 0
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += one.read_bytes().startswith(b"sleep\0" + NAP.encode())
        except OSError:
            continue  # it ended meanwhile
    return found


async def _unfinished(cortex: Cortex, ada: User) -> list[TurnRow]:
    return list(await cortex.runtime.db.repository(AllTurnsRepository).unfinished())


async def _stopped(cortex: Cortex, ada: User) -> set[str]:
    async with cortex.runtime.db.session_scope(reading=True) as session:
        statement = select(TurnTable.channel).where(TurnTable.state == "stopped")
        return set((await session.execute(statement)).scalars())


async def _grants(cortex: Cortex, ada: User) -> int:
    return len(await cortex.runtime.db.repository(GrantsRepository, ada.id).list())


async def _grant(cortex: Cortex, ada: User) -> None:
    until_then = cortex.runtime.clock() + timedelta(hours=1)
    await cortex.runtime.db.repository(GrantsRepository, ada.id).add("shell_exec", "here", None, until_then)


async def _audited(cortex: Cortex, ada: User) -> list[str]:
    return [row.action for row in await cortex.runtime.db.repository(AuditRepository).list()]


def busy(daemon: Daemon) -> list[TurnRow]:
    """What runs: turns, jobs and agents; no message that waits."""
    return [row for row in ask(daemon, _unfinished) if row.state != "queued"]


def nap_in_shell(caller: Caller) -> None:
    """A chat whose shell command, which a person allowed, leaves a child behind and lasts a day."""
    nap = caller.send("new", "nap in the shell")
    asked = poll(lambda: re.findall(r"/approvals/(\w+)", caller.get(f"/c/{nap}").text))
    caller.post(f"/approvals/{asked[0]}", choice="once")
    until(lambda: naps() == 2, every_s=0.05)


def begin(caller: Caller, daemon: Daemon) -> str:
    """Have a shell command, a model without end, an agent and a job at work, all at once; the job."""
    nap_in_shell(caller)
    caller.send("new", "hand over to an agent")
    caller.post("/jobs/new", name="Tales", prompt=TALE, when="every day at 2:30", time_zone="UTC")
    job = str(re.findall(r'<tr id="job-(\w+)"', caller.get("/jobs").text)[0])
    caller.post(f"/jobs/{job}/run")
    until(lambda: {row.channel for row in busy(daemon)} >= {"chat", "agent", "cron"}, every_s=0.2)
    return job


def command(daemon: Daemon, *words: str) -> subprocess.CompletedProcess[str]:
    """The command line beside the daemon."""
    return run(words, env=daemon._environment(), cwd=daemon.home)


def lasts_s(daemon: Daemon, order: Callable[[], object]) -> float:
    """How long it takes from the order until neither a process of the shell nor a turn is left."""
    started_s = time.monotonic()
    order()
    until(lambda: naps() == 0, every_s=0.01)
    until(lambda: busy(daemon) == [], every_s=0.05)
    return time.monotonic() - started_s


@pytest.fixture
def model() -> Iterator[ScriptedServer]:
    with storyteller() as server:
        yield server


@pytest.fixture
def caller(daemon: Daemon, model: ScriptedServer) -> Iterator[Caller]:
    daemon.start()
    with Caller(daemon) as made:
        settle(made, model)
        yield made


def test_the_page_stops_all_work_and_nothing_starts_over_a_kill_until_it_is_lifted(
    daemon: Daemon, caller: Caller, model: ScriptedServer
) -> None:
    job = begin(caller, daemon)
    ask(daemon, _grant)
    assert ask(daemon, _grants) == 1
    took_s = lasts_s(daemon, lambda: caller.post("/stop-all", whom="everybody"))
    log.info("everything stood still after %.2f s", took_s)
    assert ask(daemon, _stopped) == {"chat", "agent", "cron"}
    assert ask(daemon, _grants) == 0
    assert STOPPED in caller.get("/tasks").text
    asked = len(model.log)
    waiting = caller.send("new", "hello there")
    caller.post(f"/jobs/{job}/run")
    daemon.kill9()
    daemon.start()
    until(lambda: STOPPED in caller.get(f"/c/{waiting}").text, every_s=0.1)
    assert 'class="queued"' in caller.get(f"/c/{waiting}").text
    assert "everybody by Ada" in caller.get("/health").text
    assert [row.text for row in ask(daemon, _unfinished)] == ["hello there"]
    assert len(model.log) == asked, "a model was asked while everything was stopped"

    caller.post("/confirm", password=PASSWORD)
    caller.post("/stop-all/release", scope="everybody")
    poll(lambda: "Hello to you too" in caller.get(f"/c/{waiting}").text)
    assert STOPPED not in caller.get("/tasks").text
    until(lambda: any(row.channel == "cron" for row in busy(daemon)), every_s=0.1)
    assert {"work.stopped", "work.released"} <= set(ask(daemon, _audited))


ORDERS: dict[str, Callable[[Daemon], object]] = {
    "command": lambda daemon: command(daemon, "stop-all"),
    "signal": lambda daemon: os.kill(daemon.pid, signal.SIGUSR1),
    "file": lambda daemon: (daemon.home / "STOP").touch(),
}


@pytest.mark.parametrize(
    "order", [ORDERS["file"], *(pytest.param(ORDERS[one], marks=pytest.mark.full) for one in ("command", "signal"))]
)
def test_a_shell_ends_by_whatever_way_the_stop_is_ordered_and_the_command_lifts_it(
    daemon: Daemon, caller: Caller, model: ScriptedServer, order: Callable[[Daemon], object]
) -> None:
    nap_in_shell(caller)
    lasts_s(daemon, lambda: order(daemon))
    assert ask(daemon, _stopped) == {"chat"}
    poll(lambda: STOPPED in caller.get("/tasks").text)
    assert command(daemon, "doctor").stdout.count("cortex stop-all --release") == 1
    waiting = caller.send("new", "hello there")
    lifted = command(daemon, "stop-all", "--release")
    assert (lifted.returncode, "nothing is stopped" in lifted.stdout) == (0, True), lifted.stderr
    poll(lambda: "Hello to you too" in caller.get(f"/c/{waiting}").text)
    assert not (daemon.home / "STOP").exists()


def test_what_is_ordered_while_nobody_runs_ends_what_a_kill_left(
    daemon: Daemon, caller: Caller, model: ScriptedServer
) -> None:
    caller.send("new", TALE)
    until(lambda: any(row.state == "running" for row in busy(daemon)), every_s=0.1)
    until(lambda: len(model.log) == 1)
    daemon.kill9()
    said = command(daemon, "stop-all")
    assert "1 of the turns" in said.stdout, said.stderr
    daemon.start()
    until(lambda: busy(daemon) == [], every_s=0.1)
    assert len(model.log) == 1, "the turn was taken up although everything was stopped"


@pytest.mark.full
@pytest.mark.names_its_database("several processes on a PostgreSQL of their own")
def test_a_page_stops_what_other_processes_run(tmp_path: Path, model: ScriptedServer) -> None:
    with private_postgres() as url, Crew(tmp_path, url) as crew, Caller(crew.pages[0]) as caller:
        settle(caller, model)
        begin(caller, crew.pages[0])
        took_s = lasts_s(crew.pages[0], lambda: caller.post("/stop-all", whom="everybody"))
        log.info("all processes stood still after %.2f s", took_s)
        assert ask(crew.pages[0], _stopped) == {"chat", "agent", "cron"}
        waiting = caller.send("new", "hello there")
        lifted = command(crew.pages[0], "stop-all", "--release")
        assert (lifted.returncode, "nothing is stopped" in lifted.stdout) == (0, True), lifted.stderr
        poll(lambda: "Hello to you too" in caller.get(f"/c/{waiting}").text)
