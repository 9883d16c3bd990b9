"""A process that a run of it kills, every time: at once, behind a wait, while it shows, or beside another run.

Arguments: database URL, log file, where.
"""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from cortex.engine.dbos import Engine
from tests.patience import PATIENCE_S

IN_LINE_S = 1.0  # another run that has not begun by then stands in line behind this one
CALM_S = 0.1


async def main(url: str, log: Path, where: str) -> None:
    engine = Engine(url, calm_s=CALM_S)
    is_other_begun = asyncio.Event()

    async def body(run_id: str, argument: dict[str, Any]) -> None:
        if where == "behind a wait":
            await engine.wait_for_signal("go", PATIENCE_S)
        if where == "beside another":
            with suppress(TimeoutError):
                await asyncio.wait_for(is_other_begun.wait(), IN_LINE_S)
        await (engine.step("answer", shows) if where == "while it shows" else dies())

    async def shows() -> None:
        await engine.has_moved()
        await dies()

    async def dies() -> None:
        with log.open("a") as file:
            file.write("life\n")
        os.kill(os.getpid(), signal.SIGKILL)

    async def other(run_id: str, argument: dict[str, Any]) -> None:
        is_other_begun.set()
        await engine.step("long", lambda: asyncio.sleep(3))

    engine.register("work", body)
    engine.register("other", other)
    await engine.launch()
    if where == "beside another":
        await engine.start("run:other", "other", {})
    await engine.start("run:poison", "work", {})
    if where == "behind a wait":
        await engine.signal("run:poison", "go", "on")
    while await engine.unfinished():  # noqa: ASYNC110 - ended by the engine, which tells nobody
        await asyncio.sleep(0.05)
    with log.open("a") as file:
        file.write(f"{await engine.status('run:poison')} {await engine.status('run:other')}\n")
    await engine.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
