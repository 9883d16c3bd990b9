"""A house under a meter: one process on SQLite or PostgreSQL, or several on PostgreSQL; and a person who looks on."""

import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from cortex.base.settings import load_settings
from cortex.storage.commits import CHANNEL, WROTE
from tests.bench.figure import Bench, Figure, Unmeasured, percentile
from tests.bench.processes import cpu_s, process_of, resident_mb, running
from tests.children import Program
from tests.databases import rows_at
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
    """Its processes, and those of them that serve pages. `name`: its kind in words."""

    name: str
    url: str
    pages: Sequence[Daemon]
    parts: Sequence[Daemon]

    @property
    def door(self) -> Daemon:
        """The last page: the link that was made last lets in."""
        return self.pages[-1]

    def cpu_s(self) -> float:
        """Processor time of all its processes so far; PostgreSQL's own is not among it."""
        return sum(cpu_s(process_of(part)) for part in self.parts)

    def memory_mb(self) -> float:
        """Resident memory of all its processes."""
        return sum(resident_mb(process_of(part)) for part in self.parts)

    def rows(self) -> AbstractContextManager[Connection]:
        """Its tables from here; commits in the end."""
        return rows_at(self.url)

    def fill(self, change: Callable[[Connection], None]) -> None:
        """Write rows beside the house, in one transaction; PostgreSQL then knows how many, and tells the processes."""
        with self.rows() as connection:
            change(connection)
            if connection.dialect.name == "postgresql":
                # Which does so by itself within a minute; nobody does on SQLite.
                connection.execute(text("ANALYZE"))
                said = f'{{"f": "", "k": "{WROTE}", "c": ""}}'
                connection.execute(text("SELECT pg_notify(:channel, :said)"), {"channel": CHANNEL, "said": said})


@contextmanager
def house(bench: Bench, kind: str, workers: int = WORKERS, **settings: object) -> Iterator[House]:
    """Open an empty one of this kind; all of it ends with the block. `workers`: of several processes."""
    home = Path(tempfile.mkdtemp(dir=bench.folder)) / "home"
    settings = {"offline_delay_ms": 0, **settings}
    with ExitStack() as stack:
        url = "" if kind == "sqlite" else stack.enter_context(_postgresql())
        if kind != "processes":
            door = stack.enter_context(running(home, database_url=url, **settings))  # type: ignore[arg-type]  # it names none of its own
            yield House(KINDS[kind], load_settings(None, home=home, database_url=url).database, (door,), (door,))
            return
        pages = [Programs(home, "web", f"web{number}", url, **settings) for number in range(PAGES)]
        working = [Programs(home, "worker", f"worker{number}", url, **settings) for number in range(workers)]
        for part in (*pages, *working):
            stack.callback(part.close)
            part.start()
        name = KINDS[kind].replace(f"{WORKERS} workers", f"{workers} worker{'s' if workers > 1 else ''}")
        yield House(name, url, pages, (*pages, *working))


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


class MostMemory:
    """The most memory that the house has during the block, looked at ten times a second."""

    def __init__(self, house: House) -> None:
        self.mb = 0.0
        self._house = house
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "MostMemory":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._is_over.wait(0.1):
            self.mb = max(self.mb, self._house.memory_mb())
