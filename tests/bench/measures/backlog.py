"""1,000 message jobs of one person that are due at once, and a prompt of another: what they take, and who waits."""

import asyncio
import statistics
import time
from datetime import UTC, datetime

from msgspec.structs import replace
from sqlalchemy import Connection, func, insert, select

from cortex.base.record import as_dict
from cortex.base.settings import load_settings
from cortex.storage.accounts import AccountsRepository
from cortex.storage.db import Database
from cortex.storage.jobs import JobsRepository
from cortex.storage.schema import JobTable, SlotTable
from tests.bench.figure import Bench, Figure
from tests.bench.processes import cpu_s, process_of, running
from tests.databases import rows_of
from tests.e2e.caller import Caller
from tests.storage.made_time import NEWS

JOBS = 1_000
LOOK_S = 0.25
MOST_S = 600.0


def measure(bench: Bench) -> list[Figure]:
    """Four lines, of the offline model on SQLite."""
    pages_ms = list[float]()
    prompt_s = 0.0
    with running(bench.folder / "home") as daemon, Caller(daemon) as caller:
        caller.set_up()
        caller.invite("Bea")
        url, process = load_settings(None, home=daemon.home).database, process_of(daemon)
        caller.get("/c/new")
        used_s, began_s = cpu_s(process), time.perf_counter()
        asyncio.run(_make_due(url))
        while time.perf_counter() - began_s < MOST_S:
            looked_s = time.perf_counter()
            caller.get("/c/new")
            pages_ms.append((time.perf_counter() - looked_s) * 1000)
            with rows_of(daemon.home) as rows:
                done, has_begun = _done(rows), _has_begun(rows)
            prompt_s = prompt_s or has_begun * (time.perf_counter() - began_s)
            if done == JOBS:
                break
            time.sleep(LOOK_S)
        took_s, used_s = time.perf_counter() - began_s, cpu_s(process) - used_s
    how = f"SQLite, {JOBS:,} message jobs of one person due at once, and one prompt of another"
    return [
        Figure(what="backlog of messages, all told", value=took_s, unit="s", how=how),
        Figure(what="backlog of messages, CPU of each", value=used_s / JOBS * 1000, unit="ms", how="pages included"),
        Figure(what="backlog of messages, the prompt begun", value=prompt_s, unit="s", how="the last in line"),
        Figure(
            what="backlog of messages, a page meanwhile",
            value=statistics.median(pages_ms),
            unit="ms",
            how=f"median of {len(pages_ms)}; the slowest {max(pages_ms):,.0f} ms",
        ),
    ]


def _done(rows: Connection) -> int:
    return rows.execute(select(func.count()).where(SlotTable.state == "done", SlotTable.turn_id.is_(None))).scalar_one()


def _has_begun(rows: Connection) -> bool:
    return bool(rows.execute(select(func.count()).where(SlotTable.turn_id.is_not(None))).scalar_one())


async def _make_due(url: str) -> None:
    """Due since this minute began, all in one commit; the prompt's id is the last in order."""
    db = Database(url)
    by_name = {one.name: one.id for one in await db.repository(AccountsRepository).list()}
    at = datetime.now(UTC).replace(second=0, microsecond=0)
    due = f"{at.minute} {at.hour} * * *"
    daily = replace(NEWS, prompt="hello", kind="message", expression=due, time_zone="UTC")
    async with db.transaction(by_name["Ada"]) as repository:
        first = await repository(JobsRepository).add("job0", daily, at)
        jobs = [replace(first, id=f"job{number}", name=f"Job {number:04}") for number in range(1, JOBS)]
        prompt = replace(first, id="prompt", owner_id=by_name["Bea"], kind="prompt", next_at=at)
        await repository(JobsRepository).session.execute(insert(JobTable), [as_dict(job) for job in (*jobs, prompt)])
    await db.close()
