"""Cortex as a server of the Model Context Protocol, with the official client: calls, scope, questions."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, ClientSession, types
from mcp.client.streamable_http import streamable_http_client

from cortex.storage.conversations import ConversationsRepository
from cortex.storage.turns import TurnsRepository
from tests.living_house import LivingHouse
from tests.patience import PATIENCE_S
from tests.served_house import served_house

Served = tuple[LivingHouse, str]


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with served_house(tmp_path / "home") as opened:
        yield opened


@asynccontextmanager
async def modern(served: Served, **values: Any) -> AsyncIterator[Client]:
    """The official client by the newest revision, which knows no session."""
    house, origin = served
    token = await house.cortex.api_tokens.make(house.admin, {"name": "editor", "role": "orchestrator", **values})
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE_S) as http,
        Client(streamable_http_client(f"{origin}/mcp", http_client=http)) as opened,
    ):
        yield opened


@asynccontextmanager
async def session(served: Served, **values: Any) -> AsyncIterator[ClientSession]:
    """A session of the official client with a token of Ada's."""
    house, origin = served
    form = {"name": "editor", "role": "orchestrator", **values}
    token = await house.cortex.api_tokens.make(house.admin, form)
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http,
        streamable_http_client(f"{origin}/mcp", http_client=http) as (incoming, outgoing),
        ClientSession(incoming, outgoing) as opened,
    ):
        await opened.initialize()
        yield opened


def said(result: types.CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


async def test_a_program_lists_the_tools_of_its_token_and_calls_one(served: Served) -> None:
    async with session(served, tools="tasks") as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert "task_create" in listed
        assert not {"tools_discover", "shell_exec", "reminder_add", "spawn_agent"} & listed.keys()
        hints = listed["task_list"].annotations
        assert hints is not None
        assert hints.read_only_hint
        assert listed["task_create"].input_schema["required"] == ["title"]
        answer = await client.call_tool("task_create", {"title": "Oil the hinges"})
        assert not answer.is_error
        assert "Oil the hinges" in said(answer)
    house = served[0]
    assert [task.title for task in await house.cortex.tasks.list(house.admin)] == ["Oil the hinges"]


async def test_the_newest_revision_lists_and_calls_too(served: Served) -> None:
    async with modern(served, tools="tasks") as client:
        assert client.protocol_version == "2026-07-28"
        assert "task_create" in {tool.name for tool in (await client.list_tools()).tools}
        answer = await client.call_tool("task_create", {"title": "Oil the hinges"})
    assert not answer.is_error
    house = served[0]
    assert [task.title for task in await house.cortex.tasks.list(house.admin)] == ["Oil the hinges"]


@pytest.mark.parametrize(("way", "state"), [(modern, "stopped"), (session, "waiting")], ids=["newest", "before"])
async def test_who_goes_away_ends_a_call_where_the_protocol_says_so(served: Served, way: Any, state: str) -> None:
    house = served[0]
    async with way(served) as client:
        calling = asyncio.ensure_future(client.call_tool("shell_exec", {"command": "echo hi"}))
        async with asyncio.timeout(PATIENCE_S):
            while not (asked := await house.cortex.approvals.pending(house.admin)):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        calling.cancel()
        await asyncio.wait({calling})
    turns = house.rows(TurnsRepository)
    async with asyncio.timeout(PATIENCE_S):
        while (turn := await turns.get(asked[0].turn_id)).state != state:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert turn.channel == "api"


async def test_wrong_calls_are_refused_in_words(served: Served) -> None:
    async with session(served, tools="tasks") as client:
        for name, arguments, words in (
            ("task_create", {}, "title"),
            ("task_create", {"title": "x", "colour": "red"}, "colour"),
            ("shell_exec", {"command": "id"}, "shell_exec"),
            ("nothing_at_all", {}, "nothing_at_all"),
        ):
            answer = await client.call_tool(name, arguments)
            assert answer.is_error, name
            assert words in said(answer)
    house = served[0]
    assert await house.cortex.tasks.list(house.admin) == []


async def test_a_question_is_waited_for_and_answered_on_the_page(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cortex.services.api.hearing.WORKING_S", 0.05)
    house = served[0]
    told: list[str] = []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    async with session(served) as client:
        calling = asyncio.ensure_future(client.call_tool("shell_exec", {"command": "echo hi"}, progress_callback=heard))
        async with asyncio.timeout(PATIENCE_S):
            while not any("needs approval" in words for words in told):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        (asked,) = await house.cortex.approvals.pending(house.admin)
        await house.cortex.approvals.answer(house.admin, asked.id, "once")
        answer = await calling
    assert not answer.is_error
    assert "hi" in said(answer)


async def test_nobody_answers_and_the_call_is_refused(served: Served) -> None:
    async with session(served, wait_s=1) as client:
        answer = await client.call_tool("shell_exec", {"command": "echo hi"})
    assert answer.is_error
    house = served[0]
    conversations = house.rows(ConversationsRepository)
    (place,) = await conversations.list(source="api")
    (turn,) = await house.rows(TurnsRepository).list(place.id)
    assert (turn.channel, turn.state) == ("api", "done")


async def test_twenty_calls_at_once_are_each_made_once(served: Served) -> None:
    async with session(served, tools="tasks") as client:
        calls = [client.call_tool("task_create", {"title": f"Thing {n}"}) for n in range(20)]
        answers = await asyncio.gather(*calls)
    assert not any(answer.is_error for answer in answers)
    house = served[0]
    assert {task.title for task in await house.cortex.tasks.list(house.admin)} == {f"Thing {n}" for n in range(20)}


async def test_only_a_known_token_is_let_in_and_no_other_site(served: Served) -> None:
    house, origin = served
    token = await house.cortex.api_tokens.make(house.admin, {"name": "p", "role": "orchestrator"})
    bearer = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=origin, timeout=PATIENCE_S) as http:
        assert (await http.post("/mcp", json={})).status_code == 401
        assert (await http.post("/mcp", json={}, headers={"Authorization": "Bearer cx-no"})).status_code == 401
        foreign = {**bearer, "Origin": "https://evil.example"}
        assert (await http.post("/mcp", json={}, headers=foreign)).status_code == 403
        assert (await http.get("/mcp", headers=bearer)).status_code == 405
        for body in (b"", b"{", b"[]", b'{"jsonrpc": "2.0"}', b"\xff"):
            accepted = {**bearer, "Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
            assert (await http.post("/mcp", content=body, headers=accepted)).status_code == 400


async def test_too_many_calls_are_refused(served: Served) -> None:
    async with session(served, tools="tasks", per_minute=2) as client:
        answers = [await client.call_tool("task_list", {}) for _ in range(3)]
    assert [answer.is_error for answer in answers] == [False, False, True]
    assert "2 requests" in said(answers[2])
