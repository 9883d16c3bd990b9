"""SIGTERM, SIGINT and SIGHUP end the daemon whatever it is at; what was ordered before brings it back no more."""

import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from tests.children import Child, Program
from tests.databases import is_on_postgresql
from tests.e2e.caller import Caller
from tests.e2e.crowd import shopping_model
from tests.e2e.daemon import Daemon
from tests.e2e.tables import locked
from tests.patience import PATIENCE_S
from tests.scripted_server import Fault

ENDINGS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
READY = "Cortex is at "
KILLED = 128


def poll(holds: Callable[[], bool]) -> None:
    ends_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < ends_s
        time.sleep(0.02)


@pytest.fixture
def busy(daemon: Daemon) -> Iterator[Daemon]:
    """One in which a turn waits for a model that does not answer."""
    daemon.start()
    with shopping_model() as model, Caller(daemon) as ada:
        ada.set_up()
        form = {"provider": "openai", "model": "s", "base_url": model.base_url, "api_key": model.api_key}
        ada.post("/models", name="shopper", streams="on", tools="on", **form)
        model.fail(Fault(kind="hang"))
        ada.send("new", "add bottle 7 to my shopping list and jot it down")
        poll(lambda: bool(model.log))
        yield daemon


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_ordered_restart_that_waits_for_a_turn_is_over_when_the_daemon_is_told_to_end(
    busy: Daemon, ending: signal.Signals
) -> None:
    os.kill(busy.pid, signal.SIGUSR2)
    poll(lambda: "restarting: waiting for 1 turns" in busy.log)
    assert busy._end(ending) == 0
    assert busy.log.count(READY) == 1


@pytest.mark.parametrize("words", ["restarting: 0 turns", "shutting down: "], ids=["it drains", "it closes"])
def test_a_restart_that_is_under_way_ends_too(daemon: Daemon, words: str) -> None:
    daemon.start()
    os.kill(daemon.pid, signal.SIGUSR2)
    poll(lambda: words in daemon.log)
    assert daemon.stop() in (0, -signal.SIGTERM)  # the latter in the moment between the two


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.skipif(is_on_postgresql(), reason="only SQLite locks the whole database for a writer")
def test_it_ends_while_it_opens(daemon: Daemon, ending: signal.Signals) -> None:
    daemon.start()
    daemon.stop()
    with locked(daemon.home / "cortex.db"):
        opening = Child(["serve"], env=daemon._environment(), cwd=daemon.home, output=daemon.output)
        poll(lambda: (daemon.home / "serve.lock").read_text().startswith(f"{opening.pid}\n"))
        opening.send_signal(signal.SIGUSR2)  # an order that comes too early kills nobody
        opening.send_signal(ending)
        assert opening.wait() == 0
    assert daemon.log.count(READY) == 1
    assert "Traceback" not in daemon.log


def test_a_closed_terminal_ends_it_in_order_and_not_where_nohup_began_it(daemon: Daemon) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    daemon.starts = Program
    try:
        daemon.start()
    finally:
        signal.signal(signal.SIGHUP, before)
    os.kill(daemon.pid, signal.SIGHUP)
    with Caller(daemon) as ada:
        assert ada.get("/setup").status_code == 200
    daemon.restart()
    os.kill(daemon.pid, signal.SIGHUP)
    assert daemon._end(signal.SIGHUP) == 0
    assert daemon.log.count("shutting down: ") == 2


def test_a_second_signal_waits_for_no_turn(busy: Daemon) -> None:
    os.kill(busy.pid, signal.SIGTERM)
    poll(lambda: "shutting down: " in busy.log)
    assert busy.stop() == KILLED + signal.SIGTERM
    busy.start()
