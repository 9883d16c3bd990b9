"""Pictures that a tool gives go to the chat of the person for whom they were made, ahead of the answer."""

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from cortex.storage.messengers import MessengersRepository
from tests.hostile_mcp import PIXEL
from tests.mcp_house import McpHouse, listed
from tests.on_disk import folder_on_disk as folder_on_disk
from tests.scripted_rules import Use, rule
from tests.services.messengers.messenger_house import ADA, MessengerHouse, messenger_house
from tests.telegram import TelegramDouble

GROUP = {"id": -1001, "type": "supergroup", "title": "Family"}


@pytest.fixture
def bot() -> Iterator[TelegramDouble]:
    with TelegramDouble() as double:
        yield double


@pytest.fixture
async def house(tmp_path: Path, bot: TelegramDouble) -> AsyncIterator[MessengerHouse]:
    draw = rule("draw a dot", Use("shop_draw", {"do": "image"}), "Here is the dot.")
    async with messenger_house(tmp_path / "home", draw, bot=bot, groups="-1001") as opened:
        await McpHouse(opened.house, tmp_path / "shop").set_up(listed("draw", is_read=True))
        await opened.link(opened.house.admin, ADA)
        yield opened


async def test_a_picture_is_sent_ahead_of_the_answer(house: MessengerHouse) -> None:
    house.bot.says(ADA, "draw a dot")
    await house.told(ADA, "Here is the dot.")
    _, photo, line, _ = (one for one in house.bot.sent if one["chat_id"] == 11)
    assert (photo["text"], photo["photo"]) == ("[photo]", base64.b64decode(PIXEL))
    assert "✓" in line["text"]


async def test_one_that_is_no_photo_there_is_sent_as_a_file(house: MessengerHouse) -> None:
    house.bot.faults["sendPhoto"].append({"error_code": 400, "description": "Bad Request: PHOTO_INVALID_DIMENSIONS"})
    house.bot.says(ADA, "draw a dot")
    await house.told(ADA, "Here is the dot.")
    assert "[document]" in house.bot.texts(11)


@pytest.mark.parametrize(("cut", "pictures"), [("before", 0), ("after", 1)])
async def test_a_picture_of_which_nobody_knows_is_not_sent_twice(
    house: MessengerHouse, cut: str, pictures: int
) -> None:
    house.bot.cut["sendPhoto"].append(cut)
    house.bot.says(ADA, "draw a dot")
    await house.told(ADA, "Here is the dot.")
    assert house.bot.texts(11).count("[photo]") == pictures
    await house.told(ADA, "Cortex was interrupted while it sent a message.")


async def test_a_group_gets_none_that_was_made_on_the_page(house: MessengerHouse) -> None:
    admin = house.house.admin
    house.bot.says(ADA, "@our_cortex_bot hello", chat=GROUP)
    await asyncio.to_thread(house.bot.until, -1001, "You said: hello")
    own = house.cortex.runtime.db.repository(MessengersRepository, admin.id)
    chats = await own.chats((await own.links())[0].id)
    group = next(one.conversation_id for one in chats if one.is_group)
    await house.cortex.chat.send_message(admin, group, "draw a dot", mode="auto", role="orchestrator")
    await house.house.until(group, "part.end", text="Here is the dot.")
    house.bot.says(ADA, "@our_cortex_bot and now?", chat=GROUP)
    await asyncio.to_thread(house.bot.until, -1001, "You said: and now?")
    assert "[photo]" not in house.bot.texts(-1001)
    assert not any("dot" in text for text in house.bot.texts(-1001))
