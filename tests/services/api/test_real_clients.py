"""Programs of other people as they come from their index, with a pass-through token and with one of Cortex's own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.program_door import Door, program_door
from tests.real_clients import NO_CLIENTS, said_by
from tests.scripted_server import ScriptedServer, Use, rule

pytestmark = [pytest.mark.full, pytest.mark.skipif(bool(NO_CLIENTS), reason=NO_CLIENTS)]
HELLO, SUNNY = "Hello there, friend.", "It is sunny in Rome."
DOG = {"name": "Rex", "age": 3}


@pytest.fixture
async def door(tmp_path: Path, scripted: ScriptedServer) -> AsyncIterator[Door]:
    scripted.rules = [
        rule("weather", Use("get_weather", {"city": "Rome"}), SUNNY),
        rule("a dog", '{"name": "Rex", "age": 3}'),
        rule("hello", HELLO),
    ]
    async with program_door(tmp_path / "home", scripted) as opened:
        yield opened
        assert scripted.problems == []


@pytest.fixture(params=["", "1"], ids=["Cortex answers", "pass-through"])
async def token(request: pytest.FixtureRequest, door: Door) -> str:
    return await door.token(pass_through=request.param, per_minute=600)


async def test_the_ollama_package(door: Door, token: str, tmp_path: Path) -> None:
    got = await said_by("ollama_chat.py", door.origin, token, tmp_path)
    assert got == {
        "models": ["cortex", "m"],
        "window": 128_000,
        "chat": HELLO,
        "streamed": HELLO,
        "called": [{"city": "Rome"}],
        "answered": SUNNY,
        "shaped": DOG,
        "generated": HELLO,
        "unknown": 404,
    }


async def test_openai_agents_by_both_protocols(door: Door, token: str, tmp_path: Path) -> None:
    got = await said_by("agents_run.py", door.origin, token, tmp_path)
    assert got == [{"streamed": SUNNY, "has_events": True, "whole": SUNNY, "again": HELLO, "dog": DOG}] * 2


async def test_litellm_by_four_protocols(door: Door, token: str, tmp_path: Path) -> None:
    got = await said_by("litellm_calls.py", door.origin, token, tmp_path)
    assert got == {
        "chat": HELLO,
        "ollama": HELLO,
        "answered": SUNNY,
        "shaped": '{"name": "Rex", "age": 3}',
        "streamed": HELLO,
        "ollama_streamed": HELLO,
        "called": '{"city": "Rome"}',
        "response": HELLO,
        "last_event": "response.completed",
    }


async def test_llm_on_its_command_line(door: Door, token: str, tmp_path: Path) -> None:
    got = await said_by("llm_prompts.py", door.origin, token, tmp_path)
    assert got == {
        "streamed": HELLO,
        "whole": HELLO,
        "goes_on": HELLO,
        "shaped": DOG,
        "shaped_whole": DOG,
        "answered": SUNNY,
    }
