"""The table of counts: what the product takes today, and that a row that grows, falls or cannot be seen is named."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from tests.bench import counted, counts, processes
from tests.bench.counted import Witness
from tests.bench.figure import Unmeasured
from tests.e2e.daemon import Daemon

KEPT = {"modules, to ready": 1000, "hello, statements": 90, "threads, behind ten turns": 16, "packages": 100}


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A committed table, in a folder of the test's."""
    path = tmp_path / "counts.json"
    monkeypatch.setattr(counts, "TABLE", path)
    return path


def take(monkeypatch: pytest.MonkeyPatch, **changed: int) -> None:
    """Let that be what is counted: KEPT, by the first word of a row's name changed."""
    found = {name: changed.get(name.partition(",")[0], count) for name, count in KEPT.items()}
    monkeypatch.setattr(counts, "counted", lambda _: found)


def test_the_product_takes_no_more_than_the_table_says(tmp_path: Path) -> None:
    assert list(counts.rises(counts.committed(), counted.counted(tmp_path))) == []


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"modules": 1031}, "modules, to ready: 1,031, was 1,000. Find what brought them"),
        ({"modules": 969}, "modules, to ready: 969, was 1,000: better."),
        ({"hello": 93}, "hello, statements: 93, was 90. Find what brought them"),
        ({"threads": 19}, "threads, behind ten turns: 19, was 16. Find what brought them"),
        ({"packages": 101}, "packages: 101, was 100. Find what brought them"),
    ],
)
def test_a_row_that_changed_is_named_until_it_is_kept(
    changed: dict[str, int],
    named: str,
    table: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    take(monkeypatch)
    assert counts.main(["--update"]) == 0
    assert counts.main([]) == 0
    take(monkeypatch, **changed)
    assert counts.main([]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(named)
    assert counts.UPDATE in line
    assert counts.main(["--update"]) == 0
    assert counts.main([]) == 0


def test_what_changes_within_the_slack_says_nothing(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch)
    counts.main(["--update"])
    take(monkeypatch, modules=1030, hello=88, threads=18)
    assert counts.main([]) == 0


def test_a_row_that_one_of_the_two_lacks_is_named() -> None:
    less = {name: count for name, count in KEPT.items() if name != "packages"}
    (gone,), (new,) = list(counts.rises(KEPT, less)), list(counts.rises(less, KEPT))
    assert gone.startswith("packages: in the table alone")
    assert new.startswith("packages: in no table yet")


def test_what_cannot_be_counted_does_not_pass(
    table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def blind(_: Path) -> dict[str, int]:
        raise Unmeasured("the daemon does not answer to a look")

    take(monkeypatch)
    counts.main(["--update"])
    monkeypatch.setattr(counts, "counted", blind)
    assert counts.main([]) == counts.main(["--update"]) == 1
    assert "The counts could not be taken: the daemon does not answer to a look." in capsys.readouterr().err


def test_a_turn_is_charged_for_what_names_it_and_for_nothing_else() -> None:
    def told(number: int, *statements: str) -> list[counted.Facts]:
        return [{"sql": statement, "connection": number} for statement in statements]

    mine = told(1, "BEGIN", "SELECT halts", "UPDATE turns SET x WHERE id = 'turn:ada-1'", "-- a trigger")
    again = told(1, "UPDATE turns SET x WHERE id = 'turn:ada-1'", "COMMIT")  # told once more behind a trigger
    of_the_daemon = told(2, "BEGIN", "SELECT jobs WHERE next_at <= 'now'", "COMMIT")
    alone = told(3, "SELECT status WHERE id = 'turn:ada-1'", "PRAGMA data_version")
    facts = [*mine[:2], *of_the_daemon, *mine[2:], *alone, *again, {"opened": "/home/ada/notes.md"}]
    found = counted.counts_of(facts, ["turn:ada-1"])
    assert found == {"statements": 3, "transactions": 1, "files opened": 1}


def test_a_warm_up_under_another_name_is_not_waited_out_in_silence(tmp_path: Path) -> None:
    class Renamed(Witness):
        def look(self) -> Mapping[str, object]:  # type: ignore[override]
            return {"tasks": [["Somebody.keep", "sleep"]]}

    with pytest.raises(Unmeasured, match=r"no task is ToolReadiness\.keep any more"):
        Renamed(Daemon(tmp_path / "home")).until_warm()


def test_a_database_of_another_form_is_not_counted_as_nothing(tmp_path: Path) -> None:
    for name in processes.DATABASES:
        with closing(sqlite3.connect(tmp_path / name)) as rows:
            rows.execute("CREATE TABLE others (id TEXT)")
    with pytest.raises(Unmeasured, match=r"cortex\.db does not answer"):
        processes.until_ended(tmp_path)
