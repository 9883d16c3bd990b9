"""What the page of jobs takes of the server with 1,000 jobs and 10,000 slots of history."""

import random
import statistics
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Connection, insert

from cortex.storage.schema import JobTable, SlotTable
from cortex.storage.slots import slot_id
from tests.bench.due import job_rows, people
from tests.bench.figure import Bench, Figure
from tests.bench.houses import house
from tests.e2e.caller import Caller
from tests.storage.made_time import NEWS

JOBS, SLOTS, BUSY, LOOKS = 1_000, 10_000, 50, 20
GOAL_MS = 200
EVERY_HOUR = replace(NEWS, prompt="hello", expression="0 * * * *", words="every hour")


def measure(bench: Bench) -> list[Figure]:
    """Wall clock and CPU time of the list, and memory."""
    return [figure for kind in bench.databases for figure in _measured(bench, kind)]


def _measured(bench: Bench, kind: str) -> list[Figure]:
    with house(bench, kind) as opened, Caller(opened.door) as caller:
        caller.set_up()
        opened.fill(lambda connection: _fill(connection, bench.dice()))
        took_ms, used_s = list[float](), list[float]()
        for number in range(LOOKS + 2):
            before_s, began_s = opened.cpu_s(), time.perf_counter()
            page = caller.get("/jobs")
            took_ms.append((time.perf_counter() - began_s) * 1000)
            used_s.append(opened.cpu_s() - before_s)
            assert page.text.count('<tr id="job-') == 40, number
        how = f"{opened.name}, {JOBS:,} jobs, {SLOTS:,} slots, the first page of 40, median of {LOOKS}, warm"
        return [
            Figure(what="jobs page", value=statistics.median(took_ms[2:]), unit="ms", how=how, goal=GOAL_MS),
            Figure(what="jobs page, CPU", value=statistics.mean(used_s[2:]) * 1000, unit="ms", how="mean"),
            Figure(what="jobs page, memory", value=opened.memory_mb(), unit="MB", how=how),
        ]


def _fill(connection: Connection, dice: random.Random) -> None:
    """Jobs of the one account there is. A few have half of the slots, as one that runs every hour soon has."""
    jobs = job_rows([*people(connection)] * JOBS, EVERY_HOUR, datetime.now(UTC) + timedelta(hours=1))
    owners = [*jobs * (SLOTS // 2 // JOBS), *jobs[:BUSY] * (SLOTS // 2 // BUSY)]
    connection.execute(insert(JobTable), jobs)
    connection.execute(insert(SlotTable), [_slot(job, number, dice) for number, job in enumerate(owners)])


def _slot(job: dict[str, Any], number: int, dice: random.Random) -> dict[str, Any]:
    """One that ended so many hours ago."""
    due_at = (job["created_at"] - timedelta(hours=number + 1)).replace(microsecond=0)
    is_good = dice.random() < 0.9
    return dict(
        id=slot_id(job["id"], due_at),
        job_id=job["id"],
        owner_id=job["owner_id"],
        due_at=due_at,
        state="done" if is_good else "failed",
        why="" if is_good else "the provider said no",
        is_by_hand=False,
        attempt=1,
        ready_at=None,
        in_line_at=None,
        turn_id=None,
        started_at=due_at,
        ended_at=due_at + timedelta(seconds=dice.randint(2, 60)),
        result="All is well. " * 10,
        result_hash="x",
        cost_usd=dice.random() / 100,
        tokens=dice.randint(500, 5_000),
    )
