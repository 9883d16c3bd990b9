"""A role of one's own in a real browser with the real daemon: made, talked in, deleted, missed, brought back."""

import pytest
from playwright.sync_api import expect

from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.person import ask, new_chat

pytestmark = pytest.mark.browser


def test_a_role_is_made_talked_in_deleted_and_missed_in_words(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token)
    page = window.page
    page.goto("/account/roles/new?source=orchestrator")
    expect(page.locator("h1")).to_have_text("Copy of orchestrator")
    page.fill("#f-name", "butler")
    page.fill("#f-prompt", "You serve this house and say so.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**/admin/roles/butler")
    expect(page.locator("#tools-kind")).to_contain_text("Its own list")

    new_chat(window)
    page.click("#tools")
    page.select_option("#plan select[name=role]", "butler")
    page.keyboard.press("Escape")
    ask(page, "add milk to my shopping list")
    place = page.url
    page.goto("/account/roles/butler")
    page.click("main a[href$='/delete']")
    dialog = page.locator("dialog[open] form.confirm")
    expect(dialog).to_contain_text("1 conversation uses it")
    expect(dialog.locator("li a")).to_have_count(1)
    dialog.locator("button.danger").click()
    expect(page.locator("#toasts")).to_contain_text("Deleted: butler")

    page.goto(place)
    expect(page.locator(".role-gone")).to_contain_text("The role “butler” no longer exists.")
    expect(page.locator("#log")).to_contain_text("add milk to my shopping list")
    page.fill("#text", "add eggs to my shopping list")
    page.keyboard.press("Enter")
    expect(page.locator("#log .fail")).to_contain_text("There is no role 'butler' any more. Choose another one: admin")
    page.select_option(".role-gone select", "chat")
    page.click(".role-gone button")
    expect(page.locator("#toasts")).to_contain_text("now uses the role Talk only")
    expect(page.locator(".role-gone")).to_have_count(0)

    page.goto("/account/roles")
    page.click("main form[action='/account/roles/butler/restore'] button")
    page.wait_for_url("**/account/roles/butler")
    expect(page.locator("#toasts")).to_contain_text("Restored: butler")


def test_without_a_script_a_role_is_made_deleted_with_what_uses_it_and_brought_back(
    house: Daemon, ada: Caller, opens: Opens
) -> None:
    page = opens(house.origin, ada.token, has_script=False).page
    page.goto("/account/roles/new")
    page.fill("#f-name", "poet")
    page.fill("#f-prompt", "Answer in verse.")
    page.click("main form.form button.primary")
    page.wait_for_url("**/admin/roles/poet")
    page.goto("/account/roles/poet")
    page.click("main a[href$='/delete']")
    page.wait_for_url("**/account/roles/poet/delete")
    expect(page.locator("main form.confirm")).to_contain_text("No conversation or job uses it.")
    page.click("main form.confirm button.danger")
    page.wait_for_url("**/account**")
    page.click("main form[action='/account/roles/poet/restore'] button")
    page.wait_for_url("**/account/roles/poet")
    expect(page.locator("main")).to_contain_text("No tools: this role only answers in text")
