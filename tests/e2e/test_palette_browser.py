"""The palette in a browser: by keyboard alone, on a phone, without a script, while Cortex is away."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import LOOKS, axe_source
from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.person import ask, new_chat

pytestmark = pytest.mark.browser


def opened(page: Page) -> None:
    page.keyboard.press("Control+k")
    expect(page.locator("dialog.pal")).to_be_visible()
    expect(page.locator(".pal [role=option]").first).to_be_visible()


def test_ctrl_k_goes_to_a_chat_and_back_to_the_words_that_were_being_written(
    house: Daemon, ada: Caller, opens: Opens
) -> None:
    window = opens(house.origin, ada.token)
    page = new_chat(window)
    ask(page, "add medlars to my shopping list")
    chat = page.url
    page.goto("/c/new")
    page.fill("#text", "half a sentence")
    opened(page)
    page.keyboard.press("Escape")
    expect(page.locator("#text")).to_be_focused()
    expect(page.locator("#text")).to_have_value("half a sentence")
    opened(page)
    page.keyboard.type("medlar")
    page.keyboard.press("Enter")  # before the lines for it are there
    page.wait_for_url(lambda url: url.startswith(chat) or "/tasks/" in url)
    assert not window.complaints


@pytest.mark.full
def test_arrows_choose_and_the_field_says_which(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = opens(house.origin, ada.token).page
    page.goto("/tasks")
    opened(page)
    page.keyboard.type(">")
    expect(page.locator(".pal [role=option]")).to_have_count(page.locator(".pal [role=group] [role=option]").count())
    field, lines = page.locator(".pal [role=combobox]"), page.locator(".pal [role=option]")
    expect(page.locator(".pal [role=group]")).to_have_count(1)
    expect(field).to_have_attribute("aria-activedescendant", str(lines.first.get_attribute("id")))
    page.keyboard.press("ArrowDown")
    expect(lines.nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(lines.last).to_have_attribute("aria-selected", "true")
    expect(field).to_be_focused()
    page.keyboard.press("Control+k")
    expect(page.locator("dialog.pal")).to_be_hidden()


@pytest.mark.full
def test_a_question_goes_to_cortex_in_a_chat_of_its_own(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = opens(house.origin, ada.token).page
    page.goto("/tasks")
    opened(page)
    page.keyboard.type("?hello there")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/c/[0-9a-f-]{8,}"))
    expect(page.locator(".turn.user .said")).to_have_text("hello there")


@pytest.mark.full
@LOOKS
def test_it_is_sound_at_both_widths_and_in_both_themes(
    house: Daemon, ada: Caller, opens: Opens, is_phone: bool, is_dark: bool
) -> None:
    window = opens(house.origin, ada.token, is_phone=is_phone, is_dark=is_dark, bypass_csp=True)
    page = window.page
    page.goto("/tasks")
    opened(page)
    page.keyboard.type("re")
    expect(page.locator(".pal mark").first).to_be_visible()
    page.evaluate(axe_source())
    found = page.evaluate("async () => (await axe.run('dialog.pal')).violations.map(one => one.id + one.nodes[0].html)")
    assert found == []
    box = page.locator("dialog.pal").bounding_box()
    assert box
    assert not is_phone or (box["width"], box["x"]) == (390, 0)
    expect(page.locator(".pal").get_by_role("button", name="Close")).to_be_visible()


@pytest.mark.full
def test_without_cortex_it_says_so(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token)
    page = window.page
    page.goto("/tasks")
    opened(page)
    page.route("**/palette?*", lambda route: route.abort())
    page.keyboard.type("tasks")
    expect(page.locator(".pal-l")).to_contain_text("cannot be reached")
    window.complaints.clear()  # Chromium's, of the request that failed
    page.unroute("**/palette?*")
    page.keyboard.press("Backspace")
    expect(page.locator(".pal [role=option]").first).to_be_visible()
