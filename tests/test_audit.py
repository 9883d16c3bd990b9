"""`make audit`: what nobody could look up never passes as checked. The real program, over a double of pip-audit."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
GOOD = {"name": "good", "version": "1.0", "vulns": []}
SKIPPED = {"name": "hidden-part", "skip_reason": "Not found and could not be audited: hidden-part (2.0)"}
FLAW = {"id": "FLAW-2026-1", "fix_versions": ["1.1"], "aliases": [], "description": "…"}
LISTED = "# a head\nhidden-part==2.0  # 2026-11-22 not found\n"
DOUBLE = """#!{python}
import pathlib, sys
answer = pathlib.Path({answer!r})
if not answer.exists():
    sys.exit("ConnectionError: no index can be reached")
pathlib.Path(sys.argv[sys.argv.index("--output") + 1]).write_text(answer.read_text())
sys.exit({code})
"""

Audit = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def audit(tmp_path: Path) -> Audit:
    """Runs the audit in a folder with two pins; `rows`: pip-audit's answer, None for none; `listed`: the list."""
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements/run.txt").write_text("good==1.0 \\\n    --hash=sha256:00\n")
    for extra in ("otel", "ddgs", "postgres"):
        (tmp_path / f"requirements/{extra}.txt").write_text("good==1.0 \\\n    --hash=sha256:00\n")
    (tmp_path / "requirements/semantic.txt").write_text("Hidden_Part[x]==2.0 ; python_version < '4' \\\n")

    def run(*options: str, rows: list[Any] | None, listed: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
        answer, double = tmp_path / "answer.json", tmp_path / "bin" / "pip-audit"
        if rows is not None:
            answer.write_text(json.dumps({"dependencies": rows, "fixes": []}))
        double.parent.mkdir(exist_ok=True)
        double.write_text(DOUBLE.format(python=sys.executable, answer=str(answer), code=code))
        double.chmod(0o755)
        if listed:
            (tmp_path / "requirements/unaudited.txt").write_text(listed)
        return subprocess.run(
            [sys.executable, ROOT / ".ci/audit.py", *options],
            cwd=tmp_path,
            env={**os.environ, "PATH": f"{double.parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def last(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout.splitlines()[-1]


def test_when_all_were_looked_up_it_says_so(audit: Audit) -> None:
    done = audit(rows=[GOOD, {"name": "hidden-part", "version": "2.0", "vulns": []}])
    assert (done.returncode, last(done)) == (0, "checked: all 2 pins, 0 known vulnerabilities")


def test_what_is_listed_passes_and_is_named_as_not_checked(audit: Audit) -> None:
    done = audit(rows=[GOOD, SKIPPED], listed=LISTED)
    assert (done.returncode, "1 of 2" in done.stdout, "2026-11-22" in done.stdout) == (0, True, True)


def test_what_is_not_listed_fails_by_name(audit: Audit) -> None:
    done = audit(rows=[GOOD, SKIPPED])
    assert done.returncode == 1
    assert ("NOT CHECKED and" in done.stdout, "hidden-part==2.0" in done.stdout) == (True, True)
    assert last(done) == "NOT CHECKED: 1 of 2, list of none"


@pytest.mark.parametrize(
    "rows",
    [[GOOD, SKIPPED], [GOOD], [GOOD, {"name": "hidden-part", "version": "1.9", "vulns": []}]],
    ids=["skipped", "not mentioned", "another version was looked up"],
)
def test_another_version_than_the_listed_one_fails(audit: Audit, rows: list[Any]) -> None:
    done = audit(rows=rows, listed=LISTED.replace("2.0", "1.9"))
    assert (done.returncode, last(done)) == (1, "NOT CHECKED: 1 of 2, list of 2026-11-22")


@pytest.mark.parametrize("code", [0, 1])
def test_a_known_vulnerability_always_fails(audit: Audit, code: int) -> None:
    done = audit(rows=[{**GOOD, "vulns": [FLAW]}, SKIPPED], listed=LISTED + "good==1.0  # 2026-11-22 x\n", code=code)
    assert done.returncode == 1
    assert all(part in done.stdout for part in ("VULNERABLE: good 1.0", "FLAW-2026-1", "in 1.1"))


def test_where_no_index_answers_the_whole_list_passes_and_a_part_of_it_fails(audit: Audit) -> None:
    assert audit(rows=None, listed=LISTED).returncode == 1
    whole = audit(rows=None, listed=LISTED + "good==1.0  # 2026-11-22 no index can be reached\n")
    assert (whole.returncode, last(whole)) == (0, "NOT CHECKED: 2 of 2, list of 2026-11-22")


@pytest.mark.parametrize("answer", [[{"name": "good"}], [1]], ids=["a row without its parts", "no row"])
def test_an_answer_that_cannot_be_read_checks_nothing(audit: Audit, answer: list[Any]) -> None:
    done = audit(rows=answer)
    assert (done.returncode, last(done)) == (1, "NOT CHECKED: 2 of 2, list of none")


def test_a_line_of_the_list_that_cannot_be_read_fails(audit: Audit) -> None:
    done = audit(rows=[GOOD, SKIPPED], listed="hidden-part==2.0\n")
    assert (done.returncode, "name==version" in done.stderr) == (1, True)


def test_make_lock_writes_what_could_not_be_looked_up(audit: Audit, tmp_path: Path) -> None:
    done = audit("--write", rows=[GOOD, SKIPPED], listed="good==1.0  # 2020-01-01 old\n")
    today = datetime.now(UTC).date().isoformat()
    written = (tmp_path / "requirements/unaudited.txt").read_text().splitlines()
    assert written[1:] == [f"hidden-part==2.0  # {today} Not found and could not be audited"]
    assert (done.returncode, last(done)) == (0, f"NOT CHECKED: 1 of 2, list of {today}")


def test_the_committed_list_has_no_pin_that_is_not_locked() -> None:
    locks = "".join(
        (ROOT / f"requirements/{name}.txt").read_text() for name in ("run", "postgres", "semantic", "otel", "ddgs")
    )
    entries = (ROOT / "requirements/unaudited.txt").read_text().splitlines()[1:]
    unlocked = [one for one in entries if not re.search(rf"(?mi)^{re.escape(one.partition('  #')[0])}\b", locks)]
    assert unlocked == []


def test_every_lock_that_people_install_is_looked_up() -> None:
    """What `make run` and the extras install; tests and AgentDojo run on a developer's machine alone."""
    made = re.findall(r"-r requirements/(\w+)\.txt", (ROOT / "Makefile").read_text())
    audited = re.findall(r'"requirements/(\w+)\.txt"', (ROOT / ".ci/audit.py").read_text())
    assert set(made) - {"test", "encoder", "agentdojo"} == {*audited} - {"unaudited"}
