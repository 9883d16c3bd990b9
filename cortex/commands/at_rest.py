"""Asks the server without starting it: no engine, no timers. For the commands that need what is stored here."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from cortex.app import Cortex
from cortex.base.start import settings_in_force

T = TypeVar("T")


def at_rest(ask: Callable[[Cortex], Awaitable[T]], *, is_migrating: bool = True) -> T:
    """Return what the services at rest say to this."""

    async def asked() -> T:
        settings = settings_in_force(is_looking=not is_migrating)
        async with Cortex.at_rest(settings, is_migrating=is_migrating) as cortex:
            return await ask(cortex)

    return asyncio.run(asked())
