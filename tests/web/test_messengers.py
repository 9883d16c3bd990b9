"""The page on which people link their messengers."""

import asyncio
import re
from collections.abc import Iterator

import pytest

from cortex.app import Cortex
from cortex.services.accounts.accounts import CONFIRMED_FOR
from cortex.storage.accounts import LoginsRepository
from tests.services.messengers.messenger_house import ADA as PERSON
from tests.telegram import TelegramDouble
from tests.web.conftest import Browser
from web.security import COOKIE


@pytest.fixture
def bot() -> Iterator[TelegramDouble]:
    with TelegramDouble() as double:
        yield double


async def test_without_a_messenger_it_says_who_sets_one_up(bob: Browser) -> None:
    page = (await bob.get("/account/messengers")).text
    assert "an administrator does it under Integrations" in page
    assert 'name="code"' not in page
    assert "/admin/integrations" not in page


async def test_an_admin_finds_the_card_from_there(ada: Browser) -> None:
    assert 'class="btn primary" href="/admin/integrations"' in (await ada.get("/account/messengers")).text


async def code(house: Cortex, bot: TelegramDouble) -> str:
    """The code that the bot sends to whoever writes."""
    bot.says(PERSON, "hello")
    await house.messenger_door("telegram").receiver.receive(0)
    line = await asyncio.to_thread(bot.until, PERSON["id"], "enter the code")
    found = re.search(r"(\d{4} \d{4})", line["text"])
    assert found
    return found[1]


async def test_a_code_is_asked_about_linked_and_taken_away(house: Cortex, ada: Browser, bot: TelegramDouble) -> None:
    saved = await ada.post("/admin/integrations/telegram", **bot.form(), is_new="1")
    assert saved.status_code < 400
    assert "answers with a code" in (await ada.get("/account/messengers")).text

    wrong = await ada.post("/account/messengers", code="1234 5678")
    assert wrong.status_code == 422
    assert "This code is wrong or too old" in wrong.text

    given = await code(house, bot)
    asked = (await ada.post("/account/messengers", code=given)).text
    assert "Ada (@ada_at_home)" in asked
    assert f'value="{given}"' in asked
    await ada.post("/account/messengers/link", code=given)
    page = (await ada.get("/account/messengers")).text
    assert "Linked:" in page
    assert "Write to @our_cortex_bot there" in page
    remove = re.search(r'href="(/account/messengers/[^"]+/remove)"', page)
    assert remove
    assert "Remove the link with Ada (@ada_at_home)?" in (await ada.get(remove[1])).text
    await ada.post(remove[1])
    assert "answers with a code" in (await ada.get("/account/messengers")).text


async def test_linking_asks_for_the_password_and_is_told(house: Cortex, ada: Browser, bot: TelegramDouble) -> None:
    await ada.post("/admin/integrations/telegram", **bot.form(), is_new="1")
    given = await code(house, bot)
    view = await house.accounts.who(ada.http.cookies[COOKIE])
    assert view
    logins = house.runtime.db.repository(LoginsRepository, ada.user.id)
    await logins.confirm(view.login_id, house.runtime.clock())
    for path in ("/account/messengers", "/account/messengers/link"):
        assert (await ada.post(path, code=given)).headers["location"].startswith("/confirm")
    assert [one.link for one in await house.messenger_links.list(ada.user)] == [None]

    await logins.confirm(view.login_id, house.runtime.clock() + CONFIRMED_FOR)
    await ada.post("/account/messengers/link", code=given)
    notices = (await house.notices.page(ada.user.id)).notices
    assert [(one.row.title, one.row.is_tainted) for one in notices] == [("Telegram was linked", True)]
    assert [one.channel for one in notices[0].deliveries if one.channel == "telegram"] == []


async def test_a_crowd_of_strangers_is_told_of(house: Cortex, ada: Browser, bot: TelegramDouble) -> None:
    await ada.post("/admin/integrations/telegram", **bot.form(), is_new="1")
    for at in range(21):
        bot.says({**PERSON, "id": 1_000 + at}, "hello")
    await house.messenger_door("telegram").receiver.receive(0)
    assert "Many strangers write to it" in (await ada.get("/account/messengers")).text


async def test_a_link_ends_with_everything_else_that_lets_somebody_in(
    house: Cortex, ada: Browser, bot: TelegramDouble
) -> None:
    await ada.post("/admin/integrations/telegram", **bot.form(), is_new="1")
    await house.messenger_links.link(ada.user, await code(house, bot))
    assert "Ada (@ada_at_home)" in (await ada.get("/account/sign-in")).text
    await ada.post("/account/sign-out")
    assert [one.link for one in await house.messenger_links.list(ada.user)] == [None]
