"""The one way out of a run of aider: a socket file on which it asks its one model, as by OpenAI's chat completions.

Nothing else is answered. No key goes in: whoever opens the door asks the model in the program's place.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import h11
from msgspec import Struct, field

from cortex.base.json_text import parsed

BODY_BYTES = 16_000_000
IDLE_S = 300.0
WAY = b"/v1/chat/completions"

Completion = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


class ModelRefused(Exception):
    """The model did not answer; the words are for the person."""


class Door(Struct):
    """The door and its count: how often the model was asked, what else was tried, why a model did not answer."""

    place: Path
    asked: int = 0
    strange: list[str] = field(default_factory=list)
    failure: str = ""


@asynccontextmanager
async def open_door(place: Path, complete: Completion) -> AsyncIterator[Door]:
    """A door at this path while the block lasts. complete: asks the model; `ModelRefused` says why it did not answer.

    A refusal is told to the program as its own mistake, so that it does not try again and again.
    """
    door = Door(place=place)
    open_now: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_now.add(writer)
        try:
            await _conversation(reader, writer, door, complete)
        except (OSError, h11.ProtocolError, TimeoutError):
            pass  # the program went away, or speaks no HTTP
        finally:
            open_now.discard(writer)
            writer.close()

    server = await asyncio.start_unix_server(serve, path=str(place))
    try:
        yield door
    finally:
        server.close()
        for writer in open_now:
            writer.close()


async def _conversation(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, door: Door, complete: Completion
) -> None:
    wire = h11.Connection(h11.SERVER)
    while True:
        found = await _request(reader, wire)
        if found is None:
            return
        request, body = found
        status, answer = await _answer(request, body, door, complete)
        data = json.dumps(answer).encode()
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(data)))]
        writer.write(wire.send(h11.Response(status_code=status, headers=headers)) or b"")
        writer.write((wire.send(h11.Data(data=data)) or b"") + (wire.send(h11.EndOfMessage()) or b""))
        await writer.drain()
        if wire.our_state is not h11.DONE or wire.their_state is not h11.DONE:
            return
        wire.start_next_cycle()


async def _request(reader: asyncio.StreamReader, wire: h11.Connection) -> tuple[h11.Request, bytes] | None:
    """The next request with its body; None at the end."""
    request: h11.Request | None = None
    body = bytearray()
    while True:
        event = wire.next_event()
        if event is h11.NEED_DATA:
            async with asyncio.timeout(IDLE_S):
                wire.receive_data(await reader.read(65_536))
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > BODY_BYTES:
                return None
        elif isinstance(event, h11.EndOfMessage) and request is not None:
            return request, bytes(body)
        else:
            return None


async def _answer(request: h11.Request, body: bytes, door: Door, complete: Completion) -> tuple[int, dict[str, Any]]:
    if request.method != b"POST" or request.target != WAY:
        door.strange.append(f"{request.method.decode()} {request.target.decode('ascii', 'replace')}"[:200])
        return 404, _error("There is nothing here.")
    try:
        asked = parsed(body.decode())
    except ValueError:
        asked = None
    if not isinstance(asked, dict):
        return 400, _error("This is no request.")
    if door.failure:  # it was told already
        return 400, _error(door.failure)
    door.asked += 1
    try:
        return 200, await complete(asked)
    except ModelRefused as error:
        door.failure = str(error)
        return 400, _error(door.failure)


def _error(words: str) -> dict[str, Any]:
    return {"error": {"message": words, "type": "invalid_request_error", "param": None, "code": None}}
