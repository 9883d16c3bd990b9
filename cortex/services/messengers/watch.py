"""Looks whether a messenger is set up, and opens what speaks with it. Without one nothing of that is loaded."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct, field
from sqlalchemy.exc import SQLAlchemyError

from cortex.base.background import crew
from cortex.base.errors import CortexError
from cortex.ports.messengers import Messenger
from cortex.services.integrations.integrations import Integrations
from cortex.storage.integrations import IntegrationsRepository

if TYPE_CHECKING:
    from cortex.services.messengers.door import MessengerDoor

LOOK_S = 60.0

log = logging.getLogger(__name__)


class MessengerWatch(Struct, frozen=True, kw_only=True):
    """The messengers of this server. `opened`: gives what speaks with the one of this name."""

    integrations: Integrations
    opened: Callable[[str], "MessengerDoor"]
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _open: dict[str, "MessengerDoor"] = field(default_factory=dict)

    def wake(self) -> None:
        """Look now: one may have been set up, or somebody linked."""
        self._changed.set()
        for door in self._open.values():
            door.wake()

    async def names(self) -> Sequence[str]:
        """Those that are set up and on."""
        kinds = [kind.name for kind in self.integrations.kinds if Messenger in kind.opens]
        rows = await self.integrations.db.repository(IntegrationsRepository).list()
        return [row.kind for row in rows if row.kind in kinds and row.is_on]

    async def run(self) -> None:
        """Until cancelled: speak with each that is set up."""
        async with crew() as begin:
            while True:
                self._changed.clear()
                try:
                    for name in await self.names():
                        if name not in self._open:
                            self._open[name] = self.opened(name)
                            begin(self._kept(name))
                except (CortexError, SQLAlchemyError) as error:
                    log.warning("messengers: database error, looking again: %s", error)
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await self._changed.wait()

    async def _kept(self, name: str) -> None:
        """Speak with one; should it end, a later look opens it anew."""
        try:
            await self._open[name].run()
        except (CortexError, SQLAlchemyError, OSError) as error:
            log.warning("messengers: %s: %s", name, error)
        finally:
            del self._open[name]
