"""The real daemon while another process holds the write lock of its database, as a backup or a stuck command would."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from sqlalchemy import update

from cortex.base.clock import now
from cortex.storage.schema.accounts import LoginTable
from tests.databases import is_on_postgresql, rows_of
from tests.e2e.caller import Caller
from tests.e2e.crew import AWAY, Listener, events_of
from tests.e2e.crowd import shopping_model
from tests.e2e.daemon import Daemon
from tests.e2e.tables import locked
from tests.patience import PATIENCE_S
from tests.scripted_server import Fault, ScriptedServer

pytestmark = pytest.mark.skipif(is_on_postgresql(), reason="only SQLite locks the whole database for a writer")

LONGER_THAN_ANY_WAIT_S = 65


def forget_when_logins_were_seen(home: Path) -> None:
    """The next request of each login has something to write down: that it was seen."""
    with rows_of(home) as rows:
        rows.execute(update(LoginTable).values(seen_at=now() - timedelta(days=1)))


def posted(daemon: Daemon, caller: Caller, path: str, **fields: str) -> httpx.Response:
    """What a form is answered, refused or not."""
    return httpx.post(
        f"{daemon.origin}{path}",
        data=fields,
        headers={"Origin": daemon.origin},
        cookies={"cortex": caller.token},
        timeout=PATIENCE_S,
        trust_env=False,
    )


def begun(ada: Caller, model: ScriptedServer) -> str:
    """The conversation of a turn whose model has begun to answer, and waits for `go_on`."""
    ada.set_up()
    form = {"provider": "openai", "model": "s", "base_url": model.base_url, "api_key": model.api_key}
    ada.post("/models", name="shopper", streams="on", tools="on", **form)
    model.fail(Fault(kind="pause", after_bytes=1))
    place = ada.send("new", "add bottle 7 to my shopping list and jot it down")
    while not model.log:
        time.sleep(0.05)
    return place


@pytest.mark.parametrize("held_s", [0, pytest.param(LONGER_THAN_ANY_WAIT_S, marks=pytest.mark.full)])
def test_pages_answer_and_a_turn_waits_while_the_database_is_locked(daemon: Daemon, held_s: float) -> None:
    daemon.start()
    with shopping_model() as model, Caller(daemon) as ada:
        place = begun(ada, model)
        shown = ada.pages()
        forget_when_logins_were_seen(daemon.home)
        with Listener(daemon.origin, ada.token, events_of(place)) as live, locked(daemon.home / "cortex.db"):
            live.first("", "bottle 7")
            model.go_on(10_000)  # the turn has an answer to store, and waits
            live.first("", AWAY)
            for path in shown:  # nobody lets the lock go before these have answered
                assert ada.get(path).status_code in (200, 404), path
            time.sleep(held_s)
        page = ada.until_idle(place)
        assert "It is done: bottle 7 stands on the list and on the scratchpad." in page
        ada.send(place, "add bottle 9 to my shopping list and jot it down")
        assert "It is done: bottle 9" in ada.until_idle(place)


def test_a_message_waits_for_another_program_that_lets_go(daemon: Daemon) -> None:
    daemon.start()
    with shopping_model() as model, Caller(daemon) as ada, ThreadPoolExecutor() as threads:
        place = begun(ada, model)
        with Listener(daemon.origin, ada.token, events_of(place)) as live:
            with locked(daemon.home / "cortex.db"):
                model.go_on(10_000)
                sent = threads.submit(posted, daemon, ada, f"/c/{place}/messages", text="add bottle 8 to my list")
                live.first("", AWAY)  # both have waited for two seconds by then, about
            assert sent.result(PATIENCE_S).status_code == 303
        assert "It is done: bottle 8" in ada.until_idle(place)


@pytest.mark.full
def test_what_another_program_keeps_out_for_long_is_given_back_and_a_stop_stops(daemon: Daemon) -> None:
    daemon.start()
    with shopping_model() as model, Caller(daemon) as ada:
        place = begun(ada, model)
        with locked(daemon.home / "cortex.db"):
            refused = posted(daemon, ada, f"/c/{place}/messages", text="and what about bottle 8?")
            assert refused.status_code == 503
            assert "database is busy" in refused.text
            assert "and what about bottle 8?" in refused.text  # the words are not lost
            assert "database is busy" in posted(daemon, ada, f"/c/{place}/stop").text
            assert model.log[-1].left.wait(PATIENCE_S), "what was stopped goes on"
        page = ada.until_idle(place)
        assert '<p class="end">Stopped.</p>' in page
        assert "bottle 8" not in page


@pytest.mark.full
def test_a_turn_says_that_it_waits_while_the_engines_database_is_locked(daemon: Daemon) -> None:
    daemon.start()
    with shopping_model() as model, Caller(daemon) as ada:
        place = begun(ada, model)
        with Listener(daemon.origin, ada.token, events_of(place)) as live, locked(daemon.home / "engine.db"):
            live.first("", "bottle 7")
            model.go_on(10_000)
            live.first("", AWAY)
        assert "It is done: bottle 7" in ada.until_idle(place)
