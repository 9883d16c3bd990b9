"""Databases go away, disks fill, processes stand still or are killed in the middle of a turn: it ends all the same."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest
from playwright.sync_api import expect
from sqlalchemy import make_url

from tests.children import Child, Limits, Program
from tests.databases import is_on_postgresql
from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.crew import AWAY, BACK, Crew, Listener, events_of, until, words
from tests.e2e.daemon import Daemon
from tests.e2e.proxy import Proxy
from tests.e2e.tables import locked
from tests.patience import PATIENCE_S
from tests.postgres import PrivateServer, private_postgres, private_server
from tests.scripted_server import Fault, ScriptedServer, Use, rule

OWN = pytest.mark.names_its_database("a PostgreSQL of its own, which is stopped")
CREW = pytest.mark.names_its_database("several processes on a server of their own")
STOPPED = '<p class="end">Stopped.</p>'
MILK = "put milk on my list"
SHELL = "run `echo up-$((40+2))` in the shell"
DONE = "Milk stands on the list, and there it stays."


@pytest.fixture
def daemon(daemon: Daemon) -> Daemon:
    """Started from nothing: the first use of a model's provider loads it, which holds the loop for seconds."""
    daemon.starts = Program
    return daemon


@contextmanager
def model(answer: str = DONE) -> Iterator[ScriptedServer]:
    """A model that makes one call and says so."""
    with ScriptedServer(rule("milk", Use("task_create", {"title": "milk"}), answer)) as server:
        yield server
        assert server.problems == []


def settle(ada: Caller, server: ScriptedServer) -> None:
    """Have this model asked."""
    form = {"provider": "openai", "model": "scripted-1", "base_url": server.base_url, "api_key": server.api_key}
    ada.post("/models", name="scripted", streams="on", tools="on", **form)


def halfway(server: ScriptedServer, ada: Caller) -> str:
    """A turn in the middle of its second answer; its conversation."""
    server.fail(Fault(kind="slow", seconds=0.0), Fault(kind="pause", after_bytes=300))
    cid = ada.send("new", MILK)
    until(lambda: len(server.log) == 2 and server.log[-1].sent_bytes >= 300)
    return cid


def begun_on(daemon: Daemon, server: PrivateServer, ada: Caller, scripted: ScriptedServer) -> str:
    """The daemon on this PostgreSQL, in the middle of a turn; its conversation."""
    daemon.set(database_url=server.url)
    daemon.start()
    settle(ada.set_up(), scripted)
    return halfway(scripted, ada)


def check_whole(ada: Caller, server: ScriptedServer, cid: str, answer: str = DONE) -> None:
    """One call, one task, one answer, and nothing was asked twice."""
    assert len(server.log) == 2, "a model was asked again for what it had said"
    page = ada.get(f"/c/{cid}").text
    assert page.count(answer[:40]) == 1
    assert ada.get("/tasks").text.count(">milk<") == 1


# --- the database is away ---------------------------------------------------------------------------------------


def away_in_a_turn(daemon: Daemon, server: PrivateServer, proxy: Proxy | None, away_s: float) -> None:
    """Stop the server in the middle of a turn, for so long."""
    with model() as scripted, Caller(daemon) as ada:
        daemon.start()
        settle(ada.set_up(), scripted)
        cid = halfway(scripted, ada)
        with Listener(daemon.origin, ada.token, events_of(cid)) as page:
            page.first("", MILK)  # from here on it is told what comes
            if proxy is not None:
                proxy.cut()
            server.stop()
            scripted.go_on(99)
            page.first("", AWAY)
            time.sleep(away_s)
            assert page.is_open
            server.start()
            if proxy is not None:
                proxy.mend()
            page.first("", BACK)
            assert page.first("ended").data.strip() == "done"
        check_whole(ada, scripted, cid)
        assert daemon.stop() == 0


@OWN
@pytest.mark.parametrize("away_s", [1.0, pytest.param(40.0, marks=pytest.mark.full)])
def test_a_turn_waits_for_postgresql_over_its_socket(daemon: Daemon, away_s: float) -> None:
    with private_server() as server:
        daemon.set(database_url=server.url)
        away_in_a_turn(daemon, server, None, away_s)


@OWN
@pytest.mark.timeout(900)
@pytest.mark.parametrize("is_frozen", [False, pytest.param(True, marks=pytest.mark.full)], ids=["gone", "frozen"])
def test_a_daemon_ends_while_its_turn_waits_for_postgresql(daemon: Daemon, is_frozen: bool) -> None:
    """Told to end, it does not wait for the server; the next start finishes the turn."""
    with private_server() as server, model() as scripted, Caller(daemon) as ada:
        cid = begun_on(daemon, server, ada, scripted)
        with Listener(daemon.origin, ada.token, events_of(cid)) as page:
            page.first("", MILK)
            server.freeze() if is_frozen else server.stop()
            try:
                scripted.go_on(99)
                page.first("", AWAY)
                assert daemon.stop() == 0
            finally:
                server.thaw() if is_frozen else server.start()
        assert "Traceback" not in daemon.log, daemon.log
        daemon.start()
        until(lambda: DONE[:40] in ada.get(f"/c/{cid}").text)
        assert ada.get("/tasks").text.count(">milk<") == 1


@OWN
@pytest.mark.full
@pytest.mark.timeout(900)
def test_a_turn_waits_for_a_postgresql_that_is_frozen(daemon: Daemon) -> None:
    """Its machine answers for it, so no line breaks: what is asked is given up after a while, and asked again."""
    with private_server() as server, model() as scripted, Caller(daemon) as ada:
        cid = begun_on(daemon, server, ada, scripted)
        with Listener(daemon.origin, ada.token, events_of(cid)) as page:
            page.first("", MILK)
            server.freeze()
            try:
                scripted.go_on(99)
                page.first("", AWAY)
                assert ada.get("/tasks").status_code == 503
            finally:
                server.thaw()
            page.first("", BACK)
            assert page.first("ended").data.strip() == "done"
        check_whole(ada, scripted, cid)
        server.freeze()
        try:
            assert daemon.stop() == 0
        finally:
            server.thaw()


@OWN
@pytest.mark.browser
def test_a_page_that_is_loaded_while_the_database_is_away_says_so_and_comes_back(daemon: Daemon, opens: Opens) -> None:
    daemon.starts = Child
    with private_server() as server, Caller(daemon) as ada:
        daemon.set(database_url=server.url)
        daemon.start()
        shown = ada.set_up().pages()
        window = opens(daemon.origin, ada.token)
        server.stop()
        for path in shown:
            answer = ada.get(path)
            assert (answer.status_code, "Database unavailable" in answer.text) == (503, True), path
            assert int(answer.headers["Retry-After"]) > 0
        window.page.goto(f"{daemon.origin}/tasks")
        expect(window.page.get_by_role("heading", level=1)).to_have_text("Database unavailable")
        server.start()
        expect(window.page.get_by_role("heading", level=1)).to_have_text("To do", timeout=PATIENCE_S * 1000)
        window.complaints[:] = [line for line in window.complaints if "503" not in line]


@OWN
def test_the_log_says_once_that_postgresql_is_away_and_once_that_it_is_back(daemon: Daemon) -> None:
    with private_server() as server, Caller(daemon) as ada:
        daemon.set(database_url=server.url)
        daemon.start()
        ada.set_up()
        before = len(daemon.log)
        server.stop()
        for _ in range(20):
            assert ada.get("/tasks").status_code == 503
        until(lambda: "one such line a minute" in daemon.log)
        server.start()
        until(lambda: "the database answers again, after" in daemon.log)
        lines = daemon.log[before:].splitlines()
        assert len(lines) == 2, lines
        assert daemon.stop() == 0


@OWN
@pytest.mark.full
@pytest.mark.parametrize("away_s", [1.0, 40.0])
def test_a_turn_waits_for_postgresql_over_tcp(daemon: Daemon, away_s: float) -> None:
    with private_server() as server, Proxy(server.socket) as proxy:
        url = make_url(server.url).set(host="127.0.0.1", port=proxy.port, query={})
        daemon.set(database_url=url.render_as_string(hide_password=False))
        away_in_a_turn(daemon, server, proxy, away_s)


@OWN
@pytest.mark.full
@pytest.mark.parametrize("away_s", [1.0, 40.0])
def test_a_turn_of_two_workers_waits_for_postgresql_and_stays_with_its_own(tmp_path: Path, away_s: float) -> None:
    with (
        private_server() as server,
        Crew(tmp_path, server.url) as crew,
        model() as scripted,
        Caller(crew.pages[0]) as ada,
    ):
        settle(ada.set_up(), scripted)
        cid = halfway(scripted, ada)
        with Listener(crew.pages[0].origin, ada.token, events_of(cid)) as page:
            page.first("", MILK)
            server.stop()
            scripted.go_on(99)
            page.first("", AWAY)
            time.sleep(away_s)
            assert page.is_open
            server.start()
            page.first("", BACK)
            assert page.first("ended").data.strip() == "done"
        check_whole(ada, scripted, cid)


# --- the disk is full -------------------------------------------------------------------------------------------

ROOM = "48m"
MOUNT = 'mount -t tmpfs -o size=$0,mode=700 tmpfs "$1" && shift && exec "$@"'


class InASmallRoom(Program):
    """The program in a mount namespace of its own, whose home is a small tmpfs."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        output: Path,
        umask: int = -1,
        limits: Limits | None = None,
    ) -> None:
        assert limits is None, "only a Child takes limits"
        own = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", MOUNT, ROOM, str(cwd)]
        with output.open("ab") as printed:
            self._process = subprocess.Popen(
                [*own, sys.executable, "-m", "web", *words],
                cwd=cwd.parent,
                env=dict(env),
                stdout=printed,
                stderr=subprocess.STDOUT,
                umask=umask,
            )


@pytest.fixture
def cramped(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon on a disk of 48 MB."""
    tried = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", MOUNT, ROOM, str(tmp_path), "true"]
    refused = subprocess.run(tried, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    if refused.returncode:
        pytest.skip(f"a full disk: needs a tmpfs in a user namespace, which is refused here: {refused.stderr.strip()}")
    made = Daemon(tmp_path / "home", database_url="")
    made.starts = InASmallRoom
    yield made
    made.close()


@contextmanager
def full(daemon: Daemon) -> Iterator[None]:
    """No byte is left on its disk inside the block."""
    filler = Path(f"/proc/{daemon.pid}/root{daemon.home}/filler")
    with filler.open("wb", buffering=0) as file:
        size = 1 << 20
        while size:
            try:
                file.write(bytes(size))
            except OSError:
                size //= 2
    try:
        yield
    finally:
        filler.unlink()


@OWN
@pytest.mark.parametrize("full_s", [0.0, pytest.param(15.0, marks=pytest.mark.full)])
def test_a_turn_waits_for_room_on_its_disk(cramped: Daemon, full_s: float) -> None:
    answer = "It stands on the list, " + "".join(
        f"and there it stays {day} " for day in range(17_000)
    )  # more than a log file has left over
    with model(answer) as scripted, Caller(cramped) as ada:
        cramped.start()
        settle(ada.set_up(), scripted)
        cid = halfway(scripted, ada)
        with Listener(cramped.origin, ada.token, events_of(cid)) as page:
            page.first("", MILK)
            with full(cramped):
                scripted.go_on(99_999)
                page.first("", AWAY)
                time.sleep(full_s)
                assert page.is_open
            page.first("", BACK)
            assert page.first("ended").data.strip() == "done"
        check_whole(ada, scripted, cid, answer)
        assert cramped.stop() == 0


# --- a process stands still -------------------------------------------------------------------------------------


@pytest.mark.parametrize("still_s", [2.0, pytest.param(120.0, marks=pytest.mark.full)])
def test_a_turn_goes_on_after_its_process_stood_still(daemon: Daemon, still_s: float) -> None:
    with model() as scripted, Caller(daemon) as ada:
        daemon.start()
        settle(ada.set_up(), scripted)
        cid = halfway(scripted, ada)
        os.kill(daemon.pid, signal.SIGSTOP)
        scripted.go_on(99)
        time.sleep(still_s)
        os.kill(daemon.pid, signal.SIGCONT)
        with Listener(daemon.origin, ada.token, events_of(cid)) as page:
            assert page.first("ended").data.strip() == "done"
        assert ada.get("/tasks").text.count(">milk<") == 1


# --- a process is killed between two commits ----------------------------------------------------------------------


@pytest.mark.skipif(is_on_postgresql(), reason="locks the engine's SQLite file; the crew below does so on PostgreSQL")
def test_a_stop_whose_daemon_was_killed_before_its_cancel_is_carried_out(daemon: Daemon) -> None:
    daemon.starts = Child
    with model() as scripted, Caller(daemon) as ada:
        daemon.start()
        settle(ada.set_up(), scripted)
        scripted.fail(Fault(kind="none"), Fault(kind="stall", after_bytes=300))
        cid = ada.send("new", MILK)
        until(lambda: len(scripted.log) == 2 and scripted.log[-1].sent_bytes >= 300)
        with locked(daemon.home / "engine.db"), posted(ada, f"/c/{cid}/stop"):
            assert scripted.log[-1].left.wait(PATIENCE_S)
            daemon.kill9()
        daemon.start()
        assert STOPPED in ada.until_idle(cid)
        assert len(scripted.log) == 2, "the model was asked for what was stopped"


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    with private_postgres() as url, Crew(tmp_path_factory.mktemp("crew"), url, offline_delay_ms=60) as made:
        yield made


@pytest.fixture(scope="module")
def ada(crew: Crew) -> Iterator[Caller]:
    with Caller(crew.pages[0]) as caller:
        yield caller.set_up()


@contextmanager
def held(crew: Crew, statement: str, *values: str) -> Iterator[None]:
    """A lock that stops the page at one exact statement."""
    with psycopg.connect(crew.url) as lock:
        lock.execute(statement.encode(), values)
        yield


@contextmanager
def posted(who: Caller, path: str, **fields: str) -> Iterator[None]:
    """A form that is sent inside the block by somebody else, and that nobody answers."""

    def send() -> None:
        with pytest.raises(httpx.HTTPError):
            who.post(path, **fields)

    with ThreadPoolExecutor(max_workers=1) as thread:
        sent = thread.submit(send)
        yield
        sent.result(PATIENCE_S)


def value(crew: Crew, statement: str, *values: str) -> object:
    """The one value that the tables give."""
    with psycopg.connect(crew.url) as connection:
        row = connection.execute(statement.encode(), values).fetchone()
    return row[0] if row else None


STATE = "SELECT state FROM turns WHERE conversation_id = %s ORDER BY ordinal LIMIT 1"


@CREW
def test_a_stop_whose_page_was_killed_is_carried_out(crew: Crew, ada: Caller) -> None:
    cid = ada.send("new", "hello, what can you do?")
    with Listener(crew.pages[0].origin, ada.token, events_of(cid)) as page:
        until(lambda: len(words(page.heard)) > 60)
    until(lambda: value(crew, STATE, cid) == "running")  # what is in line still has nothing to stop
    row = "SELECT 1 FROM conversations WHERE id = %s FOR UPDATE"  # its end is written there too, its stop is not
    with held(crew, row, cid), posted(ada, f"/c/{cid}/stop"):
        cancelled = """SELECT count(*) FROM dbos.workflow_status JOIN turns ON turns.id = workflow_uuid
            WHERE turns.conversation_id = %s AND status = 'CANCELLED'"""
        until(lambda: value(crew, cancelled, cid) == 1)
        crew.pages[0].kill9()
    until(lambda: value(crew, STATE, cid) == "stopped", every_s=0.2)
    crew.pages[0].start()
    assert "in the middle" not in ada.get(f"/c/{cid}").text


@CREW
def test_a_stop_whose_page_was_killed_before_its_cancel_is_carried_out(crew: Crew, ada: Caller) -> None:
    cid = ada.send("new", "hello, what can you do?")
    with Listener(crew.pages[0].origin, ada.token, events_of(cid)) as page:
        until(lambda: len(words(page.heard)) > 60)
    until(lambda: value(crew, STATE, cid) == "running")  # what is in line still has nothing to stop
    with held(crew, "LOCK TABLE dbos.workflow_status IN SHARE MODE"), posted(ada, f"/c/{cid}/stop"):
        asked = "SELECT count(*) FROM turns WHERE conversation_id = %s AND stop_asked_at IS NOT NULL"
        until(lambda: value(crew, asked, cid) == 1)
        crew.pages[0].kill9()
    until(lambda: value(crew, STATE, cid) == "stopped", every_s=0.2)
    crew.pages[0].start()
    assert STOPPED in ada.get(f"/c/{cid}").text


@CREW
def test_an_answer_whose_page_was_killed_before_its_signal_is_heard(crew: Crew, ada: Caller) -> None:
    cid = ada.send("new", SHELL)
    with Listener(crew.pages[0].origin, ada.token, events_of(cid)) as page:
        page.first("run", "ask")
        found = re.search(r'action="/approvals/([\w-]+)"', ada.get(f"/c/{cid}").text)
        assert found
    signals = "LOCK TABLE dbos.notifications IN SHARE ROW EXCLUSIVE MODE"
    with held(crew, signals), posted(ada, f"/approvals/{found[1]}", choice="once"):
        until(lambda: value(crew, "SELECT state FROM approvals WHERE id = %s", found[1]) == "allowed")
        crew.pages[0].kill9()
    until(lambda: value(crew, STATE, cid) == "done", every_s=0.2)
    crew.pages[0].start()
    assert "up-42" in ada.get(f"/c/{cid}").text
