"""A house with its page on a port, for tests of what other programs ask: tokens of Ada, HTTP, OpenAI's client."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from openai import AsyncOpenAI

from cortex.storage.conversations import ConversationsRepository
from cortex.storage.turns import TurnRow, TurnsRepository
from tests.living_house import LivingHouse
from tests.patience import PATIENCE_S
from tests.scripted_server import ScriptedServer
from tests.served_house import served_house


class ProgramDoor:
    """The house, its address, and what programs hold."""

    def __init__(self, house: LivingHouse, origin: str) -> None:
        self.house, self.origin = house, origin
        self._opened: list[httpx.AsyncClient | AsyncOpenAI] = []

    async def close(self) -> None:
        for one in self._opened:
            await (one.close() if isinstance(one, AsyncOpenAI) else one.aclose())

    async def token(self, **values: Any) -> str:
        form = {"name": "p", "role": "orchestrator", **values}
        return await self.house.cortex.api_tokens.make(self.house.admin, form)

    async def http(self, **values: Any) -> httpx.AsyncClient:
        """Plain HTTP with a token of Ada's."""
        bearer = {"Authorization": f"Bearer {await self.token(**values)}"}
        made = httpx.AsyncClient(base_url=self.origin, headers=bearer, timeout=PATIENCE_S)
        self._opened.append(made)
        return made

    async def openai(self, **values: Any) -> AsyncOpenAI:
        """OpenAI's client with a token of Ada's."""
        made = AsyncOpenAI(
            base_url=f"{self.origin}/v1", api_key=await self.token(**values), max_retries=0, timeout=PATIENCE_S
        )
        self._opened.append(made)
        return made

    async def turns(self) -> list[TurnRow]:
        """All of Ada's that programs began."""
        db = self.house.cortex.runtime.db
        conversations = await db.repository(ConversationsRepository, self.house.admin.id).list(source="api", limit=500)
        turns = db.repository(TurnsRepository, self.house.admin.id)
        return [turn for one in conversations for turn in await turns.list(one.id)]


@asynccontextmanager
async def program_door(home: Path, scripted: ScriptedServer) -> AsyncIterator[ProgramDoor]:
    """The house, with the scripted model `m` behind it."""
    async with served_house(home, public_url="") as (house, origin):
        await house.connect(scripted, context_tokens="128000")  # what a program brings stays whole
        opened = ProgramDoor(house, origin)
        try:
            yield opened
        finally:
            await opened.close()


def events_of(text: str) -> list[dict[str, Any]]:
    """The events of a stream, comments left out; each event's name is its type."""
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":"))
        if "data" in lines:
            data = json.loads(lines["data"])
            assert lines["event"] == data["type"]
            found.append(data)
    return found
