"""Jobs that come each second, processes that are killed meanwhile, and what the ledger must then hold."""

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy.exc import OperationalError

from cortex.app import Cortex
from cortex.base.user import User
from cortex.schedule.policies import MissedPolicy
from cortex.schedule.slots import MADE_UP, slots_between
from cortex.services.jobs.firing import QUEUE_FULL
from cortex.services.turns.queue import LOST
from cortex.storage.job_rows import JobRow, JobValues
from cortex.storage.jobs import JobsRepository
from cortex.storage.notices import NoticeRow, NoticesRepository
from cortex.storage.slot_history import SlotHistoryRepository
from cortex.storage.slots import SlotRow
from cortex.storage.turns import TurnRow, TurnsRepository
from tests.e2e.crew import until
from tests.e2e.daemon import Daemon
from tests.e2e.tables import ask

END_S = 400.0
LOOK_S = 0.5
POLICIES: tuple[dict[str, Any], ...] = (
    {"on_miss": "catchup", "fire_within_s": 3600, "overlap": "queue"},
    {"on_miss": "once", "fire_within_s": 3600, "overlap": "queue"},
    {"on_miss": "skip", "overlap": "queue"},
)

TOO_MANY = {QUEUE_FULL, f"{MissedPolicy().catchup_most} at most are caught up"}  # a second's job on a slow machine


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
        """So many plain messages, one a second each, and prompts, one in ten seconds each."""

        async def added(cortex: Cortex, ada: User) -> None:
            first = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=3)
            jobs = cortex.runtime.db.repository(JobsRepository, ada.id)
            for number in range(messages + prompts):
                is_prompt = number >= messages
                values = JobValues(
                    name=f"Job {number}",
                    kind="prompt" if is_prompt else "message",
                    prompt="hello",
                    timing_kind="every",
                    expression=f"{10 if is_prompt else 1} from {first.isoformat()}",
                    time_zone="UTC",
                    words="all the time",
                    pause_after=0,
                    is_tainted=False,
                    is_private=False,
                    **(POLICIES[0] if is_prompt else POLICIES[number % len(POLICIES)]),
                )
                await jobs.add(f"job{number}", values, first)

        ask(self.daemons[0], added)

    def stop_the_clock(self) -> None:
        """No slot comes after those that are decided, which still run (a pause would leave them out)."""

        async def stopped(cortex: Cortex, ada: User) -> None:
            jobs = cortex.runtime.db.repository(JobsRepository, ada.id)
            for job in await self._own(cortex, ada):
                while (now := await jobs.get(job.id)).next_at is not None:
                    await jobs.advance(now.id, now.next_at, now.version, None)

        ask(self.daemons[0], stopped)

    async def _own(self, cortex: Cortex, ada: User) -> list[JobRow]:
        return [
            job for job in await cortex.runtime.db.repository(JobsRepository, ada.id).list() if job.id.startswith("job")
        ]

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

    def wait_for_runs(self, count: int) -> None:
        """Until so many slots are done in all."""

        def done() -> int:
            kept = ask(self.daemons[0], self._kept)
            return sum(slot.state == "done" for one in kept for slot in one.slots)

        until(lambda: done() >= count, END_S, LOOK_S)

    def wait_until(self, end: datetime) -> list[Kept]:
        """What is kept, once every slot up to `end` is decided and over. Later ones come no more."""
        self._wait(lambda one: one.job.next_at is not None and one.job.next_at > end)
        self.stop_the_clock()
        return self._wait(lambda one: not any(slot.state in ("planned", "running") for slot in one.slots))

    def _wait(self, holds: Callable[[Kept], bool]) -> list[Kept]:
        """What is kept of this room's jobs, once it holds of each."""
        deadline_s = time.monotonic() + END_S
        while True:
            with suppress(OperationalError):
                kept = ask(self.daemons[0], self._kept)
                if all(holds(one) for one in kept):
                    return kept
            assert time.monotonic() < deadline_s, [
                (one.job.name, one.job.next_at, Counter(slot.state for slot in one.slots)) for one in kept
            ]
            time.sleep(0.5)

    async def _kept(self, cortex: Cortex, ada: User) -> list[Kept]:
        history, turns = (
            cortex.runtime.db.repository(SlotHistoryRepository, ada.id),
            cortex.runtime.db.repository(TurnsRepository, ada.id),
        )
        return [
            Kept(
                job=job,
                slots=list(await history.list(job.id, limit=5_000)),
                turns=list(await turns.list(job.conversation_id)) if job.conversation_id else [],
            )
            for job in await self._own(cortex, ada)
        ]

    def told(self) -> list[NoticeRow]:
        """All that was told."""
        return ask(self.daemons[0], _told)


async def _told(cortex: Cortex, ada: User) -> list[NoticeRow]:
    return list(await cortex.runtime.db.repository(NoticesRepository, ada.id).list(limit=50_000))


def check(kept: list[Kept], told: list[NoticeRow], end: datetime) -> Counter[str]:
    """Every slot up to `end` stands in the ledger, ended, and was told as often as it ran. The states in all.

    Failed is only what the engine gave up: its process was killed five times in the middle of it.
    """
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
            assert slot.state in ("done", "missed") or (slot.state, slot.why) == ("failed", LOST), slot
            assert (slot.attempt, often[slot.id]) == ((0, 0) if slot.state == "missed" else (1, 1)), slot
            assert slot.state == "done" or slot.why
        lost = [slot for slot in found.values() if slot.state == "missed" and slot.why != MADE_UP]
        assert not lost or f"missed:{one.job.id}" in of_misses, f"nobody was told of {lost[0]}"
        if one.job.kind == "prompt":
            ends = {"done": "done", "failed": "interrupted"}
            ran = sorted((slot.id, ends[slot.state]) for slot in found.values() if slot.state in ends)
            ids = {slot.id for slot in found.values()}
            assert sorted((turn.id, turn.state) for turn in one.turns if turn.id in ids) == ran, one.job.name
        if one.job.on_miss == "catchup":
            assert {slot.why for slot in lost} <= TOO_MANY, one.job.name
    return states
