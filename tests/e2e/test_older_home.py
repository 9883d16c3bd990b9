"""A home as an earlier version left it when it was killed: this one brings its tables up to date and ends its work."""

import re
import sqlite3
import tarfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cortex.base.turn import LOOP_ENDS
from cortex.storage import revisions
from tests.children import ROOT
from tests.e2e.caller import Caller
from tests.e2e.crew import until
from tests.e2e.daemon import Daemon
from tests.homes.left_2026_11_21 import CUT_OFF, CUT_OFF_ONCE, DUE, ENDED, LINE, QUEUED, RULES, WAITING
from tests.patience import PATIENCE_S
from tests.scripted_server import ScriptedServer

PACKED = ROOT / "tests" / "homes" / "2026-11-21.tar.xz"
HOUR_S = 3600

pytestmark = pytest.mark.names_its_database("a home as it was left, with its files")


@pytest.fixture
def model() -> Iterator[ScriptedServer]:
    """The model that the home knows, at another port; nobody may ask it twice for one answer."""
    with ScriptedServer(*RULES) as server:
        yield server
        assert server.problems == []


@pytest.fixture
def left(tmp_path: Path, model: ScriptedServer) -> Iterator[Daemon]:
    """A daemon on the home, not started yet."""
    with tarfile.open(PACKED) as packed:
        packed.extractall(tmp_path, filter="data")
    daemon = Daemon(tmp_path / "home", database_url="")
    move_to_now(daemon.home)
    (file,) = daemon.home.glob("*/model_registry.json")
    file.write_text(re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{model.port}", file.read_text("utf-8")), "utf-8")
    yield daemon
    daemon.close()


def move_to_now(home: Path) -> None:
    """Let the kill be an hour or two ago, by whole hours: the hourly job has become due, the approval still waits."""
    with closing(sqlite3.connect(home / "cortex.db", timeout=PATIENCE_S)) as rows, rows:
        (due_s,) = rows.execute("SELECT strftime('%s', next_at) FROM jobs").fetchone()
        later_s = (int(time.time()) - int(due_s)) // HOUR_S * HOUR_S
        columns = """SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c
                     WHERE t.type = 'table' AND t.name <> 'audit' AND c.type = 'DATETIME'"""  # audit rows stay
        for table, column in rows.execute(columns).fetchall():
            to_the_hour = f"strftime('%Y-%m-%d %H', {column}, '{later_s} seconds')"
            rows.execute(f"UPDATE {table} SET {column} = {to_the_hour} || substr({column}, 14)")  # noqa: S608 - its own names
    with (
        closing(sqlite3.connect(home / "engine.db", timeout=PATIENCE_S)) as rows,
        rows,
    ):  # until when the engine waits for the answer
        wait_ends = "UPDATE operation_outputs SET output = output + ? WHERE function_name = 'DBOS.sleep'"
        assert rows.execute(wait_ends, (later_s,)).rowcount == 1


def found(daemon: Daemon, question: str, *values: object) -> list[tuple[Any, ...]]:
    """The rows that answer it."""
    with closing(sqlite3.connect(daemon.home / "cortex.db", timeout=PATIENCE_S)) as rows:
        return rows.execute(question, values).fetchall()


def page_of(daemon: Daemon, ada: Caller, text: str) -> str:
    """The page of the conversation in which this was said."""
    ((conversation,),) = found(daemon, "SELECT conversation_id FROM turns WHERE text = ?", text)
    return ada.get(f"/c/{conversation}").text


def test_what_an_earlier_version_left_is_finished_once_and_stays_readable(left: Daemon, model: ScriptedServer) -> None:
    assert found(left, "SELECT version_num FROM alembic_version") == [("0008",)]
    left.start()
    assert found(left, "SELECT version_num FROM alembic_version") == [(revisions.newest(),)]
    with Caller(left) as ada:
        ada.log_in()
        answer_the_question(left, ada)
        until(lambda: {state for (state,) in found(left, "SELECT state FROM turns")} <= set(LOOP_ENDS))
        until(lambda: found(left, "SELECT state FROM slots ORDER BY due_at LIMIT 1") == [("done",)])
        what_was_cut_off_is_done_once(left, ada)
        assert "You said nothing about eggs." in page_of(left, ada, CUT_OFF)
        the_ended_conversation_reads_as_before(left, ada)
    turns = set(found(left, "SELECT state, text FROM turns"))
    assert turns == {("done", text) for text in (ENDED, CUT_OFF, QUEUED, CUT_OFF_ONCE, WAITING, DUE)}
    assert left.stop() == 0
    assert " ERROR " not in left.log
    assert first_requests(model) == {QUEUED, DUE}, "a step that was kept is made again"


def answer_the_question(left: Daemon, ada: Caller) -> None:
    """The yes is heard: the call runs, and the turn goes on."""
    question = re.search(r'action="/approvals/([\w-]+)"', page_of(left, ada, WAITING))
    assert question
    assert "Tell a joke." not in ada.get("/jobs").text
    ada.post(f"/approvals/{question[1]}", choice="once")
    until(lambda: "Jokes are set up." in page_of(left, ada, WAITING))
    assert found(left, "SELECT expression FROM jobs WHERE prompt = 'Tell a joke.'") == [("0 21 * * *",)]


def what_was_cut_off_is_done_once(left: Daemon, ada: Caller) -> None:
    """A call that may be repeated is, without a second effect; of another nobody can know, and its page says so."""
    assert found(left, "SELECT title FROM tasks ORDER BY id") == [("milk",), ("bread",)]
    (pad,) = left.home.glob("*/scratchpad.md")
    assert pad.read_text("utf-8").splitlines() == [LINE]
    calls = dict(found(left, "SELECT name, state FROM calls WHERE arguments NOT LIKE '%milk%'"))
    assert calls == {"task_create": "done", "scratch_append": "unknown", "cron_add": "done"}
    once = page_of(left, ada, CUT_OFF_ONCE)
    assert "outcome unknown" in once
    assert "I looked after the spare key." in once


def the_ended_conversation_reads_as_before(left: Daemon, ada: Caller) -> None:
    """Its page, the trace of its answer, and why it had these tools."""
    page = page_of(left, ada, ENDED)
    assert "Milk is on your list." in page
    ((turn,),) = found(left, "SELECT id FROM turns WHERE text = ?", ENDED)
    key = turn.removeprefix("turn:")
    trace = ada.get(f"/runs/{key}").text
    assert 'id="round-2"' in trace
    assert "Added: milk" in trace
    why = ada.get(f"/turns/{key}/why").text
    assert "task_create" in why
    assert "tools were sent:" in why


def first_requests(model: ScriptedServer) -> set[str]:
    """The messages to which the model was asked for a first answer: no result of a call came after them."""
    last = [seen.body["messages"][-1] for seen in model.log]
    return {one["content"].partition("\n")[0] for one in last if one["role"] == "user"}
