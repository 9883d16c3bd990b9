"""Home Assistant as a system that is set up on the integrations page: opened with its form, tested, closed.

Loaded at the first use, by its card in `cards/home_assistant.py`.
"""

import asyncio
from contextlib import AsyncExitStack

from cortex.base.errors import UserError
from cortex.integrations.home_assistant.allowed import absent
from cortex.integrations.home_assistant.commands.sentences import HomeSentences
from cortex.integrations.home_assistant.commands.understand import PersonsCommands
from cortex.integrations.home_assistant.form import HomeAssistantForm
from cortex.integrations.home_assistant.home_assistant import HomeConnection, PersonsHome
from cortex.integrations.home_assistant.server import HomeTrouble

FIELD_OF = {"refused": "token", "certificate": "ca"}


class HomeAssistantSystem:
    """One connection for everybody, opened at the first question."""

    def __init__(self, form: HomeAssistantForm) -> None:
        self.form = form
        self._connection = HomeConnection(form.server())
        self._sentences = HomeSentences(self._connection.index.client)
        self._background = AsyncExitStack()
        self._is_running = False
        self._starting = asyncio.Lock()

    async def home(self, person: str) -> PersonsHome:
        """The house for this person, by account name."""
        await self._run()
        return PersonsHome(self._connection, self.form.allow_list(person))

    async def commands(self, person: str) -> PersonsCommands:
        """Return what reads this person's plain commands."""
        await self._run()
        return PersonsCommands(
            named=self._connection.named,
            may=self.form.allow_list(person).in_house,
            sentences=self._sentences,
            is_on=self.form.plain_commands,
        )

    async def test(self) -> str:
        """Return what answers, in a sentence; UserError says what is wrong, and which field mends it."""
        await self._run()
        index = self._connection.index
        try:
            house = await index.house()
            version = (await index.client.socket()).version
            reads = await self._sentences.languages_read() if self.form.plain_commands else ""
        except HomeTrouble as trouble:
            raise UserError(trouble.message, field=FIELD_OF.get(trouble.kind, "address")) from trouble
        may = self.form.allow_list("").in_house(house)
        open_to = sum(may(one) for one in house.entities.values())
        count = f"{open_to} of {len(house.entities)}" if open_to < len(house.entities) else str(open_to)
        answers = f"Home Assistant {version} answers: {count} entities in {len(house.areas)} areas."
        missing = ", ".join(absent(house, self.form.allow_lists()))
        unmatched = f"These entries of the lists match nothing in Home Assistant: {missing}." if missing else ""
        return " ".join(filter(None, (answers, unmatched, reads)))

    async def close(self) -> None:
        """End the connection."""
        await self._background.aclose()

    async def _run(self) -> None:
        async with self._starting:
            if not self._is_running:
                await self._background.enter_async_context(self._connection.index.client.running())
                self._is_running = True
