"""An opened Cortex in a folder of its own, with an admin and a member, and a few ways to talk to it.

Its tables and its people are copied from a home that is made once a process: to migrate two databases and to hash two
passwords costs a second of processor, and is shown where a home is new on purpose.
"""

import asyncio
import atexit
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from cortex.app import Cortex
from cortex.base.clock import Clock, now
from cortex.base.events import Event
from cortex.base.user import User
from cortex.storage.plans import PlansRepository
from cortex.storage.repository import Repository
from cortex.storage.turns import TurnsRepository
from tests.databases import copy_home, house_settings
from tests.patience import PATIENCE_S
from tests.scripted_server import ScriptedServer

R = TypeVar("R", bound=Repository)
PASSWORD = "tulip quarry lantern 97"


class Deaf:
    """Signals that get lost: what a process that dies at this moment would not send."""

    async def signal(self, run_id: str, topic: str, value: str) -> None:
        """Lose it."""

    async def wait_for_signal(self, topic: str, timeout_s: float) -> str | None:
        """Nobody waits here."""
        return None


@dataclass(frozen=True, slots=True)
class LivingHouse:
    cortex: Cortex
    admin: User
    member: User

    async def connect(self, server: ScriptedServer, user: User | None = None, **more: Any) -> None:
        """Have this scripted server answer, as a model of the admin's or of this user; `more`: of the form."""
        form = {"name": "m", "provider": "openai", "model": "s", "base_url": server.base_url, "api_key": "test-key"}
        await self.cortex.models.save(user or self.admin, {**form, **more})

    def rows(self, kind: type[R]) -> R:
        """The admin's of this kind."""
        return self.cortex.runtime.db.repository(kind, self.admin.id)

    async def conversation(self, user: User | None = None, role: str = "orchestrator") -> str:
        return (await self.cortex.conversations.new(user or self.admin, role=role)).id

    async def say(self, conversation_id: str, text: str, *, user: User | None = None, **how: Any) -> str:
        """Send a message and wait until its turn has ended; the turn's id."""
        turn_id = await self.cortex.chat.send_message(user or self.admin, conversation_id, text, **how)
        await self.until(conversation_id, "turn.end", user=user, turn=turn_id)
        return turn_id

    async def send_meanwhile(self, conversation_id: str, approval_id: str, choice: str, *texts: str, **how: Any) -> str:
        """Answer, and send these before the turn hears it, which goes on then; the last one's id.

        Ahead of the answer they would set the turn aside.
        """
        runtime = self.cortex.runtime
        deaf = replace(self.cortex.approvals, runtime=replace(runtime, signals=Deaf()))
        await deaf.answer(self.admin, approval_id, choice)
        sent = [await self.cortex.chat.send_message(self.admin, conversation_id, text, **how) for text in texts]
        running = await runtime.db.repository(TurnsRepository, self.admin.id).running(conversation_id)
        assert running is not None
        await self.cortex.approvals.signal_again(running)
        return sent[-1]

    async def until(self, conversation_id: str, kind: str, *, user: User | None = None, **wanted: Any) -> Event:
        """The first event of this kind whose payload holds what is wanted, from the log's beginning."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                async for events, _ in self.cortex.chat.follow(user or self.admin, conversation_id, 0):
                    for event in events:
                        if event.kind == kind and wanted.items() <= event.payload.items():
                            return event

    async def events(self, conversation_id: str, *kinds: str, user: User | None = None) -> list[Event]:
        page = await self.cortex.chat.log(user or self.admin, conversation_id)
        return [event for event in page.events if not kinds or event.kind in kinds]

    async def receipts(self, conversation_id: str) -> list[dict[str, Any]]:
        """What was sent and why, by round, of every turn in order."""
        async with self.cortex.runtime.db.read_transaction(self.admin.id) as repository:
            turns = await repository(TurnsRepository).list(conversation_id)
            return [plan.receipt for turn in turns for plan in await repository(PlansRepository).of_turn(turn.id)]


@asynccontextmanager
async def living_house(
    home: Path, *, clock: Clock = now, of: type[Cortex] = Cortex, **settings: Any
) -> AsyncIterator[LivingHouse]:
    """Open a house; on a home that was used before, its people are found again. of: a Cortex with other parts."""
    if not (home / "secret.key").exists():
        copy_home(await peopled_home(), home)
    given = {"home": home, "port": 0, "offline_delay_ms": 0, "shutdown_grace_s": 1.0, **settings}
    async with of.open(house_settings(**given), clock=clock) as cortex:
        yield LivingHouse(cortex, await cortex.accounts.named("ada"), await cortex.accounts.named("bob"))


_made: list[Path] = []  # the home that others are copied from, once there is one


async def peopled_home() -> Path:
    """A home at rest in which an admin and a member have accounts."""
    if not _made:
        folder = Path(tempfile.mkdtemp(prefix="cortex-tests-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        async with Cortex.open(house_settings(folder / "home", port=0)) as cortex:
            await cortex.accounts.redeem_setup(await cortex.accounts.setup_link(), "ada", PASSWORD)
            await cortex.accounts.add_user("bob", "member", PASSWORD)
        _made.append(folder / "home")
    return _made[0]
