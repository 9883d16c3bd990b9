"""A process that is killed at one exact place: `python -m tests.services.turns.killed_process HOME answer once|deny`.

It dies when the person's answer is committed and before the turn hears it; with `stop` when a turn's run is cancelled
and what was said is not written down yet.
"""

import asyncio
import os
import sys
from pathlib import Path

from msgspec.structs import replace

from tests.living_house import LivingHouse, living_house

KILLED = 9


class Dying:
    """Stands in for the engine's signals: whoever sends one dies."""

    async def signal(self, run_id: str, topic: str, value: str) -> None:
        """The answer is committed."""
        os._exit(KILLED)

    async def wait_for_signal(self, topic: str, timeout_s: float) -> str | None:
        """Nobody waits here."""
        return None


async def answer(house: LivingHouse, choice: str) -> None:
    """Ask for a command, answer its question, die."""
    cid = await house.conversation()
    await house.cortex.chat.send_message(house.admin, cid, "run `echo hi-$((40+2))` in the shell")
    asked = await house.until(cid, "approval", state="asked")
    desk = replace(house.cortex.approvals, runtime=replace(house.cortex.runtime, signals=Dying()))
    await desk.answer(house.admin, asked.payload["approval"], choice)


async def stop(house: LivingHouse) -> None:
    """Begin an answer, cancel its run as Stop does, die."""
    cid = await house.conversation()
    turn = await house.cortex.chat.send_message(house.admin, cid, "hello")
    await house.cortex.chat.send_message(house.admin, cid, "and now?", mode="chat")
    await house.until(cid, "part.start")
    await house.cortex.runtime.runner.cancel(turn)
    os._exit(KILLED)


async def main(home: str, what: str, choice: str = "") -> None:
    """Do it."""
    async with living_house(Path(home), offline_delay_ms=300 if what == "stop" else 0) as house:
        await (answer(house, choice) if what == "answer" else stop(house))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
