"""A process whose runs wait for a person, in all slots of one user, and one in line behind them.

Arguments: database URL, log file, and "first", "again" or "answer": in the last of these lives they are answered.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from dbos import DBOS

from cortex.engine.dbos import Engine
from tests.patience import PATIENCE_S

WAITING = ("run:0", "run:1", "run:2")
BEHIND = "run:behind"


async def all_wait() -> None:
    """Until this life counts no more for any that waits."""
    while True:
        states = await DBOS.list_workflows_async(workflow_ids=list(WAITING))
        if not any(state.attributes for state in states):
            return
        await asyncio.sleep(0.02)


async def ended(engine: Engine) -> None:
    while await engine.unfinished():  # noqa: ASYNC110 - ended by the engine, which tells nobody
        await asyncio.sleep(0.05)


async def main(url: str, log: Path, which: str) -> None:
    engine = Engine(url)

    def note(*words: str) -> None:
        with log.open("a") as file:
            file.write(" ".join(words) + "\n")

    async def body(run_id: str, argument: dict[str, Any]) -> None:
        note("begun", run_id)
        if run_id in WAITING:
            await engine.wait_for_signal("go", PATIENCE_S)

    engine.register("work", body)
    await engine.launch()
    for run_id in (*WAITING, BEHIND):
        await engine.start(run_id, "work", {}, queue="chat", key="ann")
    if which == "again":
        await all_wait()
        note("waiting")
    if which == "answer":
        for run_id in WAITING:
            await engine.signal(run_id, "go", "on")
    await ended(engine)
    for run_id in (*WAITING, BEHIND):
        note("ended", run_id, await engine.status(run_id))
    await engine.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
