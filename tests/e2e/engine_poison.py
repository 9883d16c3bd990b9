"""A process whose one run kills it, every time, at once or behind a wait. Arguments: database URL, log file, where."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from cortex.engine.dbos import Engine
from tests.patience import PATIENCE_S


async def main(url: str, log: Path, where: str) -> None:
    engine = Engine.create(url)

    async def body(run_id: str, argument: dict[str, Any]) -> None:
        if where == "behind a wait":
            await engine.wait_for_signal("go", PATIENCE_S)
        with log.open("a") as file:
            file.write("life\n")
        os.kill(os.getpid(), signal.SIGKILL)

    engine.register("work", body)
    await engine.launch()
    await engine.start("run:poison", "work", {})
    if where == "behind a wait":
        await engine.signal("run:poison", "go", "on")
    while await engine.unfinished():  # noqa: ASYNC110 - ended by the engine, which tells nobody
        await asyncio.sleep(0.05)
    with log.open("a") as file:
        file.write(await engine.status("run:poison") + "\n")
    await engine.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
