"""A look that the engine takes again and again, for as long as it is open."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from sqlalchemy.exc import SQLAlchemyError

log = logging.getLogger(__name__)


async def repeat(what: str, look: Callable[[], Awaitable[None]], every_s: float) -> None:
    """Look until cancelled; a database error is no end of it."""
    while True:
        try:
            await look()
        except (SQLAlchemyError, OSError) as error:
            log.warning("engine: cannot read %s, retrying: %s", what, error)
        await asyncio.sleep(every_s)
