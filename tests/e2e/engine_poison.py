"""A process whose one run kills it, every time. Arguments: database URL, log file."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from cortex.engine.dbos import Engine


async def main(url: str, log: Path) -> None:
    engine = Engine.create(url)

    async def body(run_id: str, argument: dict[str, Any]) -> None:
        with log.open("a") as file:
            file.write("life\n")
        os.kill(os.getpid(), signal.SIGKILL)

    engine.register("work", body)
    await engine.launch()
    await engine.start("run:poison", "work", {})
    while await engine.unfinished():  # noqa: ASYNC110 - ended by the engine, which tells nobody
        await asyncio.sleep(0.05)
    with log.open("a") as file:
        file.write(await engine.status("run:poison") + "\n")
    await engine.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
