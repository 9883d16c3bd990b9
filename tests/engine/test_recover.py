"""Two workers on one PostgreSQL: a killed one's runs go on in the other, one that lives is left alone."""

import asyncio
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from cortex.engine.dbos import Engine
from cortex.engine.recover import lock_key
from tests.children import ROOT, Child
from tests.databases import PostgresTemplate
from tests.patience import PATIENCE_S
from tests.postgres import private_postgres


class Worker(Child):
    """A process that has an engine and nothing else of Cortex."""

    module = "tests.e2e.engine_child"

    def kill(self) -> None:
        """No warning, no clean-up."""
        if self.poll() is None:
            self.send_signal(signal.SIGKILL)
        self.wait()


def test_lock_keys_are_stable_signed_64_bit_numbers() -> None:
    keys = {lock_key(f"worker-{number}") for number in range(1000)}
    assert len(keys) == 1000
    assert all(-(2**63) <= key < 2**63 for key in keys)
    assert lock_key("local") == 559190120975802280


def test_a_killed_workers_runs_go_on_in_the_other(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    errors, env = tmp_path / "errors", {"PATH": "/usr/bin:/bin"}
    with private_postgres() as url:
        pair = [
            Worker((url, str(log), "12", "90", "worker", name), env=env, cwd=ROOT, output=errors)
            for name in ("first", "second")
        ]
        try:
            wait_until(lambda: len(running(log, 12)) == 12)
            pair[0].kill()
            assert pair[1].wait() == 0, errors.read_text()
        finally:
            for process in pair:
                process.kill()
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


async def test_a_run_that_another_worker_took_while_the_line_was_down_ends_here(
    postgres_template: PostgresTemplate,
) -> None:
    url = postgres_template.empty()
    begun, ended = asyncio.Event(), asyncio.Event()

    async def body(run_id: str, argument: dict[str, Any]) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    engine = Engine(url, executor_id="slow", is_worker=True)
    engine.register("turn", body)
    try:
        await engine.launch()
        await engine.start("turn:1", "turn", {})
        await asyncio.wait_for(begun.wait(), PATIENCE_S)
        with psycopg.connect(url, autocommit=True) as other:
            # What another worker does: it has the lock that was lost, takes over the runs, and lets go of it.
            other.execute("SELECT pg_advisory_lock(%s)", (lock_key("other"),))
            other.execute("UPDATE dbos.workflow_status SET executor_id = 'other' WHERE workflow_uuid = 'turn:1'")
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
                " AND ((classid::bigint << 32) | objid::bigint) = %s",
                (lock_key("slow"),),
            )
            await asyncio.wait_for(ended.wait(), PATIENCE_S)
    finally:
        await engine.close(0)
        postgres_template.drop(url)
