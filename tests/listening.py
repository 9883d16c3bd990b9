"""An application on a port of this machine, for clients that speak real HTTP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn

from tests.patience import PATIENCE_S


@asynccontextmanager
async def listening(app: Any, port: int = 0, *, lifespan: Any = "off") -> AsyncIterator[str]:
    """It is served for as long as the block lasts; where."""
    config = uvicorn.Config(app, host="127.0.0.1", port=port, lifespan=lifespan, ws="none", log_config=None)
    server = uvicorn.Server(config)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve())
        async with asyncio.timeout(PATIENCE_S):
            while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
                await asyncio.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        finally:
            server.should_exit = True
