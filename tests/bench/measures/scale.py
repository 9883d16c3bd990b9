"""1, 2 and 4 workers on one PostgreSQL with a model that answers at once: turns, processor, jobs due together."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from sqlalchemy import func, select

from cortex.storage.schema import TurnTable
from tests.bench.due import due_at_once
from tests.bench.figure import Bench, Figure
from tests.bench.houses import House, house
from tests.bench.processes import add_model, ask
from tests.e2e.caller import Caller
from tests.e2e.crew import until
from tests.scripted_server import ScriptedServer, rule

WORKERS = (1, 2, 4)
PEOPLE, TURNS, JOBS = 8, 5, 100
WAIT_S = 900.0
LOOK_S = 0.25


def measure(bench: Bench) -> list[Figure]:
    """Turns at once and jobs due at once for each number of workers; `--database` does not matter."""
    return [figure for count in WORKERS for figure in _with(bench, count)]


def _with(bench: Bench, count: int) -> list[Figure]:
    with ScriptedServer(rule("hello", "Hello there.")) as model, ExitStack() as stack:
        reach = {"model_hosts": f"127.0.0.1:{model.port}"}  # members may ask it too
        opened = stack.enter_context(house(bench, "processes", count, **reach))
        ada = stack.enter_context(Caller(opened.door)).set_up()
        people = [ada, *(stack.enter_context(ada.invite(f"P{number}")) for number in range(PEOPLE - 1))]
        for one in people:
            add_model(one, model)
            ask(one, "hello")  # what is loaded with the first
        return [*_chats(opened, people), *due_at_once(opened, ada, "prompt", bench.count(JOBS))]


def _ended(opened: House) -> int:
    """How many turns have; RuntimeError for one that did not do well: another thing was measured."""
    with opened.rows() as connection:
        states = connection.execute(
            select(TurnTable.state, func.count()).where(TurnTable.ended_at.is_not(None)).group_by(TurnTable.state)
        )
        counts = {state: count for state, count in states}
    if counts.keys() - {"done"}:
        raise RuntimeError("turns did not end well")
    return counts.get("done", 0)


def _chats(opened: House, people: list[Caller]) -> list[Figure]:
    """Each of the people sends messages into chats of their own, all at the same time."""
    before, used_s, began_s = _ended(opened), opened.cpu_s(), time.perf_counter()
    with ThreadPoolExecutor(PEOPLE) as pool:
        for sending in [pool.submit(_send, one) for one in people]:
            sending.result()
    turns = PEOPLE * TURNS
    until(lambda: _ended(opened) - before >= turns, WAIT_S, LOOK_S)
    took_s, each_ms = time.perf_counter() - began_s, (opened.cpu_s() - used_s) / turns * 1000
    how = f"{opened.name}, {turns} messages of {PEOPLE} people at once"
    return [
        Figure(what="scale, turns a second", value=turns / took_s, unit="1/s", how=how),
        Figure(what="scale, CPU a turn", value=each_ms, unit="ms", how=how),
    ]


def _send(person: Caller) -> None:
    for _ in range(TURNS):
        person.send("new", "hello")
