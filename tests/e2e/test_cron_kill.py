"""Two daemons on one ledger are killed at random while jobs come each second: a slot runs once, or is told missed."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from sqlalchemy.exc import OperationalError

from cortex.app import Cortex
from cortex.base.settings import load_settings
from cortex.base.user import User
from cortex.schedule.slots import slots_between
from cortex.storage.job_rows import JobRow, JobValues
from cortex.storage.jobs import Jobs
from cortex.storage.notices import NoticeRow, Notices
from cortex.storage.slot_history import SlotHistory
from cortex.storage.slots import SlotRow
from tests.e2e.caller import PASSWORD
from tests.e2e.daemon import Daemon
from tests.postgres import private_postgres

END_S = 120.0
POLICIES: tuple[dict[str, Any], ...] = (
    {"on_miss": "catchup", "fire_within_s": 3600, "overlap": "queue"},
    {"on_miss": "once", "fire_within_s": 3600, "overlap": "queue"},
    {"on_miss": "skip", "overlap": "queue"},
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What the tables hold of one job."""

    job: JobRow
    slots: list[SlotRow]


class Clockroom:
    """Two daemons on one home, and the tables they share."""

    def __init__(self, folder: Path, url: str = "") -> None:
        self.home, self.url = folder / "home", url
        shared: dict[str, object] = {"database_url": url} if url else {}
        self.daemons = [Daemon(self.home, allow_second_process=1, shutdown_grace_s=2) for _ in range(2)]
        for number, daemon in enumerate(self.daemons):
            daemon.output = folder / f"daemon{number}.log"
            daemon.set(**shared)

    def ask(self, question: Callable[[Cortex, User], Awaitable[T]]) -> T:
        """Open the house at rest and ask it as ada."""

        async def asked() -> T:
            settings = load_settings(None, home=self.home, database_url=self.url)
            async with Cortex.at_rest(settings) as cortex:
                if not await cortex.accounts.has_users():
                    await cortex.accounts.redeem_setup(await cortex.accounts.setup_link(), "ada", PASSWORD)
                return await question(cortex, await cortex.accounts.named("ada"))

        return asyncio.run(asked())

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

        self.ask(added)

    def pause_jobs(self) -> None:
        """No more of them: two processes that write at once on SQLite would keep one another from ending in time."""

        async def paused(cortex: Cortex, ada: User) -> None:
            jobs = cortex.house.db.open(Jobs, ada.id)
            for job in await jobs.list():
                await jobs.pause(job.id, None)

        self.ask(paused)

    def die(self, kills: int, seed: int) -> None:
        """Kill one or the other, at any moment, and start it again."""
        chance = random.Random(seed)  # noqa: S311 - moments of kills, not secrets
        for _ in range(kills):
            time.sleep(chance.uniform(0.2, 2.0))
            victim = chance.choice(self.daemons)
            victim.kill9()
            if chance.random() < 0.3:  # at times nobody is there
                other = next(daemon for daemon in self.daemons if daemon is not victim)
                other.kill9()
                other.start()
            victim.start()

    def wait_until(self, end: datetime) -> list[Kept]:
        """What is kept, once every slot up to `end` is decided and over."""
        deadline_s = time.monotonic() + END_S
        while True:
            with suppress(OperationalError):
                kept = self.ask(_kept)
                if all(_is_over(one, end) for one in kept):
                    return kept
            assert time.monotonic() < deadline_s, [
                (one.job.name, one.job.next_at, Counter(slot.state for slot in one.slots)) for one in kept
            ]
            time.sleep(0.5)


async def _kept(cortex: Cortex, ada: User) -> list[Kept]:
    jobs = await cortex.house.db.open(Jobs, ada.id).list()
    history = cortex.house.db.open(SlotHistory, ada.id)
    return [Kept(job=job, slots=list(await history.list(job.id, limit=5_000))) for job in jobs]


async def _told(cortex: Cortex, ada: User) -> list[NoticeRow]:
    return list(await cortex.house.db.open(Notices, ada.id).list(limit=50_000))


def _is_over(kept: Kept, end: datetime) -> bool:
    is_decided = kept.job.next_at is not None and kept.job.next_at > end
    return is_decided and not any(slot.due_at <= end and slot.state in ("planned", "running") for slot in kept.slots)


def check(kept: list[Kept], told: list[NoticeRow], end: datetime) -> Counter[str]:
    """Every slot up to `end` stands in the ledger, ended, and was told as often as it ran. The states in all."""
    often = Counter(notice.subject_id for notice in told if notice.title == notice.title.removesuffix(": missed"))
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
        if one.job.on_miss == "catchup":
            assert {slot.state for slot in found.values()} == {"done"}, one.job.name
    return states


def survive(room: Clockroom, *, messages: int, prompts: int, kills: int, seed: int) -> None:
    room.add_jobs(messages, prompts)
    for daemon in room.daemons:
        daemon.start()
    room.die(kills, seed)
    end = datetime.now(UTC)
    kept = room.wait_until(end)
    room.pause_jobs()
    for daemon in room.daemons:
        assert daemon.stop() == 0
    states = check(kept, room.ask(_told), end)
    assert states["done"] > 10


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Clockroom]:
    made = Clockroom(tmp_path)
    yield made
    for daemon in made.daemons:
        daemon.close()


def test_each_slot_runs_once_over_kills_on_sqlite(room: Clockroom) -> None:
    survive(room, messages=6, prompts=0, kills=3, seed=7)


@pytest.mark.full
@pytest.mark.parametrize("seed", [31, 32])
def test_ten_jobs_a_second_survive_fifteen_kills_on_sqlite(room: Clockroom, seed: int) -> None:
    survive(room, messages=10, prompts=0, kills=15, seed=seed)


@pytest.mark.full
@pytest.mark.parametrize("seed", [41])
def test_ten_jobs_a_second_survive_fifteen_kills_on_postgres(tmp_path: Path, seed: int) -> None:
    with private_postgres() as url:
        room = Clockroom(tmp_path, url)
        try:
            survive(room, messages=10, prompts=2, kills=15, seed=seed)
        finally:
            for daemon in room.daemons:
                daemon.close()
