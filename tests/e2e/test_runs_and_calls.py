"""A tool worded and called by hand, and the list of runs, in Chromium with the real daemon."""

import pytest
from playwright.sync_api import expect

from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import go
from tests.e2e.person import ask, new_chat, poll

pytestmark = pytest.mark.browser

WORDS = "Put a zorblax on the frobnication pile."
TOOL = "/admin/tools/task_create"


def test_a_description_shows_its_effect_is_sent_and_is_taken_back(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token)
    page = go(window, TOOL)
    page.fill("#f-description", WORDS)
    page.click("button[value=effect]")
    expect(page.locator("#effect")).to_contain_text("Tokens in full")
    expect(page.locator("#f-description")).to_have_value(WORDS)
    page.click("button[value=save]")
    expect(page.locator("#description .tag.own")).to_have_text("changed here")
    ask(new_chat(window), "add milk to my shopping list")
    page.get_by_role("link", name="More for this answer").last.click()
    page.get_by_role("link", name="Trace of this answer").click()
    expect(page.locator("#round-1")).to_be_visible()
    page.evaluate("() => document.querySelectorAll('main details').forEach(one => one.open = true)")
    expect(page.locator("#round-1")).to_contain_text(WORDS)
    go(window, TOOL).get_by_role("button", name="Restore default: description").click()
    expect(page.locator("#description .tag.own")).to_have_count(0)
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator("#f-description")).to_have_value(WORDS)
    page.get_by_role("button", name="Restore default: description").click()


def test_a_call_by_hand_asks_on_its_card_and_shows_its_result(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token)
    page = go(window, TOOL)
    page.check("[name=asks_first]")
    page.locator("main form.form button.primary").first.click()
    page.get_by_role("link", name="Try a call").click()
    page.fill("#f-title", "Oil the gate")
    page.get_by_role("button", name="Call").click()
    expect(page.locator("#tried .ask")).to_be_visible()
    page.locator("#tried .ask [value=once]").click()
    expect(page.locator("#tried .facts")).to_contain_text("done")
    expect(page.locator("#tried .ask")).to_have_count(0)
    expect(page.locator("#f-title")).to_have_value("Oil the gate")
    page.locator("#tried details.tool summary").click()
    page.locator("#tried").get_by_role("button", name="Undo").click()
    poll(lambda: "Oil the gate" not in ada.get("/tasks").text)
    go(window, TOOL).get_by_role("button", name="Restore default: ask first").click()


def test_a_run_that_goes_on_ends_before_ones_eyes(house: Daemon, ada: Caller, opens: Opens) -> None:
    asking = f"/c/{ada.send('new', 'run `df -h` in the shell')}"
    poll(lambda: 'class="ask ' in ada.get(asking).text)
    window = opens(house.origin, ada.token)
    page = go(window, "/runs")
    line = page.locator("tr", has_text="df -h")
    expect(line.locator(".pill")).to_have_text("needs approval")
    page.locator("#run-tool").focus()
    ada.post(f"{asking}/stop")
    expect(line.locator(".pill")).to_have_text("stopped")
    expect(page.locator("#run-tool")).to_be_focused()
    page.get_by_role("link", name="Stopped", exact=True).click()
    expect(page.locator("table.runs tbody tr")).to_have_count(1)
    page.locator("table.runs a").first.click()
    expect(page.locator("h1")).to_have_text("Trace")


def test_calls_and_runs_work_without_a_script(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token, has_script=False)
    page = go(window, f"{TOOL}/call")
    page.fill("#f-title", "Paint the shed")
    page.get_by_role("button", name="Call").click()
    expect(page.locator("#tried .facts")).to_contain_text("done")
    page.get_by_role("link", name="Trace").click()
    expect(page.locator("main")).to_contain_text("Called manually")
    page = go(window, "/runs")
    page.fill("#run-tool", "task_create")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("table.runs")).to_contain_text("Paint the shed")
