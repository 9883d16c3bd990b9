"""What most tests of services begin with."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.living_house import LivingHouse, living_house


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[LivingHouse]:
    """A server with an admin and a member, in the folder `home` of the test's own."""
    async with living_house(tmp_path / "home") as opened:
        yield opened
