"""The engine is killed again and again: every run ends, and no step whose result was kept is made again."""

import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from cortex.engine.lives import LIVES_MAX, LIVES_MOVED_MAX
from tests.children import ROOT, Child
from tests.e2e.engine_waiting import BEHIND, WAITING
from tests.patience import PATIENCE_S
from tests.postgres import private_postgres

pytestmark = pytest.mark.names_its_database("a file and a server of their own")


class Alone(Child):
    """A process that has an engine and nothing else of Cortex."""

    def __init__(self, name: str, *arguments: str, errors: Path) -> None:
        self.module = f"tests.e2e.{name}"
        super().__init__(arguments, env={"PATH": "/usr/bin:/bin"}, cwd=ROOT, output=errors)

    def kill(self) -> None:
        """No warning, no clean-up."""
        if self.poll() is None:
            self.send_signal(signal.SIGKILL)
        self.wait()


def begun(name: str, folder: Path, *arguments: str) -> Alone:
    return Alone(name, f"sqlite:///{folder}/engine.db", f"{folder}/log", *arguments, errors=folder / "errors")


def wait_for(log: Path, word: str, times: int) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while log.read_text().count(word) < times:
        assert time.monotonic() < deadline_s, log.read_text()
        time.sleep(0.02)


class Crew:
    """The processes of one test; whatever is left of them is killed at the end."""

    def __init__(self, url: str, folder: Path, *, runs: int, steps: int, kind: str) -> None:
        self.log = folder / "log"
        self.log.touch()
        self._arguments = (url, str(self.log), str(runs), str(steps), kind)
        self._folder = folder
        self.living: list[Alone] = []

    def begin(self, executor_id: str) -> Alone:
        process = Alone("engine_child", *self._arguments, executor_id, errors=self._folder / "errors")
        self.living.append(process)
        return process

    def kill(self, process: Alone) -> None:
        process.kill()
        self.living.remove(process)

    def lines(self) -> list[list[str]]:
        return [line.split() for line in self.log.read_text().splitlines()]

    def wait_for(self, count: int, word: str) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while Counter(line[0] for line in self.lines())[word] < count:
            assert time.monotonic() < deadline_s, (word, (self._folder / "errors").read_text()[-2000:])
            time.sleep(0.02)

    def errors(self) -> str:
        return (self._folder / "errors").read_text()


@pytest.fixture
def crews() -> Iterator[list[Crew]]:
    made: list[Crew] = []
    yield made
    for crew in made:
        for process in list(crew.living):
            crew.kill(process)


def check(crew: Crew, runs: int, steps: int, kills: int) -> None:
    lines = crew.lines()
    assert {line[1] for line in lines if line[0] == "end"} == {f"run:{number}" for number in range(runs)}
    begun: Counter[tuple[str, str]] = Counter()
    kept: set[tuple[str, str]] = set()
    for word, *facts in lines:
        match word:
            case "begin":
                step = (facts[0], facts[1])
                assert step not in kept, f"{step} was complete and was made again"
                begun[step] += 1
            case "kept":
                kept.add((facts[0], facts[1]))
    assert len(begun) == len(kept) == runs * steps
    # A step cut between its effect and its record is made again: at most those in flight at a kill.
    assert sum(begun.values()) - len(begun) <= kills * runs * 3


def test_runs_survive_kills_on_sqlite(tmp_path: Path, crews: list[Crew]) -> None:
    chance = random.Random(7)  # noqa: S311 - moments of kills, not secrets
    crew = Crew(f"sqlite:///{tmp_path}/engine.db", tmp_path, runs=10, steps=90, kind="start")
    crews.append(crew)
    kills = 4
    for life in range(kills):
        process = crew.begin("")
        crew.wait_for(life + 1, "ready")
        time.sleep(chance.uniform(0.4, 1.2))
        crew.kill(process)
    last = crew.begin("")
    assert last.wait() == 0, crew.errors()
    crew.living.remove(last)
    check(crew, runs=10, steps=90, kills=kills)


@pytest.mark.parametrize(
    ("where", "deaths", "other"),
    # The life in which the wait ended is not in vain.
    [
        ("at once", 5, "unknown"),
        pytest.param("behind a wait", 6, "unknown", marks=pytest.mark.full),
        ("beside another", 5, "done"),
        pytest.param("while it shows", 1 + LIVES_MOVED_MAX, "unknown", marks=pytest.mark.full),
    ],
    ids=["at once", "behind a wait", "beside another", "while it shows"],
)
def test_a_run_that_kills_its_process_is_given_up_alone(tmp_path: Path, where: str, deaths: int, other: str) -> None:
    codes = [begun("engine_poison", tmp_path, where).wait() for _ in range(deaths + 1)]
    assert codes == [-9] * deaths + [0]
    assert (tmp_path / "log").read_text().split() == ["life"] * deaths + ["failed", other]


def test_runs_that_wait_or_stand_in_line_outlive_any_number_of_kills(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    for life in range(8):
        which, word, times = ("again", "waiting", life) if life else ("first", "begun", 3)
        process = begun("engine_waiting", tmp_path, which)
        try:
            wait_for(log, word, times)
        finally:
            process.kill()
    assert begun("engine_waiting", tmp_path, "answer").wait() == 0
    ended = [line.split()[1:] for line in log.read_text().splitlines() if line.startswith("ended")]
    assert ended == [[run_id, "done"] for run_id in (*WAITING, BEHIND)]


@pytest.mark.parametrize(("which", "word"), [("shows", "shown"), ("starts", "started starts")])
def test_kills_while_a_run_moves_or_while_the_process_starts_give_nothing_up(
    tmp_path: Path, which: str, word: str
) -> None:
    log = tmp_path / "log"
    log.touch()
    lives = [
        ("begins", "begun", 1),
        ("begins", "begun", 2),
        *((which, word, number + 1) for number in range(LIVES_MAX)),
    ]
    for kind, sign, times in lives:
        process = begun("engine_unlucky", tmp_path, kind)
        try:
            wait_for(log, sign, times)
        finally:
            process.kill()
    assert begun("engine_unlucky", tmp_path, "ends").wait() == 0
    assert log.read_text().split()[-1] == "done"


@pytest.mark.full
def test_runs_survive_kills_of_two_workers_on_postgres(tmp_path: Path, crews: list[Crew]) -> None:
    chance = random.Random(11)  # noqa: S311 - moments of kills, not secrets
    kills = 5
    with private_postgres() as url:
        crew = Crew(url, tmp_path, runs=50, steps=120, kind="worker")
        crews.append(crew)
        pair = [crew.begin("a0"), crew.begin("b0")]
        crew.wait_for(2, "ready")
        for life in range(1, kills + 1):
            time.sleep(chance.uniform(1.0, 3.5))
            side = chance.randrange(2)
            crew.kill(pair[side])
            # One comes back under its old name, the next never.
            pair[side] = crew.begin(f"{'ab'[side]}{life if life % 2 else 0}")
            crew.wait_for(2 + life, "ready")
        for process in pair:
            assert process.wait(2 * PATIENCE_S) == 0, crew.errors()
            crew.living.remove(process)
        check(crew, runs=50, steps=120, kills=kills)
