"""Plain commands through real turns on a real Home Assistant of 3,000 entities, set up on its card."""

import gc
import logging
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from cortex.agent.plain import DONE_NOTE
from cortex.integrations.home_assistant.home_assistant import HomeConnection
from cortex.integrations.home_assistant.server import server_at
from cortex.ports.home_assistant import HouseCommands
from tests.living_house import LivingHouse, living_house
from tests.real_home_assistant import RealHome, pythons_of_home_assistant, real_home

log = logging.getLogger(__name__)
pytestmark = pytest.mark.full
SIZE = 3_000
KITCHEN = ("light.kitchen_sink", "light.kitchen_table")
OFF = "turn off the kitchen lights"


@pytest.fixture(scope="module", params=pythons_of_home_assistant())
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealHome]:
    more = [f"thing_{number}" for number in range(SIZE)]
    with real_home(tmp_path_factory.mktemp("house"), request.param, more=more) as home:
        yield home


@pytest.fixture
async def house(real: RealHome, tmp_path: Path) -> AsyncIterator[LivingHouse]:
    connection = HomeConnection(server_at(real.url, real.token))
    async with connection.index.client.running():
        socket = await connection.index.client.socket()
        if "kitchen" not in (await connection.index.house()).areas:
            await socket.command("config/area_registry/create", name="Kitchen", aliases=["Küche"])
        for id in KITCHEN:
            await socket.command("config/entity_registry/update", entity_id=id, area_id="kitchen")
    async with living_house(tmp_path / "home") as opened:
        form = {"address": real.url, "token": real.token, "verify_certificate": "1", "plain_commands": "1"}
        await opened.cortex.integrations.save(opened.admin, "home_assistant", "", form, is_new=True)
        await opened.cortex.integrations.test(opened.admin, "home_assistant", "", form)
        yield opened


async def said(house: LivingHouse, text: str) -> tuple[list[str], list[str], list[str]]:
    """The answer, the notices and how the calls ended, of one message in a conversation of its own."""
    cid = await house.conversation()
    await house.say(cid, text)
    parts = [event.payload["text"] for event in await house.events(cid, "part.end")]
    notices = [event.payload["text"] for event in await house.events(cid, "notice")]
    return parts, notices, [event.payload["text"] for event in await house.events(cid, "tool.result")]


async def test_an_order_is_done_without_a_model_and_what_it_says_is_so(house: LivingHouse) -> None:
    on, notices, ends = await said(house, "Mach das Licht in der Küche an")
    assert on == ["Eingeschaltet: Sink (Kitchen), Table lamp (Kitchen)."]
    assert notices == [DONE_NOTE]
    assert "all 2 are on" in ends[0]
    off, notices, ends = await said(house, OFF)
    assert (off, notices) == (["Turned off: Sink (Kitchen), Table lamp (Kitchen)."], [DONE_NOTE])
    assert "all 2 are off" in ends[0]


async def test_a_lock_waits_for_a_yes(house: LivingHouse) -> None:
    cid = await house.conversation()
    turn = await house.cortex.chat.send_message(house.admin, cid, "unlock the front door")
    asked = await house.until(cid, "approval", state="asked")
    await house.cortex.approvals.answer(house.admin, asked.payload["approval"], "once")
    await house.until(cid, "turn.end", turn=turn)
    (end,) = await house.events(cid, "tool.result")
    assert "is unlocked" in end.payload["text"]


async def test_a_degree_too_many_and_an_unknown_room_are_left_to_the_model(house: LivingHouse) -> None:
    reader = house.cortex.scope.provide(HouseCommands, house.admin.id)
    heating = await reader.understand("set the living room heating to 19 degrees")  # by its name: it stands in no room
    assert heating is not None
    assert [(one.service, one.ids) for one in heating.orders] == [("climate.set_temperature", ("climate.living_room",))]
    assert await reader.understand("set the living room heating to 99 degrees") is None
    assert await reader.understand("turn off the cellar lights") is None
    assert await reader.understand(OFF) is not None


async def test_switched_off_on_the_card_it_is_the_models(house: LivingHouse, real: RealHome) -> None:
    form = {"address": real.url, "token": real.token, "verify_certificate": "1", "plain_commands": ""}
    await house.cortex.integrations.save(house.admin, "home_assistant", "", form, is_new=False)
    assert await house.cortex.scope.provide(HouseCommands, house.admin.id).understand(OFF) is None


async def test_what_an_order_costs(house: LivingHouse) -> None:
    spent = []
    gc.freeze()  # as the daemon does once it is up
    for number in range(51):
        cid = await house.conversation()
        began_s = time.process_time()
        await house.say(cid, f"turn {('off', 'on')[number % 2]} the kitchen lights")
        spent.append((time.process_time() - began_s) * 1_000)
    gc.unfreeze()
    log.warning("the whole turn: median %.1f ms of processor time", statistics.median(spent[1:]))
