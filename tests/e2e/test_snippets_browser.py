"""Snippets in the composer: `/`, a choice by keys, Tab through what is to be filled in; nothing is sent by itself."""

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import LOOKS, axe_source
from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon

pytestmark = pytest.mark.browser


def write(page: Page, name: str, words: str) -> None:
    page.goto("/snippets")
    page.fill("[name=name]", name)
    page.fill("[name=text]", words)
    page.locator("form[action='/snippets'] .primary").click()
    expect(page.locator("main code").first).to_be_visible()


def test_a_snippet_is_chosen_by_keys_and_its_gaps_are_filled_in_by_tab(
    house: Daemon, ada: Caller, opens: Opens
) -> None:
    page = opens(house.origin, ada.token).page
    write(page, "bins", "Remind me {evening} to take the {colour} bin out")
    page.goto("/c/new")
    box = page.locator("#text")
    box.press_sequentially("/bi")
    expect(page.locator("#snip [role=option]").first).to_have_attribute("aria-selected", "true")
    box.press("Enter")
    expect(box).to_have_value("Remind me {evening} to take the {colour} bin out")
    page.keyboard.type("tonight")
    page.keyboard.press("Tab")
    page.keyboard.type("green")
    expect(box).to_have_value("Remind me tonight to take the green bin out")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    expect(page.locator(".turn")).to_have_count(0)


@pytest.mark.full
def test_escape_leaves_what_was_typed_and_the_last_line_makes_a_new_one(
    house: Daemon, ada: Caller, opens: Opens
) -> None:
    page = opens(house.origin, ada.token).page
    page.goto("/c/new")
    box = page.locator("#text")
    box.press_sequentially("/zz")
    expect(page.locator("#snip")).to_be_visible()
    box.press("Escape")
    expect(page.locator("#snip")).to_be_hidden()
    expect(box).to_have_value("/zz")
    box.press_sequentially("q")
    expect(page.locator("#snip")).to_be_visible()
    box.press("ArrowUp")
    box.press("Enter")
    page.wait_for_url("**/snippets#new")


@pytest.mark.full
@LOOKS
def test_the_list_is_sound(house: Daemon, ada: Caller, opens: Opens, is_phone: bool, is_dark: bool) -> None:
    page = opens(house.origin, ada.token, is_phone=is_phone, is_dark=is_dark, bypass_csp=True).page
    write(page, f"borrow-{is_phone}-{is_dark}", "Write a kind note: may we borrow the {thing}?")
    page.goto("/c/new")
    page.locator("#text").press_sequentially("/borrow")
    expect(page.locator("#snip [role=option]").first).to_contain_text("borrow-")
    page.evaluate(axe_source())
    found = page.evaluate("async () => (await axe.run('.dock')).violations.map(one => one.id + one.nodes[0].html)")
    assert found == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator("#snip [role=option]").first.click()
    expect(page.locator("#text")).to_have_value("Write a kind note: may we borrow the {thing}?")
