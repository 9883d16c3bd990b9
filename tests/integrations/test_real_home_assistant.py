"""What is said of Home Assistant, on a real one: `make homeassistant` installs it, `pytest -m full` runs this."""

import asyncio
import contextlib
import logging
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from cortex.base.errors import ToolFailed
from cortex.integrations.home_assistant import client, index
from cortex.integrations.home_assistant.allowed import AllowList, allow_list
from cortex.integrations.home_assistant.form import HomeAssistantForm
from cortex.integrations.home_assistant.home_assistant import HomeConnection, PersonsHome
from cortex.integrations.home_assistant.server import HomeRefusal, HomeTrouble, server_at
from cortex.integrations.home_assistant.system import HomeAssistantSystem
from cortex.ports.home_assistant import Entity
from tests.home_assistant_double import until
from tests.real_home_assistant import RealHome, pythons_of_home_assistant, real_home

log = logging.getLogger(__name__)
pytestmark = pytest.mark.full
ROOMS = {"light.kitchen_sink": "kitchen", "light.kitchen_table": "kitchen", "light.bedroom_left": "bedroom"}


@pytest.fixture(scope="module", params=pythons_of_home_assistant())
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealHome]:
    with real_home(tmp_path_factory.mktemp("house"), request.param) as home:
        yield home


@pytest.fixture
async def connection(real: RealHome) -> AsyncIterator[HomeConnection]:
    made = HomeConnection(server_at(real.url, real.token))
    async with made.index.client.running():
        await _furnish(made)
        yield made


async def _furnish(made: HomeConnection) -> None:
    """Two rooms, one upstairs; what a test before has made stays."""
    socket = await made.index.client.socket()
    house = await made.index.house()
    if "bedroom" not in house.areas:
        await socket.command("config/area_registry/create", name="Kitchen", aliases=["Küche"])
        try:
            floor = (await socket.command("config/floor_registry/create", name="Upstairs"))["floor_id"]
            await socket.command("config/area_registry/create", name="Bedroom", floor_id=floor)
        except HomeRefusal:  # a room has a floor since 2024.4
            await socket.command("config/area_registry/create", name="Bedroom", aliases=["Upstairs"])
    for id, area in ROOMS.items():
        await socket.command("config/entity_registry/update", entity_id=id, area_id=area)


def states(entities: Any) -> dict[str, str]:
    return {one.id: one.state for one in entities}


async def test_the_form_counts_what_stands_in_it(real: RealHome) -> None:
    system = HomeAssistantSystem(HomeAssistantForm.model_validate({"address": real.url, "token": real.token}))
    try:
        text = await system.test()
    finally:
        await system.close()
    assert text.startswith(f"Home Assistant {real.version} answers: ")


async def test_a_room_is_found_switched_and_read(connection: HomeConnection) -> None:
    home = PersonsHome(connection, AllowList())
    for words in ("kitchen lights", "Küchenlicht", "lumières de la cuisine"):
        meant = await home.resolve(words, ("light",))
        assert [one.id for one in meant.entities] == ["light.kitchen_sink", "light.kitchen_table"]
    ids = [one.id for one in meant.entities]
    assert states(await home.call("light.turn_on", ids, {})) == dict.fromkeys(ids, "on")
    assert states(await home.call("light.turn_off", ids, {})) == dict.fromkeys(ids, "off")
    assert states(await home.call("light.turn_off", ids, {})) == dict.fromkeys(ids, "off")
    upstairs = await home.resolve("upstairs lights", ("light",))
    assert [one.id for one in upstairs.entities] == ["light.bedroom_left"]
    lock = await home.call("lock.lock", ["lock.front_door"], {})
    assert states(lock) == {"lock.front_door": "locked"}
    assert states(await home.call("lock.unlock", ["lock.front_door"], {})) == {"lock.front_door": "unlocked"}
    scene = await home.call("scene.turn_on", ["scene.film"], {})
    assert [one.attributes["entity_id"] for one in scene] == [["light.hall", "light.kitchen_sink"]]
    assert states(await home.read(["light.kitchen_sink"])) == {"light.kitchen_sink": "on"}


@pytest.mark.parametrize(
    ("service", "id", "data", "words"),
    [
        ("light.turn_onn", "light.hall", {}, "no service 'light.turn_onn'"),
        ("light.turn_on", "light.hall", {"brightnes": 1}, "has no field 'brightnes'. It takes: "),
        ("light.turn_on", "light.hall", {"brightness_pct": 101}, "at least 0 and at most 100"),
        ("climate.set_temperature", "climate.living_room", {"temperature": 99}, "at least 7 and at most 30"),
        ("climate.set_hvac_mode", "climate.living_room", {"hvac_mode": "banana"}, "must be one of"),
        ("climate.set_hvac_mode", "climate.living_room", {}, "required key not provided"),
        ("input_number.set_value", "input_number.outside", {"value": "much"}, "must be a number"),
    ],
)
async def test_wrong_calls_are_told_and_change_nothing(
    connection: HomeConnection, service: str, id: str, data: dict[str, object], words: str
) -> None:
    home = PersonsHome(connection, AllowList())
    before = states(await home.read([id]))
    with pytest.raises(ToolFailed, match=words):
        await home.call(service, [id], data)
    assert states(await home.read([id])) == before


async def test_a_rename_is_known_at_the_next_question(connection: HomeConnection) -> None:
    home, socket = PersonsHome(connection, AllowList()), await connection.index.client.socket()
    for name in ("Corridor lamp", "Porch lantern", "Hallway"):
        await socket.command("config/entity_registry/update", entity_id="light.hall", name=name)
        assert [one.id for one in (await home.resolve(name, ("light",))).entities] == ["light.hall"]
    await socket.command("config/area_registry/update", area_id="bedroom", name="Den")
    assert [one.id for one in (await home.resolve("den lights", ("light",))).entities] == ["light.bedroom_left"]
    await socket.command("config/area_registry/update", area_id="bedroom", name="Bedroom")


async def test_history_is_what_was(connection: HomeConnection) -> None:
    home = PersonsHome(connection, AllowList())
    for value in (12, 14.5):
        await home.call("input_number.set_value", ["input_number.outside"], {"value": value})
    kept: list[str] = []
    while kept[-2:] != ["12.0", "14.5"]:  # the recorder writes when it has time
        kept = [one.state for one in await home.history("sensor.outside_temperature", 24)]


async def test_what_is_not_allowed_is_not_there(connection: HomeConnection) -> None:
    home = PersonsHome(connection, allow_list("area:Kitchen"))
    assert set(states((await home.find("", "", "", 30)).entities)) == {"light.kitchen_sink", "light.kitchen_table"}
    with pytest.raises(ToolFailed, match="is not in Home Assistant"):
        await home.call("lock.unlock", ["lock.front_door"], {})


async def test_a_call_by_words_costs_little_processor_time(connection: HomeConnection) -> None:
    home = PersonsHome(connection, AllowList())
    spent: list[float] = []
    verbs = ("turn_on", "turn_off")
    after: list[Entity] = []
    for number in range(50):
        began = time.process_time()
        meant = await home.resolve("kitchen lights", ("light",))
        after = list(await home.call(f"light.{verbs[number % 2]}", [one.id for one in meant.entities], {}))
        spent.append(time.process_time() - began)
    assert set(states(after).values()) == {"off"}
    log.info("find, switch and read: median %.1f ms of processor time", statistics.median(spent) * 1_000)


async def test_a_restart_is_said_and_got_over(
    real: RealHome, connection: HomeConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "AGAIN_S", 0.0)
    home = PersonsHome(connection, AllowList())
    await asyncio.to_thread(real.stop)
    with pytest.raises(ToolFailed, match="Nothing answers at"):
        await home.resolve("kitchen lights", ("light",))
    await asyncio.to_thread(real.start)
    assert len((await home.resolve("kitchen lights", ("light",))).entities) == 2


async def test_standing_still_is_said_and_got_over(
    real: RealHome, connection: HomeConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "PING_S", 0.5)
    home = PersonsHome(connection, AllowList())
    real.pause()
    with pytest.raises(ToolFailed, match=r"did not answer within 0\.5 seconds"):
        await home.read(["light.hall"])
    real.go_on()
    monkeypatch.undo()
    assert len(await home.read(["light.hall"])) == 1


async def test_a_revoked_token_is_said(real: RealHome, connection: HomeConnection) -> None:
    """The last test of the house: its token is gone afterwards."""
    socket = await connection.index.client.socket()
    rows = await socket.command("auth/refresh_tokens")
    (own,) = [one["id"] for one in rows if one["client_name"] == "cortex"]
    with contextlib.suppress(HomeTrouble):  # it may hang up ahead of the answer
        await socket.command("auth/delete_refresh_token", refresh_token_id=own)
    await until(lambda: not connection.index.client.is_connected)
    with pytest.raises(ToolFailed, match="refused the token"):
        await connection.index.house()
