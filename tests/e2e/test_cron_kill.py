"""Processes on one ledger are killed at random while jobs come each second: a slot runs once, or is told missed."""

import logging
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e.clockroom import Clockroom, check
from tests.e2e.crew import Crew
from tests.e2e.daemon import Daemon
from tests.postgres import private_postgres

log = logging.getLogger(__name__)


def survive(daemons: Sequence[Daemon], *, messages: int, prompts: int, kills: int, seed: int) -> None:
    room = Clockroom(daemons)
    room.add_jobs(messages, prompts)
    for daemon in room.daemons:
        daemon.start()
    room.wait_for_runs(1)  # else a quick machine is through with the kills before there is anything to lose
    room.die(kills, seed)
    room.wait_for_runs(11)
    end = datetime.now(UTC)
    kept = room.wait_until(end)
    for daemon in room.daemons:
        assert daemon.stop() == 0
    states = check(kept, room.told(), end)
    assert states["done"] > 10
    log.info("%d kills and more; slots: %s", kills, states)


@pytest.fixture
def one(tmp_path: Path) -> Iterator[list[Daemon]]:
    """A daemon whose tables are looked at while it runs."""
    made = Daemon(tmp_path / "home", allow_second_process=1, shutdown_grace_s=2)
    yield [made]
    made.close()


@pytest.fixture
def two(tmp_path: Path) -> Iterator[list[Daemon]]:
    """Two daemons on one home."""
    made = [Daemon(tmp_path / "home", allow_second_process=1, shutdown_grace_s=2) for _ in range(2)]
    for number, daemon in enumerate(made):
        daemon.output = tmp_path / f"daemon{number}.log"
    yield made
    for daemon in made:
        daemon.close()


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[list[Daemon]]:
    """Two workers that are not started yet."""
    with private_postgres() as url:
        crew = Crew(tmp_path, url, shutdown_grace_s=2)
        yield list(crew.workers)
        for worker in crew.workers:
            worker.close()


def test_each_slot_runs_once_over_kills(two: list[Daemon]) -> None:
    survive(two, messages=6, prompts=1, kills=3, seed=7)


def test_each_prompt_is_asked_once_over_kills(one: list[Daemon]) -> None:
    survive(one, messages=3, prompts=2, kills=3, seed=8)


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [31, 32])
def test_ten_jobs_a_second_survive_fifteen_kills(two: list[Daemon], seed: int) -> None:
    survive(two, messages=9, prompts=1, kills=15, seed=seed)


@pytest.mark.full
@pytest.mark.timeout(900)
def test_prompts_survive_fifteen_kills(one: list[Daemon]) -> None:
    survive(one, messages=2, prompts=3, kills=15, seed=33)


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.names_its_database("several processes on a server of their own")
def test_ten_jobs_a_second_and_prompts_survive_fifteen_kills_of_two_workers(workers: list[Daemon]) -> None:
    survive(workers, messages=7, prompts=3, kills=15, seed=41)
