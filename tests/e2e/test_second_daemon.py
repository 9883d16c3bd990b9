"""Two real daemons on one home: neither takes the other's runs while it lives, and both take up those of the dead."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.caller import Caller
from tests.e2e.crowd import shopping_model
from tests.e2e.daemon import Daemon
from tests.e2e.person import poll
from tests.patience import PATIENCE_S
from tests.scripted_server import Fault, ScriptedServer

ALLOWED = "CORTEX_ALLOW_SECOND_PROCESS is for tests and commands"


@pytest.fixture
def two(tmp_path: Path) -> Iterator[list[Daemon]]:
    made = [Daemon(tmp_path / "home", allow_second_process=1) for _ in range(2)]
    for number, daemon in enumerate(made):
        daemon.output = tmp_path / f"daemon{number}.log"
    yield made
    for daemon in made:
        daemon.close()


def asked_about(model: ScriptedServer, words: str) -> int:
    return sum(words in str(seen.body["messages"]) for seen in model.log)


def test_a_second_daemon_leaves_running_turns_alone_and_takes_up_those_of_a_dead_one(two: list[Daemon]) -> None:
    first, second = two
    first.start()
    with shopping_model() as model, Caller(first) as ada, Caller(second) as beside:
        ada.set_up()
        form = {"provider": "anthropic", "model": "claude-opus-5", "base_url": model.origin, "api_key": model.api_key}
        ada.post("/models", name="shopper", streams="on", tools="on", timeout_s="600", **form)
        model.fail(Fault(kind="pause", after_bytes=1))
        place = ada.send("new", "add bottle 1 to my shopping list and jot it down")
        poll(lambda: asked_about(model, "bottle 1") == 1)
        second.start()
        assert ALLOWED in second.log
        beside.become(ada.token)
        other = beside.send("new", "add bottle 2 to my shopping list and jot it down")
        assert "It is done: bottle 2" in beside.until_idle(other)
        assert asked_about(model, "bottle 1") == 1, "the second daemon asked what the living one is asking"
        model.go_on(10_000)
        assert "It is done: bottle 1" in ada.until_idle(place)
        assert asked_about(model, "bottle 1") == 3
        model.fail(Fault(kind="hang"))
        place = ada.send("new", "add bottle 4 to my shopping list and jot it down")
        poll(lambda: asked_about(model, "bottle 4") == 1)
        hung = model.log[-1]
        beside.post(f"/c/{place}/stop")
        assert hung.left.wait(PATIENCE_S), "the first daemon went on with what was stopped in the second"
        assert "bottle 4 stands" not in ada.until_idle(place)
        assert asked_about(model, "bottle 4") == 1
        model.fail(Fault(kind="hang"))
        place = ada.send("new", "add bottle 3 to my shopping list and jot it down")
        poll(lambda: asked_about(model, "bottle 3") == 1)
        first.kill9()
        assert "It is done: bottle 3" in beside.until_idle(place)
