"""Plain commands of one person in one Home Assistant: the port that a turn asks before it asks a model.

`compose/` makes one for each person from the open connection; the index of names is shared.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from cortex.integrations.home_assistant.commands.understand import Commands
from cortex.integrations.home_assistant.house import House, HouseEntity
from cortex.ports.home_assistant import HouseCommand


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonsCommands:
    """Implements `HouseCommands`. `house`: as it is now; `may`: what of it the person may move; `is_on`: the card's."""

    house: Callable[[], Awaitable[House]]
    may: Callable[[House], Callable[[HouseEntity], bool]]
    commands: Commands
    is_on: bool = True

    async def understand(self, text: str) -> HouseCommand | None:
        """What the text orders for certain. Raises what `house` raises where nobody knows how it stands."""
        if not self.is_on:
            return None
        house = await self.house()
        # A new name has all of them indexed again, 40 ms for 3,000 entities: not on the loop.
        return await asyncio.to_thread(self.commands.understand, text, house, self.may(house))
