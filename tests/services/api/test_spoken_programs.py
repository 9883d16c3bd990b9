"""A voice assistant as a program: it tells the time with each request, speaks from a room, and waits for nobody."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from cortex.storage.approvals import ApprovalRow
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.turns import TurnRow
from tests.patience import PATIENCE_S
from tests.program_door import Door, program_door
from tests.scripted_server import ScriptedServer, Use, rule

SHELL = Use("shell_exec", {"command": "echo done by hand"}, is_blind=True)
MILK = Use("task_create", {"title": "milk", "list_name": "shopping"}, is_blind=True)
ASKS = "This needs your OK first: "


@pytest.fixture
async def door(tmp_path: Path, scripted: ScriptedServer) -> AsyncIterator[Door]:
    scripted.rules = [
        rule("turn it", "It is on."),
        rule("which room", "I heard."),
        rule("milk", MILK, "Added milk."),
        rule("fetch it", SHELL, "It is fetched."),
    ]
    async with program_door(tmp_path / "home", scripted) as opened:
        yield opened


class Satellite:
    """A voice assistant: it keeps what was said, and sends it with instructions that hold the second and the room."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self._said: list[dict[str, str]] = []
        self._seconds = 0

    async def say(self, text: str, *, room: str = "Kitchen", **more: Any) -> str:
        self._seconds += 1
        prompt = f"Current time is 18:00:{self._seconds:02}.\nYou are a voice assistant.\nThe room is {room}."
        self._said.append({"role": "user", "content": text})
        messages = [{"role": "system", "content": prompt}, *self._said]
        answer = await self._http.post("/api/chat", json={"model": "cortex", "messages": messages, **more})
        told = [json.loads(line) for line in answer.text.splitlines()]
        words = "".join(one["message"]["content"] for one in told if "message" in one)
        self._said.append({"role": "assistant", "content": words})
        return words or str(told[-1].get("error", ""))


async def pending(door: Door) -> ApprovalRow:
    (asked,) = await door.house.cortex.approvals.pending(door.house.admin)
    return asked


async def all_ended(door: Door, count: int) -> list[TurnRow]:
    """All turns, once there are so many and all have ended."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            rows = await door.turns()
            if len(rows) == count and all(row.ended_at for row in rows):
                return rows
            await asyncio.sleep(0.02)


def read(scripted: ScriptedServer) -> list[str]:
    """What the model read of the person's side in its last call, message by message."""
    said = [one["content"] for one in scripted.log[-1].body["messages"] if one["role"] == "user"]
    return [one if isinstance(one, str) else "\n".join(part["text"] for part in one) for one in said]


async def test_instructions_that_tell_the_time_keep_it_one_conversation_of_ones_own(
    door: Door, scripted: ScriptedServer
) -> None:
    satellite = Satellite(await door.http(own_words="1"))
    assert await satellite.say("turn it on") == "It is on."
    assert await satellite.say("which room is this?", room="Den") == "I heard."
    (place,) = await door.house.rows(ConversationsRepository).list(source="api")
    assert (place.title, place.is_title_tainted) == ("Turn it on", False)
    turns = await door.turns()
    assert [(turn.text, turn.is_tainted, turn.has_read_outside) for turn in turns] == [
        ("turn it on", False, False),
        ("which room is this?", False, False),
    ]
    first, second = read(scripted)
    assert "The room is Kitchen." in first
    assert "The room is Den." in second
    assert "18:00:02" in second


async def test_instructions_that_stay_are_read_once(door: Door, scripted: ScriptedServer) -> None:
    http = await door.http(own_words="1")
    said: list[dict[str, str]] = [{"role": "system", "content": "Be brief."}]
    for text in ("turn it on", "turn it off", "which room?"):
        said.append({"role": "user", "content": text})
        answer = (await http.post("/api/chat", json={"model": "cortex", "messages": said, "stream": False})).json()
        said.append({"role": "assistant", "content": answer["message"]["content"]})
    assert [text.count("Be brief.") for text in read(scripted)] == [1, 0, 0]
    assert len({turn.conversation_id for turn in await door.turns()}) == 1


async def test_who_does_not_wait_is_told_what_asks_and_it_is_done_at_the_later_yes(
    door: Door, scripted: ScriptedServer
) -> None:
    satellite = Satellite(await door.http(own_words="1", wait_s=0))
    told = await satellite.say("fetch it")
    assert told.startswith(ASKS)
    assert told.endswith(" Open Cortex to answer.")
    assert (await door.house.cortex.notices.page(door.house.admin.id)).notices, "nobody has the chat open"
    assert await satellite.say("milk, please") == "Added milk."
    await door.house.cortex.approvals.answer(door.house.admin, (await pending(door)).id, "once")
    rows = await all_ended(door, 3)
    assert [(row.channel, row.state) for row in rows] == [("api", "done"), ("api", "done"), ("result", "done")]
    results = await door.house.events(rows[0].conversation_id, "tool.result")
    done = [event.payload["text"] for event in results if "done by hand" in event.payload["text"]]
    assert len(done) == 1
    (view,) = await door.house.cortex.api_tokens.list(door.house.admin)
    rounds = await door.house.cortex.api_tokens.calls(door.house.admin, view.token.id)
    assert {row.id for row in rows} == {row.turn_id for row in rounds}, "what goes on is bounded by the token as well"
    assert await satellite.say("turn it off") == "It is on."
    assert len({row.conversation_id for row in await door.turns()}) == 1, "what was done here meanwhile is no break"


async def test_a_later_no_is_a_no(door: Door) -> None:
    satellite = Satellite(await door.http(own_words="1", wait_s=0))
    assert (await satellite.say("fetch it")).startswith(ASKS)
    await door.house.cortex.approvals.answer(door.house.admin, (await pending(door)).id, "deny")
    (row,) = await all_ended(door, 1)
    told = await door.house.events(row.conversation_id, "tool.result")
    assert [event.payload["state"] for event in told] == ["refused"]


async def test_json_is_not_made_of_a_question(door: Door) -> None:
    http = await door.http(own_words="1", wait_s=0)
    body = {"model": "cortex", "messages": [{"role": "user", "content": "fetch it"}], "format": "json"}
    answer = await http.post("/api/chat", json={**body, "stream": False})
    assert answer.status_code == 503
    assert answer.json()["error"].startswith(ASKS)


async def test_a_call_by_mcp_that_does_not_wait_is_told_and_done_later(door: Door) -> None:
    cortex, admin = door.house.cortex, door.house.admin
    who = await cortex.api_tokens.who(await door.token(own_words="1", wait_s=0))

    async def heard(_: object) -> None:
        """The program listens."""

    told = await cortex.program_tools.call(who, "shell_exec", '{"command": "echo hi"}', heard, ends_with_caller=True)
    assert told.is_error
    assert told.text.startswith(ASKS)
    await cortex.approvals.answer(admin, (await pending(door)).id, "once")
    rows = await all_ended(door, 2)
    results = await door.house.events(rows[0].conversation_id, "tool.result")
    assert ["hi" in event.payload["text"] for event in results if event.payload["state"] == "ok"] == [True]
