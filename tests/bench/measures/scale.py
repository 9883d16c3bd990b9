"""1, 2 and 4 workers on one PostgreSQL with a model that answers at once: turns, processor, jobs due together."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import psycopg
from msgspec.structs import replace

from cortex.storage.accounts import AccountsRepository
from cortex.storage.db import Database
from cortex.storage.jobs import JobsRepository
from tests.bench.figure import Bench, Figure
from tests.bench.processes import add_model, ask, cpu_s, process_of
from tests.children import Program
from tests.e2e.caller import Caller
from tests.e2e.crew import Part, until
from tests.postgres import private_postgres
from tests.scripted_server import ScriptedServer, rule
from tests.storage.made_time import NEWS

WORKERS = (1, 2, 4)
PEOPLE, TURNS, JOBS = 8, 5, 100
WAIT_S = 900.0
LOOK_S = 0.25
ENDED = "SELECT count(*) FROM turns WHERE ended_at IS NOT NULL"
LIVING = (
    "SELECT count(*) FROM jobs WHERE NOT EXISTS (SELECT 1 FROM slots WHERE job_id = jobs.id AND ended_at IS NOT NULL)"
)
NOT_DONE = "SELECT count(*) FROM turns WHERE state <> 'done'"
MISSED = "SELECT count(*) FROM slots WHERE state <> 'done'"
LATE = "SELECT extract(epoch FROM max(started_at - due_at)) FROM slots"


class Programs(Part):
    """Parts as people start them: each loads itself."""

    starts = Program


def measure(bench: Bench) -> list[Figure]:
    """Six lines for each number of workers."""
    return [figure for count in WORKERS for figure in _with(bench.folder / str(count), count)]


def _with(folder: Path, count: int) -> list[Figure]:
    how = f"{count} worker{'s' if count > 1 else ''} and a page process, PostgreSQL beside them"
    with private_postgres() as url, ScriptedServer(rule("hello", "Hello there.")) as model, ExitStack() as stack:
        reach = {"model_hosts": f"127.0.0.1:{model.port}"}  # members may ask it too
        web = Programs(folder / "home", "web", "web", url, **reach)
        workers = [Programs(folder / "home", "worker", f"worker{number}", url, **reach) for number in range(count)]
        for part in (web, *workers):
            stack.callback(part.close)
            part.start()
        ada = stack.enter_context(Caller(web)).set_up()
        people = [ada, *(stack.enter_context(ada.invite(f"P{number}")) for number in range(PEOPLE - 1))]
        for one in people:
            add_model(one, model)
            ask(one, "hello")  # what is loaded with the first
        connection = stack.enter_context(psycopg.connect(url, autocommit=True))
        return [*_chats(connection, people, web, workers, how), *_jobs(connection, url, workers, how)]


def _one(connection: psycopg.Connection, statement: str) -> float:
    row = connection.execute(statement.encode()).fetchone()
    return float(row[0] or 0) if row else 0.0


def _chats(
    connection: psycopg.Connection, people: list[Caller], web: Programs, workers: list[Programs], how: str
) -> list[Figure]:
    """Each of the people sends messages into chats of their own, all at the same time."""
    before, parts = _one(connection, ENDED), [process_of(part) for part in (web, *workers)]
    used_s, began_s = [cpu_s(part) for part in parts], time.perf_counter()
    with ThreadPoolExecutor(PEOPLE) as pool:
        for sending in [pool.submit(_send, one) for one in people]:
            sending.result()
    turns = PEOPLE * TURNS
    until(lambda: _one(connection, ENDED) - before >= turns, WAIT_S, LOOK_S)
    took_s = time.perf_counter() - began_s
    if _one(connection, NOT_DONE):
        raise RuntimeError("turns did not end well: another thing was measured")
    each_ms = [(cpu_s(part) - used) / turns * 1000 for part, used in zip(parts, used_s, strict=True)]
    told = f"{how}; {turns} messages of {PEOPLE} people at once"
    return [
        Figure(what="scale, turns a second", value=turns / took_s, unit="1/s", how=told),
        Figure(what="scale, CPU a turn, workers", value=sum(each_ms[1:]), unit="ms", how=f"{told}; all workers"),
        Figure(what="scale, CPU a turn, page process", value=each_ms[0], unit="ms", how=told),
    ]


def _send(person: Caller) -> None:
    for _ in range(TURNS):
        person.send("new", "hello")


def _jobs(connection: psycopg.Connection, url: str, workers: list[Programs], how: str) -> list[Figure]:
    """All due at the same moment, which has come."""
    parts = [process_of(part) for part in workers]
    used_s = sum(cpu_s(part) for part in parts)
    asyncio.run(_make_due(url))
    until(lambda: _one(connection, LIVING) == 0, WAIT_S, LOOK_S)
    each_ms = (sum(cpu_s(part) for part in parts) - used_s) / JOBS * 1000
    told = f"{how}; {JOBS} jobs of {PEOPLE} people due at once"
    return [
        Figure(what="scale, jobs not done", value=_one(connection, MISSED), unit="", how=told, goal=0),
        Figure(what="scale, the last job late by", value=_one(connection, LATE), unit="s", how=told),
        Figure(what="scale, CPU a job, workers", value=each_ms, unit="ms", how=told),
    ]


async def _make_due(url: str) -> None:
    db = Database(url)
    if db.commits.written is not None:
        db.commits.written.tell_within()
    people = [one.id for one in await db.repository(AccountsRepository).list()]
    at = datetime.now(UTC).replace(second=0, microsecond=0)
    daily = replace(NEWS, prompt="hello", expression=f"{at.minute} {at.hour} * * *", time_zone="UTC")
    for place, person in enumerate(people):
        async with db.transaction(person) as repository:
            for _ in range(place, JOBS, len(people)):
                await repository(JobsRepository).add(None, daily, at)
    await db.close()
