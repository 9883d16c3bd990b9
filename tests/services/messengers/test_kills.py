"""Messages of three people and a stranger while Cortex is killed again and again: each answered once, in order."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from cortex.storage.conversations import ConversationsRepository
from tests.scripted_server import ScriptedServer
from tests.services.messengers.messenger_house import ADA, BEN, MIA, OLA, messenger_house
from tests.telegram import TelegramDouble

SENT = 200
EACH = 15  # messages between two kills
PEOPLE = (ADA, BEN, MIA)


@pytest.fixture
def bot() -> Iterator[TelegramDouble]:
    with TelegramDouble() as double:
        yield double


@pytest.fixture
def model() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


async def test_each_message_is_answered_once_to_its_own_person_under_kills(
    tmp_path: Path, bot: TelegramDouble, model: ScriptedServer
) -> None:
    dice = random.Random(40)  # noqa: S311 - no secret
    said: dict[int, list[str]] = {11: [], 22: [], 33: []}
    at = 0
    async with messenger_house(tmp_path / "home", bot=bot, one_model=model) as house:
        mia = (await house.cortex.accounts.add_user("Mia", "member", "tulip quarry lantern 98")).user
        for user, who in ((house.house.admin, ADA), (house.house.member, BEN), (mia, MIA)):
            await house.link(user, who)
    while at < SENT:
        async with messenger_house(tmp_path / "home", bot=bot, one_model=model) as house:
            bot.cut["sendMessage"].extend(dice.choice(["", "", "before", "after"]) for _ in range(3))
            for at in range(at, min(at + EACH, SENT)):  # noqa: B020 - it goes on behind the kill
                who = dice.choice((*PEOPLE, OLA))
                bot.says(who, f"message m{at}.")
                if who is not OLA:
                    said[who["id"]].append(f"m{at}.")
                await asyncio.sleep(dice.choice((0, 0.05, 0.2)))
            at += 1
    bot.cut.clear()
    async with messenger_house(tmp_path / "home", bot=bot, one_model=model) as house:
        for who in PEOPLE:
            bot.says(who, "message last.")
        for who in PEOPLE:
            await house.told(who, "You said: message last.")
        for user, who in await house.people():
            log = house.cortex.runtime.db.repository(ConversationsRepository, user.id)
            events = await log.events(await house.conversation(user))
            typed = [event.payload["text"] for event in events if event.kind == "message"]
            texts = [text.removeprefix("message ") for text in typed]
            assert texts == [*said[who["id"]], "last."]
    for who in PEOPLE:
        own = "\n".join(bot.texts(who["id"]))
        answers = [text for text in bot.texts(who["id"]) if "You said:" in text]
        assert all(own.count(f"You said: message {word}") <= 1 for word in said[who["id"]])
        assert not any(f"message {word}" in own for other in PEOPLE if other is not who for word in said[other["id"]])
        order = [text.split("message ")[1].split()[0] for text in answers]
        assert order == [word for word in [*said[who["id"]], "last."] if word in order]
        missing = [word for word in said[who["id"]] if word not in order]
        assert len(missing) <= own.count("Cortex was interrupted")
    assert not any("You said" in text for text in bot.texts(OLA["id"]))


async def test_an_hour_offline_is_caught_up_once(tmp_path: Path, bot: TelegramDouble) -> None:
    async with messenger_house(tmp_path / "home", bot=bot) as house:
        await house.link(house.house.admin, ADA)
        bot.says(ADA, "before")
        await house.told(ADA, "You said: before")
        bot.go_away()
        for at in range(5):
            bot.says(ADA, f"meanwhile {at}")
        conversation = await house.conversation(house.house.admin)
        await house.house.say(conversation, "from the page")
        bot.go_away(is_away=False)
        bot.says(ADA, "after")
        await house.told(ADA, "You said: after")
        texts = bot.texts(11)
        assert [
            sum(f"You said: {word}" in text for text in texts) for word in ("before", "from the page", "after")
        ] == [1] * 3
        assert [sum(f"You said: meanwhile {at}" in text for text in texts) for at in range(5)] == [1] * 5
