"""What the page of jobs takes of the server with 1,000 jobs and 10,000 slots of history, on both databases."""

import asyncio
import random
import statistics
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace
from sqlalchemy import insert, text

from cortex.base.record import as_dict
from cortex.base.settings import load_settings
from cortex.storage.accounts import AccountsRepository
from cortex.storage.db import Database
from cortex.storage.job_rows import JobRow
from cortex.storage.jobs import JobsRepository
from cortex.storage.schema import JobTable, SlotTable
from cortex.storage.slots import SlotRow, slot_id
from tests.bench.figure import Bench, Figure, Unmeasured
from tests.bench.processes import cpu_s, process_of, running
from tests.e2e.caller import Caller
from tests.postgres import private_postgres
from tests.storage.made_time import NEWS

JOBS, SLOTS, BUSY, LOOKS = 1_000, 10_000, 50, 20
GOAL_MS = 200
EVERY_HOUR = replace(NEWS, prompt="hello", expression="0 * * * *", words="every hour")


def measure(bench: Bench) -> list[Figure]:
    """Four lines: wall clock and CPU time of the list, on SQLite and on PostgreSQL."""
    found = _figures(bench, "SQLite", "")
    with ExitStack() as stack:
        try:
            url = stack.enter_context(private_postgres())
        except pytest.skip.Exception as error:
            raise Unmeasured(str(error)) from error
        return [*found, *_figures(bench, "PostgreSQL", url)]


def _figures(bench: Bench, name: str, url: str) -> list[Figure]:
    with running(bench.folder / name, database_url=url) as daemon, Caller(daemon) as caller:
        caller.set_up()
        asyncio.run(_fill(load_settings(None, home=daemon.home, database_url=url).database, bench.dice()))
        process, took_ms, used_s = process_of(daemon), list[float](), list[float]()
        for number in range(LOOKS + 2):
            before_s, began_s = cpu_s(process), time.perf_counter()
            page = caller.get("/jobs")
            took_ms.append((time.perf_counter() - began_s) * 1000)
            used_s.append(cpu_s(process) - before_s)
            assert page.text.count('<tr id="job-') == 40, number
    how = f"{name}, {JOBS:,} jobs, {SLOTS:,} slots, the first page of 40, median of {LOOKS}, warm"
    return [
        Figure(what="jobs page", value=statistics.median(took_ms[2:]), unit="ms", how=how, goal=GOAL_MS),
        Figure(what="jobs page, CPU", value=statistics.mean(used_s[2:]) * 1000, unit="ms", how=f"{name}, mean"),
    ]


async def _fill(url: str, dice: random.Random) -> None:
    """Jobs of the one account there is. A few have half of the slots, as one that runs every hour soon has."""
    db = Database(url)
    owner_id = (await db.repository(AccountsRepository).list())[0].id
    first = await db.repository(JobsRepository, owner_id).add(
        "job0", EVERY_HOUR, datetime.now(UTC) + timedelta(hours=1)
    )
    jobs = [first, *(replace(first, id=f"job{number}", name=f"Job {number:04}") for number in range(1, JOBS))]
    owners = [*jobs * (SLOTS // 2 // JOBS), *jobs[:BUSY] * (SLOTS // 2 // BUSY)]
    slots = [_slot(job, number, dice) for number, job in enumerate(owners)]
    async with db.transaction(owner_id) as repository:
        session = repository(JobsRepository).session
        await session.execute(insert(JobTable), [as_dict(job) for job in jobs[1:]])
        await session.execute(insert(SlotTable), [as_dict(slot) for slot in slots])
        await session.execute(text("ANALYZE"))  # as a server does by itself within a minute
    await db.close()


def _slot(job: JobRow, number: int, dice: random.Random) -> SlotRow:
    """One that ended so many hours ago."""
    due_at = (job.created_at - timedelta(hours=number + 1)).replace(microsecond=0)
    is_good = dice.random() < 0.9
    return SlotRow(
        id=slot_id(job.id, due_at),
        job_id=job.id,
        owner_id=job.owner_id,
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
