"""A living house with its page on a port of this machine, for clients that speak real HTTP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn

from tests.living_house import LivingHouse, living_house
from tests.patience import PATIENCE_S
from web.app import create_app


@asynccontextmanager
async def served_house(home: Path, **settings: Any) -> AsyncIterator[tuple[LivingHouse, str]]:
    """The house, and where its page is."""
    async with living_house(home, **settings) as house:
        app = create_app(house.cortex)
        server = uvicorn.Server(uvicorn.Config(app, port=0, lifespan="off", ws="none", log_config=None))
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve())
            async with asyncio.timeout(PATIENCE_S):
                while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
                    await asyncio.sleep(0.01)
            try:
                yield house, f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
            finally:
                server.should_exit = True
