"""What is weighed, of the real daemon and the bare program; and that what grew, or was not weighed, fails by name."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CalledProcessError

import psutil  # type: ignore[import-untyped]  # ships no types
import pytest

from tests.bench.weight import main as weight
from tests.bench.weight import table
from tests.bench.weight.api import ApiSubject
from tests.bench.weight.peers import Peer
from tests.bench.weight.subject import Plan, Unanswered, stored_bytes
from tests.bench.weight.table import BARE, CORTEX, ROWS

SHORT = Plan(quiet_s=0.1, idle_s=0.1, asked=1, turns=45)
Rounds = dict[str, list[dict[str, float]]]
ONCE = {row.name: 10.0 for row in ROWS}


def told(_: str) -> None:
    """Progress is of no use in a test."""


@pytest.mark.full
def test_both_are_weighed_in_every_row(tmp_path: Path) -> None:
    weighing = weight.Weighing(tmp_path, told, turns=2, plan=SHORT, bare_plan=SHORT)
    weighing.run(1)
    (cortex,), (bare,) = weighing.rounds[CORTEX], weighing.rounds[BARE]
    assert cortex.keys() == bare.keys() == {row.name for row in ROWS}
    assert cortex["processor to ready"] > bare["processor to ready"] > 0
    assert cortex["memory after 1 turn"] > bare["memory after 1 turn"] > 20
    assert cortex["turn with one tool"] > cortex["later hello"] * 0.5 > 0
    assert cortex["20 at once, unanswered"] == bare["20 at once, unanswered"] == 0
    assert cortex["stored, a turn with one tool"] > 0
    assert all(f"| {row.name} |" in table.markdown(weighing.rounds, {}) for row in ROWS)


@pytest.fixture
def taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rounds:
    """The rounds of a weighing that takes no time: change them, and `main` finds that."""
    rounds = {BARE: [ONCE | {"20 at once, unanswered": 0}], CORTEX: [ONCE | {"20 at once, unanswered": 0}]}
    monkeypatch.setattr(weight.Weighing, "run", lambda self, runs, has_peers: self.rounds.update(rounds))
    monkeypatch.setattr(weight, "KEPT", tmp_path / "weight.json")
    monkeypatch.setattr(weight, "PAGE", tmp_path / "page.md")
    weight.PAGE.write_text(f"above\n{weight.BEGIN}\nold\n{weight.END}\nbelow", encoding="utf-8")
    assert weight.main(["--update"], lambda: "a machine") == 0
    return rounds


@pytest.mark.parametrize("row", [row for row in ROWS if row.is_held], ids=lambda row: row.name)
def test_a_row_that_grew_fails_by_name(row: table.Row, taken: Rounds, capsys: pytest.CaptureFixture[str]) -> None:
    assert weight.main([], lambda: "a machine") == 0
    more = ONCE[row.name] * 1.06 + row.least
    taken[CORTEX][0] = taken[CORTEX][0] | {row.name: more}
    capsys.readouterr()
    assert weight.main([], lambda: "a machine") == 1
    line, advice = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{row.name}: ")
    assert "weight --update" in advice
    assert weight.main(["--update"], lambda: "a machine") == 0
    assert weight.main([], lambda: "a machine") == 0


def test_a_machine_that_is_slower_blames_nobody(taken: Rounds) -> None:
    for rounds in taken.values():
        rounds[0] = rounds[0] | {row.name: ONCE[row.name] * 3 for row in ROWS if row.per}
    assert weight.main([], lambda: "a machine") == 0


def test_what_is_kept_says_when_and_how_busy_and_stands_on_the_page(taken: object) -> None:
    kept = json.loads(weight.KEPT.read_text(encoding="utf-8"))
    assert "a machine" in kept["taken"]
    page = weight.PAGE.read_text(encoding="utf-8")
    assert page.startswith("above\n")
    assert page.endswith("\nbelow")
    assert f"{kept['taken']}\n\n| | bare | Cortex | Cortex to bare |" in page


def test_a_row_that_is_not_committed_or_not_measured_does_not_pass() -> None:
    kept = table.kept({BARE: [ONCE], CORTEX: [ONCE]})
    less = {name: each for name, each in kept.items() if name != "later hello"}
    assert list(table.grown(less, kept)) == ["later hello: not committed yet."]
    assert list(table.grown(kept, less)) == ["later hello: not measured."]


def test_a_peer_that_cannot_be_installed_is_missed_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Missing(Peer):
        def install(self) -> None:
            raise CalledProcessError(1, "pip", stderr="no such package")

    monkeypatch.setattr(weight, "PEERS", (Missing(name="Nobody", packages=("nobody==0",)),))
    weighing = weight.Weighing(tmp_path, told, turns=1)
    weighing.run(0, has_peers=True)
    assert weighing.missed == {"Nobody": "it could not be installed: no such package"}


def test_what_was_missed_is_said_and_fails(
    taken: Rounds, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(self: weight.Weighing, runs: int, has_peers: bool) -> None:
        self.rounds.update(taken)
        self.missed["Nobody"] = "it answered nothing"

    monkeypatch.setattr(weight.Weighing, "run", run)
    assert weight.main(["--peers"], lambda: "a machine") == weight.main(["--update"], lambda: "a machine") == 1
    shown = capsys.readouterr()
    assert "Nobody was not weighed: it answered nothing" in shown.out
    assert "Nobody was not weighed: it answered nothing" in shown.err


def test_a_program_that_does_not_start_is_said_with_its_last_words(tmp_path: Path) -> None:
    words = (sys.executable, "-c", "print('no port for me'); raise SystemExit(3)")
    subject = ApiSubject(name="Broken", home=tmp_path / "home", command=lambda _: words)
    with pytest.raises(Unanswered, match="it did not start: no port for me"), subject.running():
        pass


def test_a_peer_that_gives_up_is_left_out_and_named(tmp_path: Path) -> None:
    class Silent:
        name, home = "Silent", tmp_path

        @contextmanager
        def running(self) -> Iterator[psutil.Process]:
            yield psutil.Process()

        def say(self, talk: int, text: str) -> float:
            raise Unanswered(f"nothing to {text!r} in {talk}")

    weighing = weight.Weighing(tmp_path, told)
    weighing._weigh(Silent())
    assert weighing.missed == {"Silent": "nothing to 'hello' in 0"}
    assert "Silent" not in weighing.rounds


def test_what_is_stored_is_pages_and_files_without_what_passes(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_bytes(b"x" * 100)
    (tmp_path / "daemon.log").write_bytes(b"x" * 5000)
    assert stored_bytes(tmp_path) == 100
