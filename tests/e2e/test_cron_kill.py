"""Processes on one ledger are killed at random while jobs come each second: a slot runs once, or is told missed."""

import logging
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from cortex.app import Cortex
from cortex.base.user import User
from cortex.schedule.policies import Policy
from cortex.schedule.slots import MADE_UP, slots_between
from cortex.services.job_firing import QUEUE_FULL
from cortex.storage.job_rows import JobRow, JobValues
from cortex.storage.jobs import Jobs
from cortex.storage.notices import NoticeRow, Notices
from cortex.storage.slot_history import SlotHistory
from cortex.storage.slots import SlotRow
from cortex.storage.turns import TurnRow, Turns
from tests.e2e.crew import Crew
from tests.e2e.daemon import Daemon
from tests.e2e.tables import ask
from tests.postgres import private_postgres

END_S = 240.0
POLICIES: tuple[dict[str, Any], ...] = (
    {"on_miss": "catchup", "fire_within_s": 3600, "overlap": "queue"},
    {"on_miss": "once", "fire_within_s": 3600, "overlap": "queue"},
    {"on_miss": "skip", "overlap": "queue"},
)

TOO_MANY = {QUEUE_FULL, f"{Policy().catchup_most} at most are caught up"}  # a second's job on a slow machine

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What the tables hold of one job."""

    job: JobRow
    slots: list[SlotRow]
    turns: list[TurnRow]


class Clockroom:
    """The processes that fire jobs, and the tables they share."""

    def __init__(self, daemons: Sequence[Daemon]) -> None:
        self.daemons = daemons

    def add_jobs(self, messages: int, prompts: int) -> None:
        """So many plain messages, one a second each, and prompts, one in five seconds each."""

        async def added(cortex: Cortex, ada: User) -> None:
            first = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=3)
            jobs = cortex.house.db.open(Jobs, ada.id)
            for number in range(messages + prompts):
                is_prompt = number >= messages
                values = JobValues(
                    name=f"Job {number}",
                    kind="prompt" if is_prompt else "message",
                    prompt="hello",
                    timing_kind="every",
                    expression=f"{5 if is_prompt else 1} from {first.isoformat()}",
                    time_zone="UTC",
                    words="all the time",
                    pause_after=0,
                    **(POLICIES[0] if is_prompt else POLICIES[number % len(POLICIES)]),
                )
                await jobs.add(f"job{number}", values, first)

        ask(self.daemons[0], added)

    def pause_jobs(self) -> None:
        """No more of them: two processes that write at once on SQLite would keep one another from ending in time."""

        async def paused(cortex: Cortex, ada: User) -> None:
            jobs = cortex.house.db.open(Jobs, ada.id)
            for job in await jobs.list():
                await jobs.pause(job.id, None)

        ask(self.daemons[0], paused)

    def die(self, kills: int, seed: int) -> None:
        """Kill one or the other, at any moment, and start it again."""
        chance = random.Random(seed)  # noqa: S311 - moments of kills, not secrets
        for _ in range(kills):
            time.sleep(chance.uniform(0.2, 2.0))
            victim = chance.choice(self.daemons)
            victim.kill9()
            others = [one for one in self.daemons if one is not victim] if chance.random() < 0.3 else []
            for other in others:  # at times nobody is there
                other.kill9()
                other.start()
            victim.start()

    def wait_until(self, end: datetime) -> list[Kept]:
        """What is kept, once every slot up to `end` is decided and over."""
        deadline_s = time.monotonic() + END_S
        while True:
            with suppress(OperationalError):
                kept = ask(self.daemons[0], _kept)
                if all(_is_over(one, end) for one in kept):
                    return kept
            assert time.monotonic() < deadline_s, [
                (one.job.name, one.job.next_at, Counter(slot.state for slot in one.slots)) for one in kept
            ]
            time.sleep(0.5)


async def _kept(cortex: Cortex, ada: User) -> list[Kept]:
    jobs = await cortex.house.db.open(Jobs, ada.id).list()
    history = cortex.house.db.open(SlotHistory, ada.id)
    turns = cortex.house.db.open(Turns, ada.id)
    return [
        Kept(
            job=job,
            slots=list(await history.list(job.id, limit=5_000)),
            turns=list(await turns.list(job.conversation_id)) if job.conversation_id else [],
        )
        for job in jobs
    ]


async def _told(cortex: Cortex, ada: User) -> list[NoticeRow]:
    return list(await cortex.house.db.open(Notices, ada.id).list(limit=50_000))


def _is_over(kept: Kept, end: datetime) -> bool:
    is_decided = kept.job.next_at is not None and kept.job.next_at > end
    return is_decided and not any(slot.due_at <= end and slot.state in ("planned", "running") for slot in kept.slots)


def check(kept: list[Kept], told: list[NoticeRow], end: datetime) -> Counter[str]:
    """Every slot up to `end` stands in the ledger, ended, and was told as often as it ran. The states in all."""
    of_misses = {notice.tag for notice in told if notice.tag.startswith("missed:")}
    often = Counter(notice.subject_id for notice in told if notice.tag not in of_misses)
    states: Counter[str] = Counter()
    for one in kept:
        first = datetime.fromisoformat(one.job.expression.partition(" from ")[2])
        wanted = slots_between(one.job.timing, first - timedelta(microseconds=1), end)
        found = {slot.due_at: slot for slot in one.slots if slot.due_at <= end}
        assert sorted(found) == list(wanted), f"{one.job.name}: slots are missing or were made up"
        for slot in found.values():
            states[slot.state] += 1
            assert slot.state in ("done", "missed"), slot
            assert (slot.attempt, often[slot.id]) == ((1, 1) if slot.state == "done" else (0, 0)), slot
            assert slot.state == "done" or slot.why
        lost = [slot for slot in found.values() if slot.state == "missed" and slot.why != MADE_UP]
        assert not lost or f"missed:{one.job.id}" in of_misses, f"nobody was told of {lost[0]}"
        if one.job.kind == "prompt":
            ran = sorted(slot.id for slot in found.values() if slot.state == "done")
            assert sorted(turn.id for turn in one.turns if turn.id in {slot.id for slot in found.values()}) == ran
            assert {turn.state for turn in one.turns if turn.id in ran} <= {"done"}, one.job.name
        if one.job.on_miss == "catchup":
            assert {slot.why for slot in lost} <= TOO_MANY, one.job.name
    return states


def survive(daemons: Sequence[Daemon], *, messages: int, prompts: int, kills: int, seed: int) -> None:
    room = Clockroom(daemons)
    room.add_jobs(messages, prompts)
    for daemon in room.daemons:
        daemon.start()
    room.die(kills, seed)
    end = datetime.now(UTC)
    kept = room.wait_until(end)
    room.pause_jobs()
    for daemon in room.daemons:
        assert daemon.stop() == 0
    states = check(kept, ask(daemons[0], _told), end)
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
    """Two daemons on one home. On SQLite their engines have one name: plain messages need none, prompts would."""
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
    survive(two, messages=6, prompts=0, kills=3, seed=7)


def test_each_prompt_is_asked_once_over_kills(one: list[Daemon]) -> None:
    survive(one, messages=1, prompts=2, kills=3, seed=8)


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [31, 32])
def test_ten_jobs_a_second_survive_fifteen_kills(two: list[Daemon], seed: int) -> None:
    survive(two, messages=10, prompts=0, kills=15, seed=seed)


@pytest.mark.full
@pytest.mark.timeout(900)
def test_prompts_survive_fifteen_kills(one: list[Daemon]) -> None:
    survive(one, messages=2, prompts=5, kills=15, seed=33)


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.names_its_database("several processes on a server of their own")
def test_ten_jobs_a_second_and_prompts_survive_fifteen_kills_of_two_workers(workers: list[Daemon]) -> None:
    survive(workers, messages=9, prompts=5, kills=15, seed=41)
