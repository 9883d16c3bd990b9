"""A house with its page on a port, and OpenAI's own client as a program that has a token."""

import asyncio
import base64
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from openai import AsyncOpenAI
from PIL import Image

from cortex.storage.conversations import ConversationsRepository
from cortex.storage.turns import TurnRow, TurnsRepository
from tests.living_house import LivingHouse
from tests.patience import PATIENCE_S
from tests.plain_model import PlainModel, plain_model
from tests.scripted_server import ScriptedServer
from tests.served_house import served_house


class Door:
    """A house with its page on a port, and clients for its tokens."""

    def __init__(self, house: LivingHouse, origin: str) -> None:
        self.house, self.origin = house, origin
        self._opened: list[httpx.AsyncClient | AsyncOpenAI] = []

    async def close(self) -> None:
        for one in self._opened:
            await (one.close() if isinstance(one, AsyncOpenAI) else one.aclose())

    async def client(self, **values: Any) -> AsyncOpenAI:
        """OpenAI's client with a token of Ada's."""
        return self.with_token(await self.token(**values))

    async def http(self, **values: Any) -> httpx.AsyncClient:
        """Plain HTTP with a token of Ada's."""
        return self.plainly(await self.token(**values))

    async def token(self, **values: Any) -> str:
        form = {"name": "p", "role": "orchestrator", **values}
        return await self.house.cortex.api_tokens.make(self.house.admin, form)

    def with_token(self, token: str) -> AsyncOpenAI:
        made = AsyncOpenAI(base_url=f"{self.origin}/v1", api_key=token, max_retries=0, timeout=PATIENCE_S)
        self._opened.append(made)
        return made

    def plainly(self, token: str, below: str = "") -> httpx.AsyncClient:
        """Plain HTTP with this token, `below` a path of the page."""
        bearer = {"Authorization": f"Bearer {token}"}
        made = httpx.AsyncClient(base_url=f"{self.origin}{below}", headers=bearer, timeout=PATIENCE_S)
        self._opened.append(made)
        return made

    async def turns(self) -> list[TurnRow]:
        """All of Ada's, in whatever conversation."""
        db = self.house.cortex.runtime.db
        conversations = await db.repository(ConversationsRepository, self.house.admin.id).list(source="api", limit=500)
        turns = db.repository(TurnsRepository, self.house.admin.id)
        return [turn for one in conversations for turn in await turns.list(one.id)]

    async def ended(self) -> TurnRow:
        """The one turn there is, when it has ended."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                rows = await self.turns()
                if rows and rows[0].ended_at is not None:
                    return rows[0]
                await asyncio.sleep(0.02)


def asked(text: str, *before: tuple[str, str]) -> list[Any]:
    """The messages of a request: what was said before, in pairs, and what is said now."""
    said = [[{"role": "user", "content": words}, {"role": "assistant", "content": answer}] for words, answer in before]
    return [*(one for pair in said for one in pair), {"role": "user", "content": text}]


class PlainDoor:
    """A door with a token, before a model that takes anything, and raw requests."""

    def __init__(self, door: Door, model: PlainModel, token: str) -> None:
        self.door, self.model = door, model
        self.client = door.with_token(token)
        self.http = door.plainly(token, "/v1")

    async def post(self, **body: Any) -> httpx.Response:
        return await self.http.post("/chat/completions", json={"model": "m", "messages": asked("hello"), **body})

    async def stream(self, **body: Any) -> list[dict[str, Any]]:
        """What a stream says, piece by piece."""
        lines = (await self.post(stream=True, **body)).text.splitlines()
        return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


@asynccontextmanager
async def program_door(home: Path, scripted: ScriptedServer) -> AsyncIterator[Door]:
    """A house with the scripted model "m" behind it."""
    async with served_house(home, public_url="") as (house, origin):
        await house.connect(scripted, context_tokens="128000")  # what a program brings stays whole
        door = Door(house, origin)
        yield door
        await door.close()


@asynccontextmanager
async def plain_door(home: Path, **token: Any) -> AsyncIterator[PlainDoor]:
    """A house with the model "m", which sees and takes in 32,000 tokens, and a token of such a form."""
    async with plain_model() as model, served_house(home, public_url="") as (house, origin):
        place = {"base_url": model.base_url, "api_key": "k", "context_tokens": "32000", "sees": "1"}
        await house.cortex.models.save(house.admin, {"name": "m", "provider": "openai", "model": "plain", **place})
        door = Door(house, origin)
        made = PlainDoor(door, model, await door.token(**token))
        yield made
        await door.close()


def words_of(events: list[dict[str, Any]], key: str = "content") -> str:
    return "".join(one["choices"][0]["delta"].get(key) or "" for one in events if one.get("choices"))


def drawn(colour: str) -> str:
    """A picture as clients send it."""
    made = io.BytesIO()
    Image.new("RGB", (40, 30), colour).save(made, "PNG")
    return f"data:image/png;base64,{base64.b64encode(made.getvalue()).decode()}"


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
