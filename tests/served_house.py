"""A living house with its page on a port of this machine, for clients that speak real HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.listening import listening
from tests.living_house import LivingHouse, living_house
from web.app import create_app


@asynccontextmanager
async def served_house(home: Path, **settings: Any) -> AsyncIterator[tuple[LivingHouse, str]]:
    """The house, and where its page is."""
    async with living_house(home, **settings) as house, listening(create_app(house.cortex)) as address:
        yield house, address
