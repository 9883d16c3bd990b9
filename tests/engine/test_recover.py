"""Two workers on one PostgreSQL: a killed one's runs go on in the other, one that lives is left alone."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from cortex.engine.recover import lock_key
from tests.patience import PATIENCE_S
from tests.postgres import private_postgres

ROOT = Path(__file__).parents[2]
CHILD = ROOT / "tests/e2e/engine_child.py"


def test_lock_keys_are_stable_signed_64_bit_numbers() -> None:
    keys = {lock_key(f"worker-{number}") for number in range(1000)}
    assert len(keys) == 1000
    assert all(-(2**63) <= key < 2**63 for key in keys)
    assert lock_key("local") == 559190120975802280


def test_a_killed_workers_runs_go_on_in_the_other(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    with private_postgres() as url, (tmp_path / "errors").open("wb") as errors:
        pair = [
            subprocess.Popen(
                [sys.executable, str(CHILD), url, str(log), "12", "90", "worker", name],
                cwd=ROOT,
                env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
                stderr=errors,
            )
            for name in ("first", "second")
        ]
        try:
            wait_until(lambda: len(running(log, 12)) == 12)
            pair[0].kill()
            assert pair[1].wait(PATIENCE_S) == 0, (tmp_path / "errors").read_text()
        finally:
            for process in pair:
                process.kill()
                process.wait(PATIENCE_S)
    lines = [line.split() for line in log.read_text().splitlines()]
    assert {line[1] for line in lines if line[0] == "end"} == {f"run:{number}" for number in range(12)}
    kept: set[str] = set()
    for line in lines:
        assert not (line[0] == "begin" and " ".join(line[1:]) in kept), line
        kept |= {" ".join(line[1:])} if line[0] == "kept" else set()


def running(log: Path, count: int) -> set[str]:
    begun = {line.split()[1] for line in log.read_text().splitlines() if line.startswith("begin")}
    return begun & {f"run:{number}" for number in range(count)}


def wait_until(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
