"""Without a script: log in, send, read, approve, tick off. Forms and links only; a slow answer refreshes the page."""

import pytest
from playwright.sync_api import Page, expect

from cortex.services.content.notes import TEXT_CHARS_MAX
from tests.e2e.caller import PASSWORD, Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.person import allow_once, poll

pytestmark = pytest.mark.browser


def send(page: Page, text: str) -> None:
    page.fill("#text", text)
    page.click(".send:not(.stop)")


def wait_for(page: Page, what: str, count: int = 1) -> None:
    """Until it is there: while an answer is being written the page refreshes itself."""
    poll(lambda: page.locator(what).count() == count, every_s=0.2)


def test_the_main_job_needs_no_script(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = opens(house.origin, has_script=False).page
    page.goto("/login")
    page.fill("[name=name]", "Ada")
    page.fill("[name=password]", PASSWORD)
    page.click("main button.primary")
    page.goto("/c/new")
    send(page, "add milk and eggs to my shopping list")
    page.wait_for_url(lambda url: "/c/" in url and not url.endswith("/new"))
    wait_for(page, ".turn.bot .foot")
    expect(page.locator("details.tool .tn")).to_have_text(["task_create"] * 2)
    expect(page.locator("noscript meta")).to_have_count(0)  # nothing runs, nothing refreshes
    page.goto("/tasks")
    row = page.locator("li[id^=task-]", has_text="milk")
    expect(row).to_have_count(1)
    row.locator("form[action$=complete] button").click()
    expect(row).to_have_count(0)
    page.goto("/tasks?done=1")
    expect(row).to_have_count(1)
    page.fill("#new-title", "water the plants")
    page.click("form.add button")
    page.goto("/tasks")
    expect(page.locator("li[id^=task-]", has_text="water the plants")).to_have_count(1)


def test_a_question_is_answered_and_a_call_taken_back_without_script(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = opens(house.origin, ada.token, has_script=False).page
    page.goto("/c/new")
    send(page, "run `df -h` in the shell")
    wait_for(page, ".ask")
    allow_once(page)
    assert "/c/" in page.url
    wait_for(page, ".turn.bot .foot")
    expect(page.locator(".turn.bot .prose")).to_contain_text("Filesystem")
    send(page, "add a lantern to my shopping list")
    wait_for(page, ".turn.bot .foot", 2)
    page.locator(".deed-act button").last.click()
    assert "/c/" in page.url
    expect(page.locator("details.tool.undone")).to_have_count(1)


def test_a_note_may_be_as_long_as_it_says_in_any_script(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = opens(house.origin, ada.token, has_script=False).page
    ada.post("/notes", name="Harbour")
    page.goto("/notes/Harbour?edit=1")
    lines = ("\U0001f6a2" * 99 + "\n") * (TEXT_CHARS_MAX // 100)
    page.fill("#f-text", lines)
    page.click("main form button.primary")
    expect(page.locator("#toasts")).to_contain_text("Saved.")
    (file,) = house.home.glob("*/notes/Harbour.md")
    assert file.read_text(encoding="utf-8") == lines


@pytest.mark.full
def test_edit_rename_search_and_delete_work_as_pages(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = opens(house.origin, ada.token, has_script=False).page
    page.goto("/c/new")
    send(page, "what is on my wombat list?")
    wait_for(page, ".turn.bot .foot")
    chat = page.url
    page.locator("[data-edit]").click()
    page.fill("form.edit textarea", "what is on my numbat list?")
    page.click("form.edit button.primary")
    wait_for(page, ".turn.bot .foot")
    expect(page.locator(".turn.user")).to_have_count(1)
    expect(page.locator(".turn.user")).to_contain_text("numbat")
    page.goto(f"{chat}/rename")
    page.fill("main [name=title]", "Numbats and other friends")
    page.click("main form button.primary, main form button:not(.quiet)")
    page.goto(chat)
    expect(page.locator("#title")).to_have_text("Numbats and other friends")
    page.goto("/search?q=numbat")
    expect(page.locator("main a[href*='/c/']").first).to_be_visible()
    page.goto(f"{chat}/delete")
    page.click("main form.confirm button.danger")
    assert page.request.get(chat).status == 404
