"""What is weighed, and how: a daemon is started, left alone, spoken to by one and by twenty, and looked at meanwhile.

Cortex, the bare program and the peers go through the same: `weigh`.
"""

import os
import sqlite3
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil  # type: ignore[import-untyped]  # ships no types

from tests.bench.lived import HELLO, MILK
from tests.bench.processes import cpu_s, resident_mb

AT_ONCE = 20
A_TALK = 20  # so many in one conversation, further ones in many: what grows with its length is another matter
SETTLE_S = 2.0  # until what is done behind an answer is done
PASSING = ("-wal", "-shm", "-journal", ".log", ".lock", ".pid")
DATABASES = (".db", ".sqlite", ".sqlite3")
Weights = dict[str, float]


class Unanswered(Exception):
    """A message was refused, or no whole answer came."""


class Subject(Protocol):
    """A daemon that can be weighed. `home`: where it stores what it stores."""

    name: str
    home: Path

    def running(self) -> AbstractContextManager[psutil.Process]:
        """The daemon from nothing to ready; ended behind the block."""
        ...

    def say(self, talk: int, text: str) -> float:
        """Send it in this conversation, wait for the whole answer; milliseconds until its first word. Unanswered."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How long it is left alone, how many turns are a mean, after how many in all the memory is read last."""

    quiet_s: float = 60.0
    idle_s: float = 30.0
    asked: int = 20
    turns: int = 300


def weigh(subject: Subject, plan: Plan) -> Weights:
    """Every row that can be had of it, by name (`table.py` has their units)."""
    with subject.running() as process:
        found = {"processor to ready": cpu_s(process)}
        found["first hello at once"] = _cost_s(process, lambda: subject.say(0, HELLO))
    with subject.running() as process:
        found["processor to ready"] = (found["processor to ready"] + cpu_s(process)) / 2
        return found | _alone(process, plan) | _spoken_to(subject, process, plan)


def _alone(process: psutil.Process, plan: Plan) -> Weights:
    ready_s = cpu_s(process)
    time.sleep(plan.quiet_s)
    found = {"memory a minute after ready": resident_mb(process), "processor in that minute": cpu_s(process) - ready_s}
    before_s = cpu_s(process)
    time.sleep(plan.idle_s)
    return {**found, "idle processor": (cpu_s(process) - before_s) / plan.idle_s * 100}


def _spoken_to(subject: Subject, process: psutil.Process, plan: Plan) -> Weights:
    found: Weights = {}
    words_ms: list[float] = []

    def turns(text: str, number: int) -> float:
        """Milliseconds of processor of one of them."""
        words_ms.clear()
        talks = (0 if turn < A_TALK else 1 + turn % AT_ONCE for turn in range(number))
        return _cost_s(process, lambda: words_ms.extend(subject.say(talk, text) for talk in talks)) / number * 1000

    found["first hello behind the minute"] = _cost_s(process, lambda: subject.say(0, HELLO))
    found["memory after 1 turn"] = resident_mb(process)
    found["later hello"] = turns(HELLO, plan.asked)
    found["later hello, first word"] = statistics.median(words_ms)
    found["memory after 20 turns"] = resident_mb(process)
    found["turn with one tool"] = turns(MILK, plan.asked)
    talks = range(1, AT_ONCE + 1)
    for talk in talks:
        subject.say(talk, HELLO)
    failed: list[int] = []
    found["20 at once"] = _cost_s(process, lambda: failed.extend(_all_at_once(subject, talks)))
    found["20 at once, unanswered"] = len(failed)
    found["memory after 20 at once"] = resident_mb(process)
    half = max(1, (plan.turns - 1 - 2 * plan.asked - 2 * AT_ONCE) // 2)
    for name, text in (("stored, a hello", HELLO), ("stored, a turn with one tool", MILK)):
        before = stored_bytes(subject.home)
        turns(text, half)
        found[name] = (stored_bytes(subject.home) - before) / half / 1000
    found["memory after 300 turns"] = resident_mb(process)
    return {**found, "threads": process.num_threads(), "descriptors": process.num_fds()}


def _cost_s(process: psutil.Process, act: Callable[[], object]) -> float:
    """Seconds of processor of the daemon until all of it is done."""
    before_s = cpu_s(process)
    act()
    time.sleep(SETTLE_S)
    return cpu_s(process) - before_s


def _all_at_once(subject: Subject, talks: range) -> list[int]:
    """Those that were not answered."""

    def failed(talk: int) -> int:
        try:
            subject.say(talk, HELLO)
        except Unanswered:
            return talk
        return 0

    with ThreadPoolExecutor(len(talks)) as threads:
        return [talk for talk in threads.map(failed, talks) if talk]


def stored_bytes(home: Path) -> int:
    """What all files there hold; of databases the pages that are used, with what is still in their logs."""
    files = [Path(folder) / name for folder, _, names in os.walk(home) for name in names]
    return sum(_held(file) for file in files if not file.name.endswith(PASSING))


def _held(file: Path) -> int:
    if not file.name.endswith(DATABASES):
        return file.stat().st_size
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=60)) as rows:
        pages, free, size = (
            rows.execute(f"PRAGMA {what}").fetchone()[0] for what in ("page_count", "freelist_count", "page_size")
        )
    return int((pages - free) * size)
