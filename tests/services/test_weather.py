"""The weather of Today: from Home Assistant, soon or not at all, and in words of ours alone."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cortex.ports.home_assistant import Entity
from cortex.services.today.weather import HOLDS, Weather, said
from tests.home_assistant_double import TOKEN, HomeDouble, home_double
from tests.living_house import LivingHouse, living_house
from tests.patience import PATIENCE_S

SUNNY: dict[str, Any] = {"temperature": 13.6, "temperature_unit": "°C"}


@pytest.fixture
async def double() -> AsyncIterator[HomeDouble]:
    async with home_double() as home:
        yield home


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path / "home") as opened:
        yield opened


async def words(house: LivingHouse) -> str:
    """The words of a page that is opened for the first time."""
    return await Weather(scope=house.cortex.scope, clock=house.cortex.runtime.clock).of(house.admin.id)


async def test_it_is_the_house_s_own_and_asked_once_in_five_minutes(house: LivingHouse, double: HomeDouble) -> None:
    double.put("weather.home", "Home", "partlycloudy", **SUNNY)
    typed = {"address": double.url, "token": TOKEN, "verify_certificate": "1"}
    await house.cortex.integrations.save(house.admin, "home_assistant", "", typed, is_new=True)
    async with asyncio.timeout(PATIENCE_S):
        while await words(house) != "Partly cloudy, 14 °C":
            pass
    weather = Weather(scope=house.cortex.scope, clock=house.cortex.runtime.clock)
    assert await weather.of(house.admin.id) == "Partly cloudy, 14 °C"
    await double.stop()
    assert await weather.of(house.admin.id) == "Partly cloudy, 14 °C"
    later = replace(weather, clock=lambda: house.cortex.runtime.clock() + HOLDS)
    assert await later.of(house.admin.id) == ""


async def test_without_a_house_there_is_none(house: LivingHouse) -> None:
    assert await words(house) == ""
    assert (await house.cortex.today.of(house.admin)).weather == ""


@pytest.mark.parametrize(
    ("state", "attributes", "shown"),
    [
        ("rainy", {"temperature": 3, "temperature_unit": "°C"}, "Rain, 3 °C"),
        ("sunny", {"temperature": 71.2, "temperature_unit": "°F"}, "Sunny, 71 °F"),
        ("sunny", {}, "Sunny"),
        ("unavailable", {"temperature": None, "temperature_unit": "°C"}, ""),
        ("<b>call me</b>", {"temperature": "now", "temperature_unit": "°C"}, ""),
        ("sunny", {"temperature": 12, "temperature_unit": "call me"}, "Sunny"),
        ("sunny", {"temperature": float("nan"), "temperature_unit": "°C"}, "Sunny"),
    ],
)
def test_only_known_signs_and_numbers_are_shown(state: str, attributes: dict[str, Any], shown: str) -> None:
    at = datetime(2026, 11, 28, tzinfo=UTC)
    entity = Entity(id="weather.home", name="Home", area="", state=state, unit="", attributes=attributes, changed_at=at)
    assert said(entity) == shown
