"""Reminders and background agents in Chromium with the real daemon: set in a chat, seen when due, heard."""

import re
import time

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import axe
from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import go
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.browser

MINUTE_MS = 60_000


def test_one_that_is_set_in_a_chat_fires_while_the_page_is_open_and_is_heard(
    house: Daemon, ada: Caller, opens: Opens
) -> None:
    page = go(opens(house.origin, ada.token), "/c/new")
    page.fill("#text", "remind me in 10 seconds to take the bread out")
    page.keyboard.press("Enter")
    expect(page.locator("details.tool .tn")).to_have_text("reminders_add")
    page.locator(".foot").first.wait_for()
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("g")
    page.keyboard.press("r")
    page.wait_for_url("**/reminders")
    due = page.get_by_role("region", name="Now")
    expect(due).to_contain_text(re.compile("bread"))
    expect(page.locator("#bell-n")).to_contain_text("1")
    due.get_by_role("button", name="Done").click()
    expect(due).to_have_count(0)
    expect(page.get_by_role("table", name="Past reminders")).to_contain_text("bread")
    expect(page.locator("#bell-n")).not_to_contain_text("1")


@pytest.mark.parametrize("is_phone", [False, True], ids=["desk", "phone"])
def test_one_that_comes_due_says_its_words_on_whatever_page_is_open(
    house: Daemon, ada: Caller, opens: Opens, is_phone: bool
) -> None:
    page = go(opens(house.origin, ada.token, is_phone=is_phone), "/tasks")
    expect(page.locator("#toasts .toast")).to_have_count(0)
    ada.post("/reminders", words=f"{'take the bread out of the oven, ' * 6} please in 3 seconds")
    toast = page.locator("#toasts .toast")
    expect(toast).to_contain_text("take the bread out")
    box, wide = toast.bounding_box(), page.evaluate("innerWidth")
    assert box
    assert (box["x"] >= 0, box["x"] + box["width"] <= wide) == (True, True)
    assert axe(page) == []
    toast.get_by_role("button", name="Done").click()
    expect(toast).to_have_count(0)
    expect(page.locator("#bell-n .badge")).to_have_count(0)
    assert page.url.endswith("/tasks")
    ada.post("/reminders", words="air the room in 3 seconds")
    toast.get_by_role("button", name="Reminder: air the room", exact=True).click()
    page.wait_for_url("**/reminders")
    page.get_by_role("button", name="Done: air the room").click()
    expect(page.locator("#bell-n .badge")).to_have_count(0)


def test_words_are_read_while_they_are_typed_and_a_removal_is_taken_back(
    house: Daemon, ada: Caller, opens: Opens
) -> None:
    page = go(opens(house.origin, ada.token), "/reminders")
    page.get_by_label("New reminder").fill("water the plants every friday at 18:00")
    expect(page.locator("#reading")).to_contain_text("water the plants, every Friday at 18:00")
    page.get_by_role("button", name="Add").click()
    expect(page.locator("#toasts")).to_contain_text("Will remind: water the plants, every Friday at 18:00")
    expect(page.get_by_label("New reminder")).to_be_focused()
    row = page.get_by_role("table", name="Repeating reminders").get_by_role("row").last
    row.get_by_role("button", name="Remove: water the plants").click()
    expect(page.get_by_role("table", name="Repeating reminders")).to_have_count(0)
    page.locator("#toasts").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("table", name="Repeating reminders")).to_contain_text("water the plants")


def test_it_is_said_changed_and_removed_without_javascript(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = go(opens(house.origin, ada.token, has_script=False), "/reminders")
    page.get_by_label("New reminder").fill("call mum tomorrow at 9")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#reading")).to_contain_text("call mum, once on")
    page.get_by_role("button", name="Add").click()
    page.get_by_role("link", name="call mum").click()
    page.get_by_label("When").fill("tomorrow at 10")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("table", name="Next reminders")).to_contain_text("10:00")
    page.get_by_role("button", name="Remove: call mum").click()
    expect(page.get_by_role("table", name="Next reminders")).to_have_count(0)


def more_than(page: Page, asked: list[str], count: int) -> None:
    """Wait until more than so many requests have been heard; they come in while playwright waits."""
    deadline_s = time.monotonic() + PATIENCE_S
    while len(asked) <= count:
        assert time.monotonic() < deadline_s, "nothing more was asked"
        page.wait_for_timeout(50)


def sent(page: Page, asked: list[str]) -> int:
    """How many requests have gone out, those on their way to here included: one more comes in after them."""
    with page.expect_request("**/health*"):
        page.evaluate("() => { fetch('/health'); }")
    return len(asked)


def test_an_agents_card_asks_only_while_somebody_looks(daemon: Daemon, opens: Opens) -> None:
    daemon.set(offline_delay_ms=900)
    daemon.start()
    with Caller(daemon) as caller:
        window = opens(daemon.origin, caller.set_up().token)
        window.page.clock.install()
        page = go(window, "/c/new")
        asked = list[str]()
        page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/card") else None)
        page.fill("#text", "start a background agent that looks up what the weather is like")
        page.keyboard.press("Enter")
        card = page.get_by_role("group", name="Background agent")
        expect(card).to_contain_text("working in the background")
        more_than(page, asked, 1)
        page.evaluate("Object.defineProperty(document, 'hidden', {configurable: true, get: () => true})")
        seen = sent(page, asked)
        page.clock.fast_forward(MINUTE_MS)
        assert sent(page, asked) == seen
        page.evaluate("delete document.hidden")
        more_than(page, asked, seen)
        card.get_by_role("button", name="Stop the agent").click()
        expect(card).to_contain_text("stopped")
        expect(page.locator(".turn.bot").last).to_contain_text("was stopped before it was done")
        ended = sent(page, asked)
        page.clock.fast_forward(MINUTE_MS)
        assert sent(page, asked) == ended


def test_a_background_agent_shows_how_far_it_is_and_brings_its_result(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = go(opens(house.origin, ada.token), "/c/new")
    page.fill("#text", "start a background agent that looks up what the weather is like")
    page.keyboard.press("Enter")
    card = page.get_by_role("group", name="Background agent")
    expect(card).to_contain_text("weather")
    expect(card).to_contain_text("done")
    expect(card.get_by_role("button")).to_have_count(0)
    found = page.locator(".turn.user.found")
    expect(found).to_contain_text("A background agent has ended")
    page.locator(".turn.bot .foot").nth(1).wait_for()
    found.locator("summary").click()
    found.get_by_role("link", name="How it worked").click()
    expect(page.locator(".said")).to_contain_text("weather")
    page.go_back()
    expect(page.locator(".turn.user.found")).to_have_count(1)
