"""3,000 turns, 50 at once, of a daemon that nobody restarts: what grows with them in memory, files and connections."""

import time
from contextlib import ExitStack

import psutil  # type: ignore[import-untyped]  # ships no types
from sqlalchemy import func, select

from cortex.base.turn import LOOP_ENDS
from cortex.storage.schema import TurnTable
from tests.bench.figure import Bench, Figure
from tests.bench.processes import add_model, cpu_s, process_of, resident_mb, running
from tests.databases import rows_of
from tests.e2e.caller import Caller
from tests.e2e.daemon import Daemon
from tests.scripted_server import ScriptedServer, Use, rule

PEOPLE, AT_ONCE = 20, 50  # three at once are the most of one person
TURNS_A_RUN = 600
TURNS_A_CONVERSATION = 12
QUIET_S = 25.0  # until connections that nobody needs are closed
WAIT_S = 300.0


def measure(bench: Bench) -> list[Figure]:
    """Four lines: the first fifth of the turns warms up what stays."""
    waves = TURNS_A_RUN * bench.runs // AT_ONCE
    milk = rule("milk", Use("task_create", {"title": "milk"}), "It is on the list. " * 20)
    with (
        ScriptedServer(milk) as model,
        running(bench.folder / "home") as daemon,
        ExitStack() as stack,
    ):
        ada = stack.enter_context(Caller(daemon)).set_up()
        add_model(ada, model)
        people = [ada, *(stack.enter_context(ada.invite(f"P{number}")) for number in range(PEOPLE - 1))]
        process = process_of(daemon)
        _talk(daemon, people, waves // 5)
        warm, used_s = _held(process), cpu_s(process)
        _talk(daemon, people, waves - waves // 5)
        used_s = cpu_s(process) - used_s
        held = _held(process)
        failed = _turns(daemon, state="failed")
    turns = waves * AT_ONCE
    how = f"{turns:,} turns with one call, {AT_ONCE} at once, of {PEOPLE} people; against {turns // 5:,} turns"
    return [
        Figure(what="many turns, memory", value=(held[0] / warm[0] - 1) * 100, unit="% more", how=how, goal=10),
        Figure(what="many turns, open files", value=held[1] - warm[1], unit="more", how=f"{held[1]} in all", goal=0),
        Figure(what="many turns, connections", value=held[2] - warm[2], unit="more", how=f"{held[2]} in all", goal=0),
        Figure(what="many turns, failed", value=failed, unit="", how=how, goal=0),
        Figure(what="many turns, CPU of each", value=used_s / (turns - turns // 5) * 1000, unit="ms", how=how),
    ]


def _talk(daemon: Daemon, people: list[Caller], waves: int) -> None:
    """So many messages into each of the conversations, all at once; new conversations now and then."""
    places = list[str]()
    for wave in range(waves):
        if wave % TURNS_A_CONVERSATION == 0:
            places = ["new"] * AT_ONCE
        places = [
            people[number % PEOPLE].send(place, f"add milk, please, for the {wave}. time")
            for number, place in enumerate(places)
        ]
        _until_idle(daemon)


def _until_idle(daemon: Daemon) -> None:
    ends_s = time.monotonic() + WAIT_S
    while _turns(daemon) > 0:
        if time.monotonic() > ends_s:
            raise TimeoutError("the turns did not end")
        time.sleep(0.2)


def _turns(daemon: Daemon, state: str = "") -> int:
    """How many turns are in this state, or have not ended."""
    which = TurnTable.state == state if state else TurnTable.state.not_in(LOOP_ENDS)
    with rows_of(daemon.home) as rows:
        return rows.execute(select(func.count()).where(which)).scalar_one()


def _held(process: psutil.Process) -> tuple[float, int, int]:
    """Resident megabytes, open files and connections once nobody asks for anything."""
    time.sleep(QUIET_S)
    connections = [one for one in process.net_connections() if one.status != psutil.CONN_LISTEN]
    return resident_mb(process), process.num_fds(), len(connections)
