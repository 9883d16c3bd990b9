"""A newcomer links Telegram from the page alone; and how the page holds at a desk and on a phone."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.e2e.browser import Window, axe, overflow_px
from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import SMALL, go
from tests.telegram import TOKEN, TelegramDouble, person

pytestmark = pytest.mark.browser

HERE = "/account/messengers"
ADA = person(11, "Ada")


@pytest.fixture(scope="module")
def bot() -> Iterator[TelegramDouble]:
    with TelegramDouble() as double:
        yield double


@pytest.fixture(scope="module")
def filled(ada: Caller, bot: TelegramDouble) -> Caller:
    """Ada, who gave the bot's token on its card."""
    ada.post("/admin/integrations/telegram", token=TOKEN, address=bot.address, is_new="1")
    return ada


def code_of(bot: TelegramDouble) -> str:
    bot.says(ADA, "hello")
    found = re.search(r"\d{4} \d{4}", bot.until(11, "enter the code")["text"])
    assert found
    return found[0]


@pytest.mark.parametrize("is_phone", [False, True], ids=["desk", "phone"])
def test_telegram_is_linked_from_the_page_alone(
    house: Daemon, filled: Caller, opens: Opens, bot: TelegramDouble, is_phone: bool
) -> None:
    window = opens(house.origin, filled.token, is_phone=is_phone, is_dark=is_phone)
    page = go(window, HERE)
    expect(page.get_by_text("answers with a code of eight digits")).to_be_visible()
    held(window, is_phone=is_phone)
    if is_phone:
        return
    page.get_by_label("Code").fill(code_of(bot))
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_text("Ada (@ada_at_home)")).to_be_visible()
    assert axe(page) == []
    page.get_by_role("button", name="Link it").click()
    expect(page.get_by_text("it is the same chat")).to_be_visible()
    held(window, is_phone=False)
    bot.says(ADA, "what can you do")
    bot.until_more(11, 1)
    page.get_by_role("link", name="Remove").click()
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("answers with a code of eight digits")).to_be_visible()


def held(window: Window, *, is_phone: bool) -> None:
    page = window.page
    assert axe(page) == []
    assert overflow_px(page) <= 0
    assert page.evaluate(SMALL, 40 if is_phone else 24) == []
    assert window.complaints == []
