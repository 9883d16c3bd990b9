"""Streams in a real browser with the real daemon: reloads, stops, cut lines, restarts, several windows. Nothing is lost
and nothing is doubled.
"""

from collections.abc import Iterator
from functools import partial

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.e2e.browser import Window, open_window
from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.person import (
    ask,
    conversation_of,
    new_chat,
    poll,
    said,
    same,
    same_after_reload,
    send,
    tab,
    type_and_send,
    wait_for_answer,
    wait_for_end,
)
from tests.e2e.proxy import Proxy

pytestmark = pytest.mark.browser

LONG = "tell me who you are"  # no tool fits: the offline model introduces itself, some 80 words
HIDING = """Object.defineProperty(document, 'hidden', { get: () => window.isHidden ?? false });
window.hide = is => { window.isHidden = is; document.dispatchEvent(new Event('visibilitychange')); }"""
SHELL = "run `df -h` in the shell"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon whose model takes its time: some four seconds for the long answer."""
    made = Daemon(tmp_path_factory.mktemp("house") / "home", delay_ms=50)
    made.start()
    yield made
    made.close()


@pytest.fixture(scope="module")
def whole(house: Daemon, ada: Caller, browser: Browser) -> str:
    """The long answer as it stands when nothing disturbs it."""
    window = open_window(browser, house.origin)
    window.context.add_cookies([{"name": "cortex", "value": ada.token, "url": house.origin}])
    found = words(ask(new_chat(window), LONG))
    window.context.close()
    return found


def words(answer: Locator) -> str:
    return " ".join(said(answer).split())


def begins_with(answer: Locator, before: str) -> bool:
    return words(answer).startswith(before)


def some_words(answer: Locator) -> str:
    """What stands there when the answer is well under way and not yet at its end."""
    poll(lambda: len(words(answer)) > 80)
    assert answer.locator(".foot").count() == 0, "the answer was over before the test could look"
    return words(answer)


def forgive_lost_requests(window: Window) -> None:
    """The browser tells of every request that it lost; the tests that cut the line expect it."""
    expected = ("net::ERR_", "htmx:sse:error")
    window.complaints[:] = [line for line in window.complaints if not any(word in line for word in expected)]


def test_a_reload_in_the_middle_of_an_answer_goes_on_with_it(
    house: Daemon, ada: Caller, opens: Opens, whole: str
) -> None:
    page = new_chat(opens(house.origin, ada.token))
    answer = send(page, LONG)
    for _ in range(2):
        before = some_words(answer)
        page.reload()
        poll(partial(begins_with, answer, before))  # its last words come by the stream
        assert whole.startswith(words(answer))
    wait_for_end(page)
    assert words(answer) == whole
    expect(page.locator(".turn")).to_have_count(2)
    same_after_reload(page)


def test_stop_keeps_what_was_said_and_the_next_message_works(
    house: Daemon, ada: Caller, opens: Opens, whole: str
) -> None:
    page = new_chat(opens(house.origin, ada.token))
    answer = send(page, LONG)
    before = some_words(answer)
    page.click(".send.stop")
    wait_for_end(page)
    expect(answer.locator(".end")).to_have_text("Stopped.")
    kept = words(answer)
    assert kept.startswith(before)
    assert whole.startswith(kept.partition("[")[0])  # a link that was cut off stays as its signs
    assert kept != whole
    expect(answer.locator(".md.partial")).to_have_count(1)
    same_after_reload(page)
    answer = send(page, LONG)
    some_words(answer)
    page.keyboard.press("Escape")
    wait_for_end(page)
    expect(answer.locator(".end")).to_have_text("Stopped.")
    expect(ask(page, "add a spoon to my shopping list").locator("details.tool.ok")).to_have_count(1)
    same_after_reload(page)


def test_a_message_sent_meanwhile_waits_its_turn_and_is_answered(
    house: Daemon, ada: Caller, opens: Opens, whole: str
) -> None:
    page = new_chat(opens(house.origin, ada.token))
    answer = send(page, LONG)
    some_words(answer)
    type_and_send(page, "add a kettle to my shopping list")
    expect(page.locator(".queued")).to_have_count(1)
    wait_for_answer(page, 2)
    wait_for_end(page)
    assert words(page.locator(".turn.bot").first) == whole
    expect(page.locator(".turn.bot").last.locator("details.tool.ok")).to_have_count(1)
    expect(page.locator(".turn.user")).to_have_count(2)
    same_after_reload(page)


def test_a_cut_line_comes_back_without_a_lost_or_doubled_event(
    house: Daemon, ada: Caller, opens: Opens, whole: str
) -> None:
    with Proxy(house.port) as proxy:
        window = opens(proxy.origin, ada.token)
        page = new_chat(window)
        answer = send(page, LONG)
        before = some_words(answer)
        proxy.cut()
        expect(page.locator("#offline")).to_be_visible()
        assert words(answer).startswith(before)
        proxy.mend()
        expect(page.locator("#offline")).to_be_hidden()
        wait_for_end(page)
        assert words(answer) == whole
        same_after_reload(page)
        answer = send(page, LONG)
        some_words(answer)
        proxy.cut()
        poll(lambda: 'class="working"' not in ada.get(f"/c/{conversation_of(page)}").text)
        proxy.mend()  # the end of the answer came while nobody could see it
        wait_for_end(page)
        expect(page.locator(".turn.bot")).to_have_count(2)
        same_after_reload(page)
        forgive_lost_requests(window)


@pytest.mark.parametrize("end", ["kill9", pytest.param("stop", marks=pytest.mark.full)])
def test_an_answer_outlives_the_daemon(daemon: Daemon, opens: Opens, whole: str, end: str) -> None:
    daemon.set(offline_delay_ms=50)
    daemon.start()
    with Caller(daemon) as caller:
        window = opens(daemon.origin, caller.set_up().token)
    page = new_chat(window)
    answer = send(page, LONG)
    some_words(answer)
    getattr(daemon, end)()
    expect(page.locator("#offline")).to_be_visible()
    daemon.start()
    expect(page.locator("#offline")).to_be_hidden()
    wait_for_end(page)
    assert words(answer) == whole
    expect(page.locator(".turn")).to_have_count(2)
    same_after_reload(page)
    forgive_lost_requests(window)


def test_the_daemon_ends_quietly_while_a_page_is_open(daemon: Daemon, opens: Opens) -> None:
    daemon.start()
    with Caller(daemon) as caller:
        window = opens(daemon.origin, caller.set_up().token)
    page = new_chat(window)
    ask(page, "hello")
    daemon.stop()
    assert "shutting down" in daemon.log
    assert "Traceback" not in daemon.log
    assert "exceeded" not in daemon.log
    expect(page.locator("#offline")).to_be_visible()
    forgive_lost_requests(window)


def test_two_windows_show_the_same(house: Daemon, ada: Caller, opens: Opens) -> None:
    left, right = opens(house.origin, ada.token), opens(house.origin, ada.token)
    page = new_chat(left)
    answer = send(page, LONG)
    right.page.goto(page.url)
    other = right.page.locator(".turn.bot").first
    some_words(answer)
    poll(lambda: len(words(other)) > 80)
    type_and_send(right.page, "add a stool to my shopping list")  # queued, from the other window
    wait_for_answer(page, 2)
    wait_for_answer(right.page, 2)
    wait_for_end(page)
    wait_for_end(right.page)
    same(page, right.page)
    expect(page.locator("details.tool.ok")).to_have_count(1)
    assert same_after_reload(page) == same_after_reload(right.page)


def test_a_decision_made_in_one_window_removes_the_question_in_the_other(
    house: Daemon, ada: Caller, opens: Opens
) -> None:
    left, right = opens(house.origin, ada.token), opens(house.origin, ada.token)
    page = new_chat(left)
    send(page, SHELL)
    expect(page.locator(".ask")).to_be_visible()
    right.page.goto(page.url)
    expect(right.page.locator(".ask")).to_be_visible()
    page.locator(".ask [value=deny]").click()
    expect(right.page.locator(".ask")).to_have_count(0)
    wait_for_end(right.page)
    wait_for_end(page)
    same(page, right.page)


@pytest.mark.full
def test_the_stream_connects_on_every_one_of_40_loads(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token)
    page = new_chat(window)
    ask(page, "what is on my list?")
    chat = page.url
    for _ in range(40):
        with page.expect_request(lambda request: "/events?after=" in request.url):
            page.goto(chat)


@pytest.mark.full
def test_ten_tabs_load_and_one_that_comes_to_the_front_catches_up(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token)
    window.context.add_init_script(HIDING)
    page = new_chat(window)
    ask(page, "what is on my list?")
    path = page.url
    for _ in range(10):
        page.evaluate("() => hide(true)")
        page = tab(window, path)
        expect(page.locator(".turn.bot")).to_have_count(1)
    ask(page, "add a shelf to my shopping list")
    expect(page.locator(".turn.bot")).to_have_count(2)
    first = window.page
    expect(first.locator(".turn.bot")).to_have_count(1)
    page.evaluate("() => hide(true)")
    first.evaluate("() => hide(false)")
    expect(first.locator(".turn.bot")).to_have_count(2)
    same(first, page)
