"""20 people who send at the same moment while a turn of each of them runs: how long the slowest is not answered."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier

from tests.bench.figure import Bench, Figure
from tests.bench.processes import ask, running, until_idle
from tests.e2e.caller import Caller

PEOPLE = 20
QUESTION = "tell me who you are"  # the offline model introduces itself, some 80 words
WAIT_S = 300.0


def measure(bench: Bench) -> list[Figure]:
    """One line: each round all send once, so that turns run, and once more together, which is measured."""
    with running(bench.folder / "home", delay_ms=12) as daemon, ExitStack() as stack:
        ada = stack.enter_context(Caller(daemon)).set_up()
        people = [ada, *(stack.enter_context(ada.invite(f"P{number}")) for number in range(PEOPLE - 1))]
        threads = stack.enter_context(ThreadPoolExecutor(PEOPLE))
        places = list(threads.map(lambda person: ask(person, QUESTION), people))
        slowest_s = []
        for _ in range(bench.runs):
            list(threads.map(lambda person, place: person.send(place, QUESTION), people, places))
            starts = [Barrier(PEOPLE)] * PEOPLE
            slowest_s.append(max(threads.map(_sent_s, people, places, starts)))
            for person, place in zip(people, places, strict=True):
                until_idle(person, place, WAIT_S)
    return [
        Figure(
            what="a message of each of 20 people at once, the slowest answer",
            value=sorted(slowest_s)[len(slowest_s) // 2],
            unit="s",
            how=f"{PEOPLE} turns of the offline model run, clients on this machine; worst {max(slowest_s):.1f} s",
            goal=2,
        )
    ]


def _sent_s(person: Caller, place: str, start: Barrier) -> float:
    start.wait(WAIT_S)
    begun_s = time.perf_counter()
    person.send(place, QUESTION)
    return time.perf_counter() - begun_s
