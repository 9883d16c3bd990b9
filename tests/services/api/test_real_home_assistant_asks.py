"""Cortex as the voice of a real Home Assistant: `make homeassistant` installs it, `pytest -m full` runs this.

It is set up through the flows behind Home Assistant's own pages, and spoken to as a satellite in a room does.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.home_assistant_door import Assistant, configured, logged_in, with_key
from tests.patience import PATIENCE_S
from tests.program_door import Door, program_door
from tests.real_home_assistant import AGENTS, RealHome, pythons_of_home_assistant
from tests.scripted_server import ScriptedServer, Use, rule

pytestmark = pytest.mark.full
PROMPT = "You are heard through a speaker: answer in plain text.\nThe room is {{ area_name(llm_context.device_id) }}."
MILK = Use("task_create", {"title": "milk", "list_name": "shopping"}, is_blind=True)
SHELL = Use("shell_exec", {"command": "echo done by hand"}, is_blind=True)


@pytest.fixture(scope="module", params=pythons_of_home_assistant(AGENTS))
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealHome]:
    home = configured(tmp_path_factory.mktemp("house"), request.param)
    try:
        home.start()
        yield home
    finally:
        home.stop()


@pytest.fixture
async def door(tmp_path: Path, scripted: ScriptedServer) -> AsyncIterator[Door]:
    scripted.rules = [
        rule("milk", MILK, "Added milk."),
        rule("which room", "In the kitchen."),
        rule("fetch it", SHELL, "It is fetched."),
    ]
    async with program_door(tmp_path / "home", scripted) as opened:
        yield opened


@asynccontextmanager
async def spoken_to(real: RealHome, door: Door) -> AsyncIterator[Assistant]:
    """Cortex as an assistant of this home, in its kitchen; gone afterwards."""
    token = await door.token(name="Kitchen", own_words="1", wait_s=0)
    async with with_key(door.origin, token) as address, logged_in(real) as home:
        made = await home.filled_in({"handler": "ollama"}, {"url": address}, {"model": "cortex"})
        id = made["result"]["entry_id"]
        try:
            options = {"prompt": PROMPT, "llm_hass_api": "none", "max_history": 0}
            await home.filled_in({"handler": id}, options, place="options/")
            yield await home.assistant(await home.agent("cortex"), await home.satellite("Kitchen"))
        finally:
            await home.http.delete(f"/api/config/config_entries/entry/{id}")


async def test_what_is_said_in_a_room_is_ones_own_word_in_one_conversation(
    real: RealHome, door: Door, scripted: ScriptedServer
) -> None:
    async with spoken_to(real, door) as kitchen:
        assert await kitchen.say("put milk on my list") == "Added milk."
        assert await kitchen.say("which room is this?") == "In the kitchen."
    turns = await door.turns()
    assert [(turn.text, turn.is_tainted, turn.has_read_outside) for turn in turns] == [
        ("put milk on my list", False, False),
        ("which room is this?", False, False),
    ]
    assert len({turn.conversation_id for turn in turns}) == 1
    (task,) = await door.house.cortex.tasks.list(door.house.admin)
    assert task.title == "milk"
    assert "The room is Kitchen." in str(scripted.log[0].body["messages"])


async def test_what_asks_is_said_and_done_at_a_later_yes(real: RealHome, door: Door) -> None:
    approvals, admin = door.house.cortex.approvals, door.house.admin
    async with spoken_to(real, door) as kitchen:
        told = await kitchen.say("fetch it")
        assert told.startswith("This needs your OK first: ")
        assert told.endswith("Open Cortex to answer.")
        (asked,) = await approvals.pending(admin)
        await approvals.answer(admin, asked.id, "once")
        async with asyncio.timeout(PATIENCE_S):
            while [turn.state for turn in await door.turns()] != ["done", "done"]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert await kitchen.say("put milk on my list") == "Added milk."
    assert len({turn.conversation_id for turn in await door.turns()}) == 1


async def test_a_token_that_is_gone_lets_nobody_in(real: RealHome, door: Door) -> None:
    cortex, admin = door.house.cortex, door.house.admin
    async with spoken_to(real, door) as kitchen:
        (view,) = await cortex.api_tokens.list(admin)
        await cortex.api_tokens.revoke(admin, view.token.id)
        told = await kitchen.say("put milk on my list")
    assert "unknown or was revoked" in told or "Unexpected error" in told, "2025.4 says no more than that aloud"
    assert await door.turns() == []
