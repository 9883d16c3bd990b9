"""What a turn leaves in the databases, and a year of 100,000 turns: size, a page, a start, the engine's file.

The turns are copies of real ones, laid down by SQL; the engine's are let go of and
pruned by what the daemon does, day by day.
"""

import asyncio
import sqlite3
import statistics
import time
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

from cortex.base.clock import now
from cortex.engine.database import open_database
from cortex.engine.dbos import Engine
from cortex.engine.pruning import StepSweep
from tests.bench.figure import Bench, Figure
from tests.bench.processes import add_model, ask, cpu_s, process_of, running
from tests.e2e.caller import Caller
from tests.scripted_server import ScriptedServer, Use, rule

SAID = {"hello": "hello there", "turn with one tool": "add milk to my shopping list"}
GOALS_KB = {"hello": 5.0, "turn with one tool": 10.0}
ANSWERS = (rule("milk", Use("task_create", {"title": "milk"}), "Milk is on your list."), rule("hello", "Hello there."))
EACH = 40  # turns of one kind in a chat, after some that make the tables' first pages
YEAR, DAYS, A_CHAT = 100_000, 365, 40
APART_MINUTES = 210
TAIL = 6  # signs at the end of an id, which its copies count by
COPIED = ("conversations", "turns", "messages", "events", "plans", "rounds", "calls")
KEYS = ("id", "conversation_id", "turn_id", "parent_id", "call_id")
KEPT = timedelta(seconds=-2)
STEPS, STEP = 9, "x" * 1_000  # of a turn with a tool, as the engine keeps them until it has ended for ten minutes


def measure(bench: Bench) -> list[Figure]:
    """Two lines of a turn, five of the year."""
    home = bench.folder / "home"
    with ScriptedServer(*ANSWERS) as model, running(home) as daemon, Caller(daemon) as ada:
        ada.set_up()
        add_model(ada, model)
        figures = [_turn(home, ada, name) for name in SAID]
        talk = ask(ada, SAID["hello"])
        for number in range(A_CHAT - 1):
            ask(ada, SAID["turn with one tool" if number % 2 else "hello"], talk)
    daily_mb = asyncio.run(_engine_days(home))
    small = _page_and_start(home, talk, bench.runs)
    _copy_year(home, talk)
    large = _page_and_start(home, talk, bench.runs)
    how = f"{YEAR:,} turns, half of them with a tool, in chats of {A_CHAT}"
    size_mb = (home / "cortex.db").stat().st_size / 1e6
    told = f"{YEAR // DAYS} turns a day; after a week {daily_mb[6]:.1f} MB"
    growth = (daily_mb[-1] / daily_mb[6] - 1) * 100
    return [
        *figures,
        Figure(what="a year, main database", value=size_mb, unit="MB", how=how),
        Figure(what="a year, page of a chat", value=large[0], unit="ms", how=f"{how}; before {small[0]:.0f} ms"),
        Figure(what="a year, start", value=large[1], unit="CPU-s", how=f"{how}; before {small[1]:.2f}"),
        Figure(what="a year, engine's database", value=daily_mb[-1], unit="MB", how=told),
        Figure(
            what="a year, engine's database grew",
            value=growth,
            unit="%",
            how=told,
            goal=1,
        ),
    ]


def _turn(home: Path, ada: Caller, name: str) -> Figure:
    """Used pages of both databases, before and after, once the steps of the turns have gone."""
    talk = ask(ada, SAID[name])
    for _ in range(EACH // 4):
        ask(ada, SAID[name], talk)
    before = _used_bytes(home)
    for _ in range(EACH):
        ask(ada, SAID[name], talk)
    each_kb = (_used_bytes(home) - before) / EACH / 1000
    how = f"both databases, pages in use, of {EACH} in one chat; their steps let go of, the runs' rows of the day there"
    return Figure(what=f"stored, {name}", value=each_kb, unit="KB", how=how, goal=GOALS_KB[name])


def _used_bytes(home: Path) -> int:
    """Without the steps of runs that have ended: they go after ten minutes, here at once."""
    database = open_database(f"sqlite:///{home / 'engine.db'}")
    time.sleep(3)  # the last run's end is a whole second of the database
    asyncio.run(StepSweep(database, kept=KEPT).look())
    database.dispose()
    used = 0
    for name in ("cortex.db", "engine.db"):
        with closing(sqlite3.connect(home / name)) as rows:
            pages, free = (rows.execute(f"PRAGMA {what}").fetchone()[0] for what in ("page_count", "freelist_count"))
            used += (pages - free) * rows.execute("PRAGMA page_size").fetchone()[0]
    return used


def _page_and_start(home: Path, talk: str, runs: int) -> tuple[float, float]:
    """Milliseconds of a chat's page, median of ten; processor seconds of a start, median of the runs."""
    starts, pages = list[float](), list[float]()
    for _ in range(runs):
        with running(home) as daemon, Caller(daemon) as ada:
            starts.append(cpu_s(process_of(daemon)))
            ada.log_in()
            ada.get(f"/c/{talk}")
            for _ in range(10):
                began_s = time.perf_counter()
                ada.get(f"/c/{talk}")
                pages.append((time.perf_counter() - began_s) * 1000)
    return statistics.median(pages), statistics.median(starts)


def _copy_year(home: Path, talk: str) -> None:
    """The chat again and again, under other ids."""
    with closing(sqlite3.connect(home / "cortex.db", isolation_level=None)) as rows:
        rows.execute("BEGIN")
        for number in range(YEAR // A_CHAT):
            for table in COPIED:
                columns = [row[1] for row in rows.execute(f"PRAGMA table_info({table})")]
                given = ", ".join(_copied(table, column) for column in columns)
                whose = "id" if table == "conversations" else "conversation_id"
                which = f"{whose} = :talk"
                if table == "plans":
                    which = "turn_id IN (SELECT id FROM turns WHERE conversation_id = :talk)"
                statement = f"INSERT INTO {table} SELECT {given} FROM {table} WHERE {which}"  # noqa: S608 - our own names
                rows.execute(statement, {"talk": talk, "n": number})
        rows.execute("COMMIT")


def _copied(table: str, column: str) -> str:
    if (table, column) == ("messages", "position"):
        return "NULL"
    if column.endswith("_at"):  # a chat of its own moment, back over the year
        return f"strftime('%Y-%m-%d %H:%M:%f000', {column}, '-' || (:n * {APART_MINUTES}) || ' minutes')"
    if column not in KEYS:
        return column
    ended = f"substr({column}, 1, length({column}) - {TAIL}) || printf('%0{TAIL}d', :n)"
    return f"CASE WHEN coalesce({column}, '') = '' THEN {column} ELSE {ended} END"


async def _engine_days(home: Path) -> list[float]:
    """The engine's file in megabytes at the end of each day."""
    file = home / "engine.db"
    began, sizes = now() - timedelta(days=DAYS + 2), list[float]()
    engine = Engine(f"sqlite:///{file}")
    await engine.launch()
    database = open_database(f"sqlite:///{file}")
    sweep = StepSweep(database)
    try:
        for day in range(DAYS):
            _lay_down_day(file, day, began + timedelta(days=day))
            await sweep.look()
            await engine.prune(began + timedelta(days=day - 1))
            sizes.append(file.stat().st_size / 1e6)
    finally:
        database.dispose()
        await engine.close()
    return sizes


def _lay_down_day(file: Path, day: int, at: datetime) -> None:
    """The runs of a day: the newest turn with all that the engine keeps of it, steps of its size among that."""
    at_ms = int(at.timestamp() * 1000)
    with closing(sqlite3.connect(file, isolation_level=None, timeout=60)) as rows:
        rows.execute("BEGIN IMMEDIATE")
        for number in range(YEAR // DAYS):
            run_id = f"turn:{day:06d}{number:020d}"
            for table in ("workflow_status", "workflow_input", "workflow_output"):
                columns = [row[1] for row in rows.execute(f"PRAGMA table_info({table})")]
                given = ", ".join(_of_run(column) for column in columns)
                newest = "(SELECT workflow_uuid FROM workflow_status WHERE status = 'SUCCESS' ORDER BY rowid LIMIT 1)"
                statement = f"INSERT INTO {table} SELECT {given} FROM {table} WHERE workflow_uuid = {newest}"  # noqa: S608 - ours
                rows.execute(statement, {"run": run_id, "at": at_ms})
            steps = [(run_id, step, "step", STEP, at_ms, at_ms) for step in range(STEPS)]
            rows.executemany(
                "INSERT INTO operation_outputs (workflow_uuid, function_id, function_name, output, "
                "completed_at_epoch_ms, retention_timestamp) VALUES (?, ?, ?, ?, ?, ?)",
                steps,
            )
        rows.execute("COMMIT")


def _of_run(column: str) -> str:
    if column == "workflow_uuid":
        return ":run"
    return ":at" if column in ("created_at", "updated_at", "completed_at", "retention_timestamp") else column
