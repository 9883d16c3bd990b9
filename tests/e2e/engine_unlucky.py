"""A process that is killed by somebody else, in the middle of a step of its run: it is told how far it came.

Arguments: database URL, log file, and what this life is: "begins" (says so and stands still), "shows" (shows something
of its step and stands still), "starts" (is killed before it has lived for a while), or "ends" (nobody kills it).
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from cortex.base.ids import new_id
from cortex.engine.dbos import Engine
from tests.patience import PATIENCE_S


async def main(url: str, log: Path, which: str) -> None:
    engine = Engine(url, calm_s=PATIENCE_S if which == "starts" else 0.1)

    def note(word: str) -> None:
        with log.open("a") as file:
            file.write(f"{word}\n")

    async def long() -> str:
        note("begun")
        if which == "shows":
            await engine.has_moved()
            note("shown")
        if which != "ends":
            await asyncio.Event().wait()
        return "an answer"

    async def body(run_id: str, argument: dict[str, Any]) -> None:
        if run_id == "run:unlucky":
            await engine.step("long", long)

    engine.register("work", body)
    await engine.launch()
    await engine.start("run:unlucky", "work", {})
    await engine.start(f"run:{new_id()}", "work", {})
    while len(await engine.unfinished()) > 1:  # noqa: ASYNC110 - ended by the engine, which tells nobody
        await asyncio.sleep(0.05)
    note(f"started {which}")
    while await engine.unfinished():  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.05)
    note(await engine.status("run:unlucky"))
    await engine.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
