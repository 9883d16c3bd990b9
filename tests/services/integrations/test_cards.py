"""The cards that come with Cortex: found by their files, whole, in the order of the page."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cortex.base import scan
from cortex.base.server_settings import GROUPS
from cortex.integrations import cards
from cortex.integrations.cards import talk
from tests.living_house import LivingHouse, living_house

IN_HOMES = {"aether", "aether_db", "coding", "home_assistant", "mcp", "talk"}  # their rows hold these names


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path / "home") as opened:
        yield opened


async def test_every_file_is_a_card_in_its_own_place(house: LivingHouse) -> None:
    kinds = house.cortex.integrations.kinds
    assert IN_HOMES <= {kind.name for kind in kinds} == set(scan.modules(cards.__name__))
    orders = [kind.order for kind in kinds]
    assert orders == sorted(set(orders))
    assert all(kind.about.endswith(".") for kind in kinds)


async def test_each_can_be_set_up_somewhere(house: LivingHouse) -> None:
    """On the page by its form, or in the server's settings."""
    kinds = house.cortex.integrations.kinds
    assert [kind.name for kind in kinds if kind.has_form == bool(kind.settings or kind.lacks)] == []
    groups = {group.id for group in GROUPS}
    assert [kind.name for kind in kinds if kind.settings not in ("", *groups)] == []


def test_a_client_has_the_methods_of_the_port_that_its_card_opens() -> None:
    (port,) = talk.integration(None).opens  # type: ignore[arg-type]  # it asks nothing of its host
    methods = {name for name in vars(port) if not name.startswith("_")}
    assert methods
    assert methods <= set(dir(talk.TalkServer))
