"""Groups, where others read along: they hear what was asked there, and nothing of what its person does elsewhere."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from cortex.storage.messengers import MessengersRepository
from tests.made_pictures import drawn
from tests.scripted_rules import Use, rule
from tests.services.messengers.messenger_house import ADA, MessengerHouse, messenger_house
from tests.telegram import TelegramDouble

GROUP: dict[str, Any] = {"id": -1001, "type": "supergroup", "title": "Family"}
HERE = -1001
JOB = Use("cron_add", {"name": "rain", "when": "every day at 07:00", "prompt": "Will it rain?"})


@pytest.fixture
def bot() -> Iterator[TelegramDouble]:
    with TelegramDouble() as double:
        yield double


@pytest.fixture
async def house(tmp_path: Path, bot: TelegramDouble) -> AsyncIterator[MessengerHouse]:
    async with messenger_house(
        tmp_path / "home", rule("make a job", JOB, "It stands."), bot=bot, groups="-1001"
    ) as opened:
        yield opened


async def heard(house: MessengerHouse, text: str) -> dict[str, Any]:
    return await asyncio.to_thread(house.bot.until, HERE, text)


async def here(house: MessengerHouse) -> str:
    """The conversation that goes on in the group."""
    own = house.house.rows(MessengersRepository)
    link = (await own.links())[0]
    return next(one.conversation_id for one in await own.chats(link.id) if one.is_current and one.is_group)


async def test_what_is_asked_on_the_page_is_not_told_to_the_group(house: MessengerHouse) -> None:
    admin = house.house.admin
    await house.link(admin, ADA)
    house.bot.says(ADA, "@our_cortex_bot what is for dinner?", chat=GROUP)
    await heard(house, "You said: what is for dinner?")
    first = await here(house)
    assert (await house.cortex.conversations.get(admin, first)).title == "Group Family: others read this chat"

    await house.cortex.conversations.set_memory(admin, first, is_used=True)
    await house.house.say(first, "my secret is tulips")
    await house.cortex.chat.send_message(admin, first, "make a job about rain", mode="auto", role="orchestrator")
    await house.house.until(first, "approval", state="asked")
    house.bot.says(ADA, "/last@our_cortex_bot", chat=GROUP)
    house.bot.says(ADA, "@our_cortex_bot and tomorrow?", chat=GROUP)
    await heard(house, "You said: and tomorrow?")
    said = "\n".join(house.bot.texts(HERE))
    assert "tulips" not in said
    assert "rain" not in said
    assert said.count("You said: what is for dinner?") == 2
    assert await here(house) != first
    assert not any("tulips" in str(seen.body) for seen in house.model.log[-1:])
    assert not (await house.cortex.conversations.get(admin, await here(house))).uses_memory
    assert (await house.cortex.approvals.pending(admin))[0].notify_at is not None


async def test_memory_that_was_switched_on_is_off_in_the_group(house: MessengerHouse) -> None:
    admin = house.house.admin
    await house.link(admin, ADA)
    house.bot.says(ADA, "@our_cortex_bot one", chat=GROUP)
    await heard(house, "You said: one")
    await house.cortex.conversations.set_memory(admin, await here(house), is_used=True)
    house.bot.says(ADA, "@our_cortex_bot two", chat=GROUP)
    await heard(house, "You said: two")
    assert not (await house.cortex.conversations.get(admin, await here(house))).uses_memory


async def test_an_album_with_one_caption_comes_whole(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    for at, color in enumerate(("red", "blue")):
        house.bot.keeps(f"photo{at}", drawn("PNG", (40 + at, 20), color=color))
    for at, caption in ((0, ""), (1, "@our_cortex_bot what is this?")):
        photo = [{"file_id": f"photo{at}", "width": 90, "height": 90}]
        house.bot.says(ADA, photo=photo, media_group_id="a", caption=caption, chat=GROUP)
    await heard(house, "You said: what is this?")
    events = await house.house.events(await here(house), "message")
    assert len(events[0].payload["attachments"]) == 2


async def test_an_answer_stays_in_its_topic(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    house.bot.says(ADA, "@our_cortex_bot hello", chat=GROUP, message_thread_id=7, is_topic_message=True)
    answer = await heard(house, "You said: hello")
    assert answer["message_thread_id"] == 7
    house.bot.says(ADA, "@our_cortex_bot hello there", chat=GROUP)
    assert "message_thread_id" not in await heard(house, "You said: hello there")


async def test_a_press_in_a_group_is_answered_and_counts_for_nothing(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    house.bot.says(ADA, "make a job about rain")
    question = await house.told(ADA, "Will it rain?")
    press = house.bot.presses(ADA, {**question, "chat_id": HERE}, "Allow", kind="supergroup")
    said = await asyncio.to_thread(house.bot.until_answered, press)
    assert said["text"] == "This question is not for you."
    assert await house.cortex.approvals.pending(house.house.admin)


async def test_another_name_that_begins_alike_is_not_addressed(house: MessengerHouse) -> None:
    await house.link(house.house.admin, ADA)
    house.bot.says(ADA, "@our_cortex_bot2 hello", chat=GROUP)
    house.bot.says(ADA, "x@our_cortex_bot.org hello", chat=GROUP)
    house.bot.says(ADA, "@our_cortex_bot the only one", chat=GROUP)
    await heard(house, "You said: the only one")
    assert len(house.model.log) == 1
