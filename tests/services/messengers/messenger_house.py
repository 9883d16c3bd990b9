"""A house with a Telegram bot, people who are linked there, and a scripted model."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cortex.base.user import User
from cortex.services.models.sharing import ShareForm
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.messengers import MessengersRepository
from tests.living_house import LivingHouse, living_house
from tests.scripted_rules import Rule
from tests.scripted_server import ScriptedServer
from tests.telegram import TelegramDouble

ADA, BEN, MIA, OLA = TelegramDouble.people


@dataclass(frozen=True, slots=True)
class MessengerHouse:
    house: LivingHouse
    bot: Any  # TelegramDouble or MatrixTown
    model: ScriptedServer

    @property
    def cortex(self) -> Any:
        return self.house.cortex

    async def link(self, user: User, who: dict[str, Any]) -> None:
        """Write to the bot as a stranger, and enter the code on the page."""
        code = await self.code(who)
        await self.cortex.messenger_links.link(user, code)

    async def code(self, who: dict[str, Any]) -> str:
        self.bot.says(who, "/start")
        line = await self.told(who, "enter the code")
        found = re.search(r"(\d{4}) (\d{4})", line["text"])
        assert found
        return found[1] + found[2]

    async def people(self) -> list[tuple[User, dict[str, Any]]]:
        """Everybody who is linked, with who they are there."""
        found = []
        for user in await self.cortex.accounts.users():
            links = await self.cortex.runtime.db.repository(MessengersRepository, user.id).links()
            found += [(user, one) for link in links for one in self.bot.people if str(one["id"]) == link.sender]
        return found

    async def told(self, who: dict[str, Any], text: str, times: int = 1) -> dict[str, Any]:
        return await asyncio.to_thread(self.bot.until, who["id"], text, times)

    async def pressed(self, who: dict[str, Any], message: dict[str, Any], words: str) -> str:
        press = self.bot.presses(who, message, words)
        return str((await asyncio.to_thread(self.bot.until_answered, press))["text"])

    async def expect_once(self, said: dict[Any, list[str]]) -> None:
        """What each person wrote is in their chat, in order, and was answered once, to them; what was cut is told.

        said: the last words of each message `message WORD`, by person.
        """
        for who in (one for one in self.bot.people if one["id"] in said):
            await asyncio.to_thread(self.bot.says, who, "message last.")
            said[who["id"]].append("last.")
        for user, who in await self.people():
            await self.told(who, "You said: message last.")
            log = self.cortex.runtime.db.repository(ConversationsRepository, user.id)
            events = await log.events(await self.conversation(user))
            typed = [event.payload["text"] for event in events if event.kind == "message"]
            assert [text.removeprefix("message ") for text in typed] == said[who["id"]]
        for id, own_words in said.items():
            texts = await asyncio.to_thread(self.bot.texts, id)
            own = "\n".join(texts)
            answers = [text for text in texts if "You said:" in text]
            assert all(own.count(f"You said: message {word}") <= 1 for word in own_words)
            assert not any(f"message {word}" in own for other in said if other != id for word in said[other][:-1])
            order = [text.split("message ")[1].split()[0] for text in answers]
            assert order == [word for word in own_words if word in order]
            missing = [word for word in own_words if word not in order]
            assert len(missing) <= own.count("Cortex was interrupted")
            assert self.bot.kind == "telegram" or not missing  # what is sent again under its word arrives once
        stranger = await asyncio.to_thread(self.bot.texts, self.bot.people[-1]["id"])
        assert not any("You said" in text for text in stranger)

    async def conversation(self, user: User) -> str:
        """The one that goes on in their own chat."""
        own = self.cortex.runtime.db.repository(MessengersRepository, user.id)
        link = (await own.links())[0]
        here = [one.conversation_id for one in await own.chats(link.id) if one.is_current and one.chat == link.chat]
        return str(here[0])


@asynccontextmanager
async def messenger_house(
    home: Path,
    *rules: Rule,
    bot: Any,
    groups: str = "",
    one_model: ScriptedServer | None = None,
    **settings: Any,
) -> AsyncIterator[MessengerHouse]:
    """Open it; on a home that was used before nothing is set up again. `one_model`: that answers in several lives."""
    is_new = not (home / "secret.key").exists()
    with nullcontext(one_model) if one_model else ScriptedServer(*rules) as model:
        async with living_house(home, **settings) as house:
            served = {
                "name": "m",
                "provider": "openai",
                "model": "s",
                "base_url": model.base_url,
                "api_key": "test-key",
            }
            shared = ShareForm(audience="everybody")
            await house.cortex.model_sharing.save(house.admin, served, "" if is_new else "m", shared)
            if is_new:
                form = bot.form(groups=groups)
                await house.cortex.integrations.save(house.admin, bot.kind, "", form, is_new=True)
                house.cortex.messenger_watch.wake()
            yield MessengerHouse(house, bot, model)
