"""A house under a meter: one process on SQLite or PostgreSQL, or several on PostgreSQL; and a person who looks on."""

import asyncio
import statistics
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text

from cortex.base.settings import load_settings
from cortex.storage.db import Database
from tests.bench.figure import Bench, Figure, Unmeasured, percentile
from tests.bench.processes import cpu_s, process_of, resident_mb, running
from tests.children import Program
from tests.e2e.caller import Caller
from tests.e2e.crew import Part
from tests.e2e.daemon import Daemon
from tests.postgres import private_postgres

KINDS = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "processes": "PostgreSQL, 2 page processes, 4 workers"}
PAGES, WORKERS = 2, 4
PAUSE_S = 0.25  # of the person who looks on


class Programs(Part):
    """Parts as people start them: each loads itself."""

    starts = Program


@dataclass(frozen=True, slots=True)
class House:
    """Its processes; `door`: the one whose pages are asked. `name`: its kind in words."""

    name: str
    url: str
    door: Daemon
    parts: Sequence[Daemon]

    def cpu_s(self) -> float:
        """Processor time of all its processes so far; PostgreSQL's own is not among it."""
        return sum(cpu_s(process_of(part)) for part in self.parts)

    def memory_mb(self) -> float:
        """Resident memory of all its processes."""
        return sum(resident_mb(process_of(part)) for part in self.parts)

    def fill(self, change: Callable[[Connection], None]) -> None:
        """Write rows beside the house, in one transaction; PostgreSQL then knows how many."""

        async def filled(db: Database) -> None:
            async with db.session_scope() as session:
                await (await session.connection()).run_sync(change)
                if db.is_postgresql:  # which does so by itself within a minute; nobody does on SQLite
                    await session.execute(text("ANALYZE"))

        self.beside(filled)

    def beside(self, work: Callable[[Database], Coroutine[Any, Any, None]]) -> None:
        """Work on its tables from here."""

        async def worked() -> None:
            db = Database(self.url)
            try:
                await work(db)
            finally:
                await db.close()

        asyncio.run(worked())


@contextmanager
def house(bench: Bench, kind: str, **settings: object) -> Iterator[House]:
    """Open an empty one of this kind; all of it ends with the block."""
    home = bench.folder / kind / "home"
    home.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        url = "" if kind == "sqlite" else stack.enter_context(_postgresql())
        if kind != "processes":
            door = stack.enter_context(running(home, database_url=url, **settings))  # type: ignore[arg-type]  # it names none of its own
            yield House(KINDS[kind], load_settings(None, home=home, database_url=url).database, door, (door,))
            return
        pages = [Programs(home, "web", f"web{number}", url, **settings) for number in range(PAGES)]
        workers = [Programs(home, "worker", f"worker{number}", url, **settings) for number in range(WORKERS)]
        for part in (*pages, *workers):
            stack.callback(part.close)
            part.start()
        yield House(KINDS[kind], url, pages[-1], (*pages, *workers))  # the link that was made last lets in


@contextmanager
def _postgresql() -> Iterator[str]:
    with ExitStack() as stack:
        try:
            url = stack.enter_context(private_postgres())
        except pytest.skip.Exception as error:
            raise Unmeasured(str(error)) from error
        yield url


class Onlooker:
    """A person who opens these pages by turns in a thread, all through the block; `figure` says how long they took."""

    def __init__(self, house: House, person: Caller, paths: Sequence[str] = ("/c/new", "/healthz")) -> None:
        self._caller = Caller(house.door)
        self._caller.become(person.token)
        self._paths = paths
        self._took_ms: dict[str, list[float]] = {path: [] for path in paths}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "Onlooker":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        self._caller.__exit__()

    def figures(self, what: str, how: str) -> list[Figure]:
        """A line for each path: the median, and the slowest in words."""
        return [
            Figure(
                what=f"{what}, {path} meanwhile",
                value=statistics.median(took),
                unit="ms",
                how=f"{how}; {len(took)} looks, 95 of 100 in {percentile(took, 0.95):,.0f}, all in {max(took):,.0f} ms",
            )
            for path, took in self._took_ms.items()
            if took
        ]

    def _look(self) -> None:
        while not self._is_over.is_set():
            for path in self._paths:
                began_s = time.perf_counter()
                self._caller.get(path)
                self._took_ms[path].append((time.perf_counter() - began_s) * 1000)
            self._is_over.wait(PAUSE_S)


def looks(person: Caller, paths: Sequence[str], times: int = 5) -> dict[str, float]:
    """The median milliseconds that each of these pages takes once it is warm."""
    found = {}
    for path in paths:
        took = list[float]()
        for _ in range(times + 1):
            began_s = time.perf_counter()
            answer = person.get(path)
            took.append((time.perf_counter() - began_s) * 1000)
            if answer.status_code != 200:
                raise RuntimeError(f"{path}: {answer.status_code}")
        found[path] = statistics.median(took[1:])
    return found


def size_mb(home: Path) -> float:
    """The bytes of all files of a home, in MB."""
    return sum(one.stat().st_size for one in home.rglob("*") if one.is_file()) / 1e6
