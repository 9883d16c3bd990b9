"""A process of the crash tests: runs of many steps that tell a log what they do. Killed at any moment.

Arguments: database URL, log file, number of runs, steps of a run, "start" or "worker", executor id.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from cortex.engine.dbos import Engine
from cortex.ports.steps import step


class Log:
    """One line a fact, each written in one call to a file opened for appending: whole lines, in order."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(self, *facts: object) -> None:
        os.write(self._file, (" ".join(map(str, facts)) + "\n").encode())


class Steps:
    """The port whose calls are counted."""

    def __init__(self, log: Log) -> None:
        self._log = log

    @step("Steps.do")
    async def do(self, run_id: str, number: int) -> tuple[str, int]:
        self._log.note("begin", run_id, number)
        await asyncio.sleep(0.005)
        return run_id, number


async def main(url: str, path: str, runs: int, steps: int, kind: str, executor_id: str) -> None:
    log = Log(Path(path))
    engine = Engine(url, executor_id=executor_id, is_worker=kind == "worker")
    port = Steps(log)

    async def body(run_id: str, argument: dict[str, Any]) -> None:
        for number in range(0, steps, 3):
            kept = await asyncio.gather(*(port.do(run_id, number + branch) for branch in range(3)))
            for name, at in kept:
                log.note("kept", name, at)
        log.note("end", run_id)

    engine.register("work", body)
    await engine.launch()
    log.note("ready", executor_id or "-", os.getpid())
    queue = "chat" if kind == "worker" else ""
    for number in range(runs):
        await engine.start(f"run:{number}", "work", {}, queue=queue, key=f"user{number % 10}")
    while await engine.unfinished():  # noqa: ASYNC110 - other processes end them too
        await asyncio.sleep(0.1)
    log.note("idle", executor_id or "-")
    await engine.close()


if __name__ == "__main__":
    address, file, run_count, step_count, role, name = sys.argv[1:]
    asyncio.run(main(address, file, int(run_count), int(step_count), role, name))
