"""A skill from the page to the answer, in a real browser with the real daemon: write, try, ask, read, take back."""

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.person import ask, new_chat, said

pytestmark = pytest.mark.browser

TEXT = """---
title: Christening a ferry
description: How our harbour names and launches a ferry
phrases: [launch a ferry]
---

Break the bottle on the port side, never before noon.
"""


def test_a_skill_written_on_the_page_is_read_and_used_in_the_answer(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token)
    page = window.page
    page.goto("/skills")
    expect(page.locator("main")).to_contain_text("No skills yet.")
    page.fill("#f-title", "Christening a ferry")
    page.fill("#f-description", "How our harbour names and launches a ferry")
    page.keyboard.press("Enter")
    page.wait_for_url("**/skills/christening-a-ferry")

    page.fill("#f-text", TEXT)
    page.fill("#f-messages", "please launch a ferry for us\nadd milk to my shopping list")
    rows = page.locator("#tried li")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text(re.compile(r'you wrote "launch a ferry".*shown', re.DOTALL))
    expect(rows.nth(1)).to_contain_text("not shown")
    page.fill("#f-text", TEXT.replace("title:", "titel:"))
    expect(page.locator("#tried")).to_contain_text("unknown key 'titel'")
    page.fill("#f-text", TEXT)
    expect(rows).to_have_count(2)
    page.click("main form#skill button.primary")
    expect(page.locator("#toasts")).to_contain_text("Saved.")

    new_chat(window)
    answer = ask(page, "read the skill `christening-a-ferry`, then help me launch a ferry")
    expect(answer.locator("details.tool .tn")).to_have_text("skill_read")
    assert "port side, never before noon" in said(answer)
    page.locator(".foot .whyb").click()
    expect(page.locator("#why-b")).to_contain_text("Christening a ferry")
    expect(page.locator("#why-b")).to_contain_text('you wrote "launch a ferry"')


def test_without_a_script_a_skill_is_written_tried_deleted_and_brought_back(
    house: Daemon, ada: Caller, opens: Opens
) -> None:
    page = opens(house.origin, ada.token, has_script=False).page
    page.goto("/skills")
    page.fill("#f-title", "Tying a bowline")
    page.fill("#f-description", "The knot for the dinghy")
    page.click("main form.form button.primary")
    expect(page).to_have_url(re.compile("/skills/tying-a-bowline$"))
    page.fill("#f-messages", "which knot for the dinghy")
    page.click("main button[formaction]")
    expect(page.locator("#tried li")).to_contain_text("shown")
    page.fill("#f-to", "Bowline")
    page.click("main form[action$=rename] button")
    expect(page).to_have_url(re.compile("/skills/bowline$"))
    page.click("main button[form=delete]")
    expect(page.locator("main")).not_to_contain_text("Tying a bowline")
    page.click("#toasts form button")
    expect(page.locator("#f-text")).to_have_value(re.compile("Tying a bowline"))
