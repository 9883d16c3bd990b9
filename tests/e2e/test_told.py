"""What a person sees when something did not work, or when the page should follow what they type. Real daemon, real
browser.
"""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import Window
from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.person import ask, log_in, new_chat, tools_panel, type_and_send, wait_for_answer, wait_for_end
from tests.e2e.proxy import Proxy

pytestmark = pytest.mark.browser

KEPT = "Not sent yet. Cortex tries again by itself."


def set_rounds(page: Page, count: str) -> None:
    with tools_panel(page) as panel:
        panel.locator("[name=max_rounds]").fill(count)
    expect(page.locator("#r-n")).to_have_text(count)


def forgive(window: Window, *expected: str) -> None:
    """The browser tells of every request that failed; these tests make them fail."""
    window.complaints[:] = [line for line in window.complaints if not any(word in line for word in expected)]


def test_a_message_that_could_not_be_sent_is_told_and_kept(house: Daemon, ada: Caller, opens: Opens) -> None:
    with Proxy(house.port) as proxy:
        window = opens(proxy.origin, ada.token)
        page = new_chat(window)
        proxy.cut()
        type_and_send(page, "add tea to my shopping list")
        expect(page.locator(".mine")).to_contain_text("add tea to my shopping list")
        expect(page.locator(".mine")).to_contain_text(KEPT)
        proxy.mend()  # nobody presses anything: it goes again by itself
        expect(page.locator("details.tool.ok")).to_have_count(1)  # the stream has to come back too
        forgive(window, "net::ERR_", "htmx:", "fetching the script")


def test_what_waits_for_the_network_can_be_taken_back(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token)
    page = new_chat(window)
    ask(page, "hello")
    window.context.set_offline(True)
    type_and_send(page, "burn this")
    page.get_by_role("button", name="Take back").click()
    expect(page.locator("#text")).to_have_value("burn this")
    expect(page.locator("#text")).to_be_focused()
    expect(page.locator(".mine")).to_have_count(0)
    window.context.set_offline(False)
    expect(page.locator("#offline")).to_be_hidden()
    ask(page, "hello again")
    expect(page.locator(".turn.user")).to_have_count(2)
    forgive(window, "net::ERR_", "htmx:")


def test_sending_without_a_network_is_told_until_it_works(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token)
    page = new_chat(window)
    ask(page, "hello")
    window.context.set_offline(True)
    expect(page.locator("#offline")).to_be_visible()
    expect(page.locator(".side .health")).to_be_hidden()
    type_and_send(page, "add tea to my shopping list")
    expect(page.locator(".mine")).to_contain_text("Will be sent when you are back.")
    window.context.set_offline(False)
    expect(page.locator(".side .health")).to_be_visible()
    expect(page.locator("details.tool.ok")).to_have_count(1)
    expect(page.locator(".mine")).to_have_count(0)
    expect(page.locator("#text")).to_have_value("")
    forgive(window, "net::ERR_", "htmx:")


@pytest.mark.parametrize(
    ("status", "body", "line", "words", "kept"),
    [
        pytest.param(
            500,
            '<div class="say bad"><p>Something went wrong in Cortex.</p></div>',
            ".toast",
            "Something went wrong",
            "hello",
            id="ours",
        ),
        pytest.param(502, "<h1>502 Bad Gateway</h1>", ".mine", KEPT, "", id="a proxy's"),
    ],
)
def test_a_broken_answer_is_told(
    house: Daemon, ada: Caller, opens: Opens, status: int, body: str, line: str, words: str, kept: str
) -> None:
    window = opens(house.origin, ada.token)
    page = new_chat(window)
    page.route("**/messages", lambda route: route.fulfill(status=status, body=body, content_type="text/html"))
    type_and_send(page, "hello")
    expect(page.locator(line)).to_contain_text(words)
    expect(page.locator("#text")).to_have_value(kept)
    forgive(window, str(status), "htmx:")


def test_a_login_that_ended_leads_back_to_what_was_being_written(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin)
    log_in(window)
    page = new_chat(window)
    page.fill("#text", "half a thought")
    window.context.clear_cookies()
    page.press("#text", "Enter")
    page.wait_for_url("**/login?next=/c/new")
    page.fill("[name=name]", "Ada")
    page.fill("[name=password]", "tulip quarry lantern 97")
    page.click("main button.primary")
    expect(page.locator("#text")).to_have_value("half a thought")
    forgive(window, "401")


def test_a_refusal_that_no_part_of_the_page_shows_is_told(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token)
    page = new_chat(window)
    ask(page, "hello")
    ada.post(page.url.removeprefix(house.origin) + "/delete")
    page.locator("[data-again]").last.click()
    expect(page.locator(".toast")).to_contain_text(re.compile("no such|not there", re.IGNORECASE))
    forgive(window, "404", "htmx:sse")


def test_what_is_found_follows_what_is_typed_into_the_search(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = new_chat(opens(house.origin, ada.token))
    ask(page, "add quinces to my shopping list")
    page.goto("/search")
    page.locator("main [name=q]").press_sequentially("quinc")
    expect(page.locator("#found .hits li").first).to_contain_text("quinces")
    page.fill("main [name=q]", "")
    expect(page.locator("#found mark")).to_have_count(0)


def test_a_slow_search_does_not_keep_later_letters_waiting(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = new_chat(opens(house.origin, ada.token))
    ask(page, "add medlars to my shopping list")
    page.goto("/search")
    page.route("**/search?q=med", lambda _route: None)  # is never answered
    with page.expect_request("**/search?q=med"):
        page.fill("main [name=q]", "med")
    page.fill("main [name=q]", "medlars")
    expect(page.locator("#found .hits li").first).to_contain_text("medlars")


def test_rounds_set_back_to_the_default_count_again(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = new_chat(opens(house.origin, ada.token))
    ask(page, "hello")
    set_rounds(page, "1")
    ask(page, "hello again")
    set_rounds(page, "5")
    answer = ask(page, "add plums to my shopping list")
    expect(answer.locator("details.tool.ok")).to_have_count(1)
    page.reload()
    expect(page.locator("[name=max_rounds]")).to_have_value("5")


def test_rounds_of_a_quick_question_are_still_to_be_kept(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = new_chat(opens(house.origin, ada.token))
    ask(page, "hello")
    set_rounds(page, "3")
    page.fill("#text", "hello again")
    page.press("#text", "Alt+Enter")
    wait_for_answer(page, 2)
    wait_for_end(page)
    ask(page, "and hello")
    page.reload()
    expect(page.locator("[name=max_rounds]")).to_have_value("3")


def test_enter_sends_an_edited_message_too(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = new_chat(opens(house.origin, ada.token))
    ask(page, "hello")
    page.locator("[data-edit]").last.focus()
    page.keyboard.press("Enter")
    page.fill(".edit textarea", "add figs to my shopping list")
    page.keyboard.press("Shift+Enter")
    expect(page.locator(".edit textarea")).to_have_value("add figs to my shopping list\n")
    page.keyboard.press("Enter")
    expect(page.locator("details.tool.ok")).to_have_count(1)
