"""A home as an earlier version left it when it was killed: this one brings its tables up to date and ends its work."""

import json
import re
import sqlite3
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from cortex.base.turn import LOOP_ENDS
from cortex.storage import revisions
from tests.children import ROOT, Program, environment, run
from tests.e2e.caller import Caller
from tests.e2e.crew import until
from tests.e2e.daemon import Daemon
from tests.homes import left_2026_11_27, left_before_calendars, left_before_face, left_before_light, left_before_prices
from tests.homes.left_2026_11_21 import CUT_OFF, CUT_OFF_ONCE, DUE, ENDED, LINE, QUEUED, RULES, WAITING
from tests.patience import PATIENCE_S
from tests.scripted_server import ScriptedServer

HOMES = ROOT / "tests" / "homes"
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
    daemon = unpacked("2026-11-21.tar.xz", tmp_path, model, hours_since_due_s)
    yield daemon
    daemon.close()


@pytest.fixture
def later(tmp_path: Path) -> Iterator[Daemon]:
    """The same of a later version, with what people set up."""
    with ScriptedServer(*left_2026_11_27.RULES) as model:
        daemon = unpacked("2026-11-27.tar.xz", tmp_path, model, since_asked_s)
        yield daemon
        daemon.close()
        assert model.problems == []


@pytest.fixture
def chooser(tmp_path: Path) -> Iterator[tuple[Daemon, ScriptedServer]]:
    """The same of the version before the price of tools: with words and a refit of its own, and a job at work."""
    with ScriptedServer(*left_before_prices.RULES) as model:
        daemon = unpacked("before_prices.tar.xz", tmp_path, model, since_asked_s)
        yield daemon, model
        daemon.close()
        assert model.problems == []


@pytest.fixture
def wordy(tmp_path: Path) -> Iterator[tuple[Daemon, ScriptedServer]]:
    """The same of the version that kept log, plans and steps at length."""
    with ScriptedServer(*left_before_light.RULES) as model:
        daemon = unpacked("before_light.tar.xz", tmp_path, model, since_asked_s)
        yield daemon, model
        daemon.close()
        assert model.problems == []


@pytest.fixture
def furnished(tmp_path: Path) -> Iterator[tuple[Daemon, ScriptedServer]]:
    """The same of the version before the day had a page of its own."""
    with ScriptedServer(*left_before_face.RULES) as model:
        daemon = unpacked("before_face.tar.xz", tmp_path, model, since_asked_s)
        yield daemon, model
        daemon.close()
        assert model.problems == []


@pytest.fixture
def dated(tmp_path: Path) -> Iterator[tuple[Daemon, ScriptedServer]]:
    """The same of the version before there were calendars."""
    with ScriptedServer(*left_before_calendars.RULES) as model:
        daemon = unpacked("before_calendars.tar.xz", tmp_path, model, since_asked_s)
        yield daemon, model
        daemon.close()
        assert model.problems == []


def unpacked(name: str, folder: Path, model: ScriptedServer, later_s: Callable[[Path], int]) -> Daemon:
    with tarfile.open(HOMES / name) as packed:
        packed.extractall(folder, filter="data")
    daemon = Daemon(folder / "home", database_url="")
    move_by(daemon.home, later_s(daemon.home))
    (file,) = daemon.home.glob("*/model_registry.json")
    file.write_text(re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{model.port}", file.read_text("utf-8")), "utf-8")
    return daemon


def hours_since_due_s(home: Path) -> int:
    """The kill was an hour or two ago, by whole hours: the hourly job has become due, the approval still waits."""
    ((due_s,),) = asked(home, "SELECT strftime('%s', next_at) FROM jobs")
    return (int(time.time()) - int(due_s)) // HOUR_S * HOUR_S


def since_asked_s(home: Path) -> int:
    """The kill was a moment ago: that version gave an approval five minutes."""
    ((asked_s,),) = asked(home, "SELECT strftime('%s', created_at) FROM approvals")
    return int(time.time()) - int(asked_s)


def asked(home: Path, question: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(home / "cortex.db", timeout=PATIENCE_S)) as rows:
        return rows.execute(question).fetchall()


def move_by(home: Path, later_s: int) -> None:
    """Let everything in it have happened later."""
    with closing(sqlite3.connect(home / "cortex.db", timeout=PATIENCE_S)) as rows, rows:
        columns = """SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c
                     WHERE t.type = 'table' AND t.name <> 'audit' AND c.type = 'DATETIME'"""  # audit rows stay
        for table, column in rows.execute(columns).fetchall():
            moved = f"strftime('%Y-%m-%d %H:%M:%S', {column}, '{later_s} seconds')"
            rows.execute(f"UPDATE {table} SET {column} = {moved} || substr({column}, 20)")  # noqa: S608 - its own names
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
    assert "May or may not have happened" in once
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


def test_what_people_set_up_in_a_later_version_works_on(later: Daemon) -> None:
    given = taken(later)
    later.start()
    with Caller(later) as ada:
        ada.log_in()
        answer_the_question(later, ada)
        until(lambda: {state for (state,) in found(later, "SELECT state FROM turns")} <= set(LOOP_ENDS))
        assert found(later, "SELECT title FROM tasks ORDER BY title") == [("apples",), ("bread",), ("milk",)]
        what_was_set_up_works_on(later, ada, given)
    assert later.stop() == 0
    assert " ERROR " not in later.log


def taken(daemon: Daemon) -> dict[str, str]:
    """The token and the address that lay beside the home, which are no part of it."""
    left = daemon.home / left_2026_11_27.GIVEN
    given: dict[str, str] = json.loads(left.read_text("utf-8"))
    left.unlink()
    return given


def what_was_set_up_works_on(daemon: Daemon, ada: Caller, given: dict[str, str]) -> None:
    """The queued message, skill, file, token, web address, and the list that is shared."""
    assert "You said nothing about eggs." in page_of(daemon, ada, CUT_OFF)
    assert left_2026_11_27.SKILL[1] in ada.get("/skills").text
    name, data = left_2026_11_27.FILE
    link = re.search(rf'href="(/files/[^"]+)"[^>]*>{name}', ada.get("/files").text)
    assert link is not None
    assert ada.get(f"{link[1]}/content").content == data
    asked = {"model": "cortex", "messages": [{"role": "user", "content": "does this token let me in?"}]}
    answer = httpx.post(
        f"{daemon.origin}/v1/chat/completions",
        json=asked,
        headers={"Authorization": f"Bearer {given['token']}"},
        timeout=PATIENCE_S,
    )
    assert answer.json()["choices"][0]["message"]["content"] == "The token lets you in."
    assert httpx.post(f"{daemon.origin}{given['address']}", timeout=PATIENCE_S).status_code < 300
    until(lambda: ("The bell rang.",) in found(daemon, "SELECT result FROM slots WHERE result <> ''"))
    with Caller(daemon) as bob:
        assert "apples" in bob.log_in("Bob").get("/tasks").text


def test_what_chose_tools_in_the_version_before_is_used_or_its_admin_is_told(
    chooser: tuple[Daemon, ScriptedServer],
) -> None:
    daemon, model = chooser
    given = taken(daemon)
    daemon.start()
    with Caller(daemon) as ada:
        ada.log_in()
        answer_the_question(daemon, ada)
        until(lambda: {state for (state,) in found(daemon, "SELECT state FROM turns")} <= set(LOOP_ENDS))
        until(lambda: found(daemon, "SELECT state, result FROM slots") == [("done", "Rye is on your list.")])
        titles = [title for (title,) in found(daemon, "SELECT title FROM tasks ORDER BY title")]
        assert titles == ["apples", "bread", "milk", "rye"], "a call that was cut off ran again, or not at all"
        assert first_requests(model) == {QUEUED}, "a step that was kept is made again"
        what_was_set_up_works_on(daemon, ada, given)
        the_ended_conversation_reads_as_before(daemon, ada)
        the_plans_of_before_are_told(daemon, ada)
        own_words_choose_on(daemon, ada, model)
        the_refit_is_not_used_and_says_so(daemon, ada)
    assert daemon.stop() == 0
    assert " ERROR " not in daemon.log


def the_plans_of_before_are_told(daemon: Daemon, ada: Caller) -> None:
    """Each turn's page and the reasons for its tools, which that version kept in its own words."""
    for text, tool in ((left_before_prices.OWN, "scratch_append"), (WAITING, "cron_add"), (CUT_OFF, "task_create")):
        ((turn,),) = found(daemon, "SELECT id FROM turns WHERE text = ?", text)
        assert 'id="round-1"' in ada.get(f"/runs/{turn.removeprefix('turn:')}").text
        assert tool in why_of(daemon, ada, text)
    assert left_before_prices.PHRASE in why_of(daemon, ada, left_before_prices.OWN)


def why_of(daemon: Daemon, ada: Caller, text: str) -> str:
    """Why the turn with this message had its tools."""
    ((turn,),) = found(daemon, "SELECT id FROM turns WHERE text = ?", text)
    return ada.get(f"/turns/{turn.removeprefix('turn:')}/why").text


def own_words_choose_on(daemon: Daemon, ada: Caller, model: ScriptedServer) -> None:
    """In the old conversation and in a new one: this server's phrase and its examples still bring their tool."""
    ((talk,),) = found(daemon, "SELECT conversation_id FROM turns WHERE text = ?", left_before_prices.OWN)
    for chat, text in ((talk, "krimskrams again"), ("new", "krimskrams anew"), ("new", "please calm the dragon")):
        ada.until_idle(ada.send(chat, text))
        ((turn,),) = found(daemon, "SELECT id FROM turns WHERE text = ?", text)
        called = found(daemon, "SELECT name, state FROM calls WHERE turn_id = ?", turn)
        assert called == [("scratch_append", "done")], text
    page = ada.get("/admin/tools/in/scratchpad").text
    assert left_before_prices.PHRASE in page
    assert "calm the dragon" in page


def the_refit_is_not_used_and_says_so(daemon: Daemon, ada: Caller) -> None:
    """It rests on other weights than those that are there: the page, the health page and the log say what to do."""
    told = "Refit 1 was made for an older model"
    assert told in ada.get("/admin/tools/learn").text
    assert told in ada.get("/admin/health").text
    assert "refit 1 is based on an older model" in daemon.log
    ada.post("/admin/tools/learn", do="refit")
    assert found(daemon, "SELECT number FROM refits WHERE is_in_force") == [(2,)]
    assert told not in ada.get("/admin/health").text


def test_a_backup_of_the_version_before_can_be_put_back(chooser: tuple[Daemon, ScriptedServer]) -> None:
    daemon, _ = chooser
    (kept,) = (daemon.home / "backups").glob("*.backup")
    given = run(["restore", kept.name], env=environment(daemon.home), cwd=daemon.home)
    assert given.returncode == 0, given.stderr
    daemon.start()
    with Caller(daemon) as ada:
        assert "Milk is on your list." in page_of(daemon, ada.log_in(), ENDED)
        assert found(daemon, "SELECT title FROM tasks ORDER BY title") == [("apples",), ("milk",)]
        assert left_before_prices.PHRASE in ada.get("/admin/tools/in/scratchpad").text
        assert "task_create" in why_of(daemon, ada, ENDED)
    assert daemon.stop() == 0
    assert " ERROR " not in daemon.log


def test_what_the_version_before_kept_at_length_reads_the_same_beside_what_is_kept_short(
    wordy: tuple[Daemon, ScriptedServer],
) -> None:
    daemon, model = wordy
    given = taken(daemon)
    logs = found(daemon, "SELECT conversation_id, seq, payload FROM events ORDER BY 1, 2")
    daemon.start()
    with Caller(daemon) as ada:
        ada.log_in()
        answer_the_question(daemon, ada)
        until(lambda: {state for (state,) in found(daemon, "SELECT state FROM turns")} <= set(LOOP_ENDS))
        until(lambda: found(daemon, "SELECT state, result FROM slots") == [("done", "Rye is on your list.")])
        titles = [title for (title,) in found(daemon, "SELECT title FROM tasks ORDER BY title")]
        assert titles == ["apples", "bread", "milk", "rye", "sugar"], "a call that was cut off ran again, or not at all"
        assert first_requests(model) == {QUEUED}, "a step that was kept is made again"
        what_was_set_up_works_on(daemon, ada, given)
        the_plans_of_before_are_told(daemon, ada)
        assert "task_create" in why_of(daemon, ada, left_before_light.SUGAR)
        the_old_chat_goes_on_and_is_exported_whole(daemon, ada, logs)
    assert daemon.stop() == 0
    assert " ERROR " not in daemon.log


def the_old_chat_goes_on_and_is_exported_whole(daemon: Daemon, ada: Caller, logs: list[tuple[Any, ...]]) -> None:
    """Its rows of before stay as they were, the new ones are short, and the export has both at length."""
    ((talk,),) = found(daemon, "SELECT conversation_id FROM turns WHERE text = ?", left_before_light.SUGAR)
    ada.until_idle(ada.send(talk, "hello again"))
    before = [payload for id, _, payload in logs if id == talk]
    rows = [row for (row,) in found(daemon, "SELECT payload FROM events WHERE conversation_id = ? ORDER BY seq", talk)]
    assert rows[: len(before)] == before
    assert len(before) < len(rows)
    assert '"turn":0' in rows[-1]
    told = [event["payload"] for event in json.loads(ada.get(f"/c/{talk}/export.json").text)["events"]]
    assert told[: len(before)] == [json.loads(payload) for payload in before]
    ((turn,),) = found(daemon, "SELECT id FROM turns WHERE text = 'hello again'")
    assert {payload["turn"] for payload in told[len(before) :] if "turn" in payload} == {turn}
    ((old,),) = found(daemon, "SELECT id FROM turns WHERE text = ?", left_before_light.SUGAR)
    for each in (old, turn):
        replayed = ada.get(f"/runs/{each.removeprefix('turn:')}?round=1&recipe=vector").text
        assert 'id="replay"' in replayed


def test_a_day_begun_in_the_version_before_goes_on(furnished: tuple[Daemon, ScriptedServer]) -> None:
    daemon, model = furnished
    given = taken(daemon)
    garden = "SELECT title FROM tasks WHERE list_name = ? ORDER BY position"
    before = found(daemon, garden, left_before_face.LIST)
    assert len(before) == len(left_before_face.PLANTS)
    daemon.start()
    with Caller(daemon) as ada:
        ada.log_in()
        answer_the_question(daemon, ada)
        until(lambda: {state for (state,) in found(daemon, "SELECT state FROM turns")} <= set(LOOP_ENDS))
        assert first_requests(model) == {QUEUED}, "a step that was kept is made again"
        until(lambda: found(daemon, "SELECT state, result FROM slots") == [("done", "Rye is on your list.")])
        what_was_set_up_works_on(daemon, ada, given)
        assert found(daemon, garden, left_before_face.LIST) == before
        the_day_is_shown(daemon, ada)
    assert daemon.stop() == 0
    assert " ERROR " not in daemon.log


def test_the_days_of_the_version_before_calendars_stand_in_one(dated: tuple[Daemon, ScriptedServer]) -> None:
    daemon, model = dated
    given = taken(daemon)
    assert found(daemon, "SELECT version_num FROM alembic_version") == [("0043",)]
    daemon.start()
    with Caller(daemon) as ada:
        ada.log_in()
        answer_the_question(daemon, ada)
        until(lambda: {state for (state,) in found(daemon, "SELECT state FROM turns")} <= set(LOOP_ENDS))
        assert first_requests(model) == {QUEUED}, "a step that was kept is made again"
        until(lambda: ("done", "Rye is on your list.") in found(daemon, "SELECT state, result FROM slots"))
        what_was_set_up_works_on(daemon, ada, given)
        the_day_is_shown(daemon, ada)
        assert left_before_calendars.SNIPPET[1] in ada.get("/snippets").text
        week = ada.get("/calendar").text + ada.get(f"/calendar?day={tomorrow_of(daemon)}").text
        assert left_before_face.LATER in week
        assert left_before_calendars.WEEKLY in ada.get("/jobs").text
        assert found(daemon, "SELECT count(*) FROM calendars") == [(0,)]
    assert daemon.stop() == 0
    assert " ERROR " not in daemon.log


def tomorrow_of(daemon: Daemon) -> str:
    """The day for which the bin's reminder waits."""
    ((at,),) = found(daemon, "SELECT next_at FROM reminders WHERE text LIKE ?", f"%{left_before_face.LATER}%")
    return str(at)[:10]


def the_day_is_shown(daemon: Daemon, ada: Caller) -> None:
    """What was due is late, what was told is told once, what waits will be; the note and the guest are there."""
    today = ada.get("/").text
    assert left_before_face.DUE in today
    assert left_before_face.LATER in ada.get("/reminders").text
    told = found(daemon, "SELECT count(*) FROM notices WHERE text || title LIKE ?", f"%{left_before_face.TOLD}%")
    assert told == [(1,)]
    assert left_before_face.NOTE in ada.get("/notes").text
    assert "Mia" in ada.get("/admin/users").text


class Naming(Daemon):
    """One that prints each module that it loads."""

    starts = Program

    def _environment(self) -> dict[str, str]:
        return {**super()._environment(), "PYTHONPROFILEIMPORTTIME": "1"}


@pytest.mark.parametrize("is_new", [True, False], ids=["a new home", "an older one"])
def test_what_brings_tables_up_to_date_stays_in_no_daemons_memory(
    is_new: bool, tmp_path: Path, model: ScriptedServer
) -> None:
    home = tmp_path / "new" if is_new else unpacked("2026-11-21.tar.xz", tmp_path, model, hours_since_due_s).home
    daemon = Naming(home, database_url="")
    try:
        daemon.start()
        with closing(sqlite3.connect(daemon.home / "cortex.db")) as db:
            assert db.execute("SELECT version_num FROM alembic_version").fetchone() == (revisions.newest(),)
        loaded = re.findall(r"\| +(\S+)$", daemon.log, re.MULTILINE)
        assert ("uvicorn" in loaded, [name for name in loaded if "alembic" in name]) == (True, [])
    finally:
        daemon.close()
