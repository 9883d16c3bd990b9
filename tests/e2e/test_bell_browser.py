"""The bell's panel in a browser: opened, answered, closed, at both widths, by keyboard and without a script."""

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import LOOKS, axe_source
from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon

pytestmark = pytest.mark.browser


def opened(page: Page, *, is_phone: bool = False) -> None:
    page.locator(".bell-m" if is_phone else "#bell").click()
    expect(page.locator("#bell-panel")).to_be_visible()


def pictured(page: Page, name: str) -> None:
    """Keep a picture where somebody looks at them."""
    if folder := os.environ.get("CORTEX_TEST_PICTURES"):
        page.screenshot(path=Path(folder) / f"{name}.png")


def test_a_reminder_is_done_in_the_panel_and_the_focus_goes_back_to_the_bell(
    house: Daemon, ada: Caller, opens: Opens
) -> None:
    ada.post("/notifications/read", upto="2099-01-01T00:00:00+00:00")
    window = opens(house.origin, ada.token)
    page = window.page
    page.goto("/tasks")
    page.locator("#bell").focus()
    page.keyboard.press("Enter")
    panel = page.locator("#bell-panel")
    expect(panel).to_be_visible()
    ada.post("/reminders", words="fetch the parcel in 3 seconds")
    line = panel.locator("li", has_text="fetch the parcel")
    expect(line).to_contain_text("new")  # it comes while the panel is open
    line.get_by_role("button", name="Done: fetch the parcel").click()
    expect(line.get_by_role("button", name="Done: fetch the parcel")).to_have_count(0)
    expect(page.locator("#bell-n .badge")).to_have_count(0)
    expect(panel).to_be_visible()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(page.locator("#bell")).to_be_focused()
    page.locator("#bell").click()
    expect(panel).to_be_visible()
    page.locator("#bell").click()  # a second press closes it
    expect(panel).to_be_hidden()
    opened(page)
    panel.get_by_role("link", name="All notifications").click()
    page.wait_for_url("**/notifications")
    assert not window.complaints


@LOOKS
def test_the_panel_is_sound_at_both_widths_and_in_both_themes(
    house: Daemon, ada: Caller, opens: Opens, is_phone: bool, is_dark: bool
) -> None:
    ada.post("/reminders", words="call the plumber about the tap that drips in the kitchen in 3 seconds")
    window = opens(house.origin, ada.token, is_phone=is_phone, is_dark=is_dark, bypass_csp=True)
    page = window.page
    page.goto("/tasks")
    expect(page).to_have_title(re.compile(r"^\(1\) "))
    opened(page, is_phone=is_phone)
    pictured(page, f"bell-{'phone' if is_phone else 'desk'}-{'dark' if is_dark else 'light'}")
    page.evaluate(axe_source())
    found = page.evaluate(
        "async () => (await axe.run('#bell-panel')).violations.map(one => one.id + one.nodes[0].html)"
    )
    assert found == []
    box = page.locator("#bell-panel").bounding_box()
    assert box
    assert (box["x"], box["width"]) == (0, 390) if is_phone else box["x"] >= 0
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= page.evaluate("() => innerHeight")
    ada.post("/notifications/read", upto="2099-01-01T00:00:00+00:00")


def test_without_a_script_the_bell_leads_to_the_list(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = opens(house.origin, ada.token, has_script=False).page
    page.goto("/tasks")
    page.locator("#bell").click()
    page.wait_for_url("**/notifications")
