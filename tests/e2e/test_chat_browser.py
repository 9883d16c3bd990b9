"""The chat in a real Chromium over a house in memory: what is live equals what is reloaded, and nothing is lost."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from playwright.sync_api import Browser, expect

from tests.e2e.browser import axe, overflow_px
from tests.e2e.chat_tab import Served, Tab, tab
from tests.web.fake_house import FakeHouse
from tests.web.seeds import long_book, seeded
from tests.web.test_markdown import PAYLOADS
from web import assets
from web.app import create_app

TOKEN = "brian-token"
pytestmark = pytest.mark.browser


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    assets.make()

    async def make() -> tuple[FastAPI, Any]:
        house = FakeHouse(tmp_path / "home", words_per_s=400)
        house.pause_s = 0.05
        seeded(house)
        return create_app(house), house  # type: ignore[arg-type]  # the fake has what the pages use of it

    server = Served(make)
    yield server
    server.do(server.held.close())
    server.close()


@pytest.fixture
def chat(browser: Browser, served: Served) -> Iterator[Tab]:
    with tab(browser, served.url, TOKEN) as opened:
        opened.go("/c/0004")
        yield opened
        assert opened.complaints == []


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("Which nightly job failed?", "What I would do"),
        ("add milk", "on your shopping list"),
        ("use many tools", "Used 5 tools"),
        ("please retry", "came to its end"),
        ("this will fail", "Try again"),
        ("use all rounds", "Continue with 5 more"),
        ("ECHO see [x][r] and **more**\n\n[r]: https://example.org", 'href="https://example.org"'),
    ],
    ids=["table and code", "one call", "folded calls", "second attempt", "error", "out of rounds", "reference link"],
)
def test_the_live_page_equals_the_reloaded_one(chat: Tab, text: str, holds: str) -> None:
    chat.send(text)
    assert holds in chat.as_reloaded()


def test_a_question_is_answered_by_space_or_click_and_never_by_enter(chat: Tab) -> None:
    chat.send("disk space, by shell", waits=False)
    chat.page.wait_for_selector(".ask")
    chat.page.evaluate("() => document.activeElement.blur()")
    chat.page.keyboard.press(".")
    assert chat.page.evaluate("() => document.activeElement.value") == "deny"
    chat.page.keyboard.press("Tab")
    chat.page.keyboard.press("Enter")
    chat.page.wait_for_timeout(200)
    assert chat.page.locator(".ask").count() == 1
    chat.page.keyboard.press("Space")
    chat.idle()
    assert "212 GB" in chat.as_reloaded()


def test_a_decision_in_one_window_takes_the_card_from_the_other(browser: Browser, served: Served, chat: Tab) -> None:
    with tab(browser, served.url, TOKEN) as other:
        other.go("/c/0004")
        chat.send("disk space, by shell", waits=False)
        other.page.wait_for_selector(".ask")
        chat.page.click(".ask [value=deny]")
        expect(other.page.locator(".ask")).to_have_count(0)
        other.idle()
        chat.idle()
        assert other.as_reloaded() == chat.as_reloaded()


def test_reloading_in_the_middle_of_an_answer_loses_and_doubles_nothing(chat: Tab, served: Served) -> None:
    served.held.words_per_s = 60
    chat.send("Which nightly job failed?", waits=False)
    chat.until("() => document.querySelectorAll('.turn:last-child table').length > 0")
    length = "() => document.querySelector('.turn:last-child .prose').innerText.length"
    before = chat.page.evaluate(length)
    chat.page.reload()
    chat.until(f"() => ({length})() >= {before}")
    chat.idle()
    chat.as_reloaded()


def test_a_cut_connection_comes_back_without_a_lost_or_doubled_word(chat: Tab, served: Served) -> None:
    served.held.words_per_s = 60
    chat.send("Which nightly job failed?", waits=False)
    chat.page.wait_for_timeout(600)
    chat.context.set_offline(True)
    chat.until("() => !document.querySelector('#offline').hidden")
    chat.page.fill("#text", "written while away")
    chat.page.wait_for_timeout(800)
    chat.context.set_offline(False)
    chat.idle()
    assert chat.page.input_value("#text") == "written while away"
    chat.as_reloaded()
    chat.complaints.clear()  # Chromium reports the cut itself


def test_stop_keeps_what_was_written(chat: Tab, served: Served) -> None:
    served.held.words_per_s = 30
    chat.send("ECHO " + "and on " * 300, waits=False)
    chat.until("() => document.querySelector('.turn:last-child .md')?.innerText.length > 20")
    chat.page.click(".stop")
    chat.idle()
    assert "Stopped." in chat.as_reloaded()


def test_a_message_sent_meanwhile_waits_visibly(chat: Tab, served: Served) -> None:
    served.held.words_per_s = 60
    chat.send("Which nightly job failed?", waits=False)
    chat.send("and another thing", waits=False)
    assert chat.page.locator(".queued").count() == 1
    chat.idle()


COVERED = """part => {
  const box = selector => document.querySelector(selector).getBoundingClientRect(), card = box(part);
  return Math.max(0, box('.top').bottom - card.top, card.bottom - box('#composer').top) }"""
COUNT = "() => { window.heard = 0; document.addEventListener('turn', () => window.heard++) }"
LONG = "and what else is there to say of it? " * 60
WINDOWS = pytest.mark.parametrize(
    ("size", "part"),
    [({"is_phone": True}, ".ask"), ({}, ".ask"), ({"width": 390, "height": 420}, ".ask-row")],
    ids=["phone", "desk", "lower than the card"],
)


@WINDOWS
@pytest.mark.parametrize("queued", [["in passing"], [LONG], ["one", LONG, *"23456789"]], ids=["short", "long", "ten"])
def test_messages_sent_meanwhile_leave_the_approval_in_view(
    browser: Browser, served: Served, size: dict[str, Any], part: str, queued: list[str]
) -> None:
    with tab(browser, served.url, TOKEN, **size) as one, tab(browser, served.url, TOKEN, **size) as other:
        for each in (one, other):
            each.go("/c/0004")
            each.page.evaluate(COUNT)
        one.send("disk space, by shell", waits=False)
        for each in (one, other):
            each.page.wait_for_selector(".ask")
        for heard, text in enumerate(queued, start=2):
            one.send(text, waits=False)
            for each in (one, other):
                each.until(f"() => window.heard === {heard}")
                assert each.page.evaluate(COVERED, part) == 0
        other.page.reload()
        assert other.page.evaluate(COVERED, part) == 0


def test_messages_sent_meanwhile_take_no_more_room_than_they_need(chat: Tab) -> None:
    height = "() => document.querySelector('.turn.user:has(.queued)').offsetHeight"
    chat.send("disk space, by shell", waits=False)
    chat.send(LONG, waits=False)
    assert chat.page.evaluate(height) < 130
    chat.page.locator(".queued").click()
    assert chat.page.evaluate(height) > 250


def test_focus_stays_where_it_is_while_an_approval_and_messages_wait(chat: Tab) -> None:
    focus = "() => document.activeElement.value"
    chat.page.fill("#text", "disk space, by shell")
    chat.page.press("#text", "Enter")
    chat.until("() => !document.querySelector('#text').value")
    chat.page.keyboard.type("in pas")
    chat.page.wait_for_selector(".ask")
    chat.page.keyboard.type("sing")
    assert chat.page.evaluate(focus) == "in passing"
    chat.page.keyboard.press("Enter")
    chat.page.wait_for_selector(".queued")
    assert chat.page.evaluate("() => document.activeElement.id") == "text"
    chat.page.evaluate("() => document.activeElement.blur()")
    chat.page.keyboard.press(".")
    assert chat.page.evaluate(focus) == "deny"
    assert chat.page.evaluate(COVERED, ".ask") == 0


def test_editing_in_place_sets_the_rest_aside(chat: Tab) -> None:
    chat.send("add milk")
    chat.page.hover(".turn.user:nth-last-child(2)")
    chat.page.locator("[data-edit]").last.click()
    chat.page.fill(".edit textarea", "use many tools")
    chat.page.click(".edit .primary")
    chat.until("() => document.querySelector('.turn:last-child')?.innerText.includes('Five pages')")
    chat.idle()
    assert "add milk" not in chat.as_reloaded()


def test_an_undo_shows_on_its_card(chat: Tab) -> None:
    chat.send("add milk")
    chat.page.locator(".tool").last.locator("summary").click()
    chat.page.click("form[action='/undo/undo-1'] button")
    chat.until("() => document.querySelector('#log').innerText.includes('The task is gone again.')")
    chat.as_reloaded()


def test_alt_enter_asks_without_tools_and_keeps_the_mode(chat: Tab, served: Served) -> None:
    chat.page.fill("#text", "a quick one")
    chat.page.press("#text", "Alt+Enter")
    chat.until("() => document.querySelectorAll('.turn.user').length === 3")
    chat.idle()
    assert served.held.asked[-1] == ("send", ("a quick one", "chat", None))
    assert chat.page.evaluate("() => document.querySelector('#composer').mode.value") == "auto"


def test_the_price_and_its_reasons_show_before_sending(chat: Tab) -> None:
    chat.page.fill("#text", "which nightly jobs ran?")
    chat.until("() => /tools ·\\s+\\d+\\s+tok/.test(document.querySelector('#cost').innerText)")
    chat.page.click("#cost")
    chat.until("() => document.querySelector('#why').innerText.includes('you wrote “nightly”')")


def test_a_draft_survives_a_reload(chat: Tab) -> None:
    chat.page.fill("#text", "half a thou")
    chat.page.reload()
    assert chat.page.input_value("#text") == "half a thou"


def test_single_keys_work_and_can_be_switched_off(chat: Tab, served: Served) -> None:
    mode = "() => document.querySelector('#composer').mode.value"
    focus = "() => document.activeElement.id || document.activeElement.className"
    chat.page.evaluate("() => document.activeElement.blur()")
    chat.page.keyboard.press("m")
    assert chat.page.evaluate(mode) == "chat"
    chat.page.evaluate("() => document.activeElement.blur()")
    chat.page.keyboard.press("k")
    assert chat.page.evaluate(focus) == "t0006"
    chat.page.keyboard.press("?")
    assert chat.page.evaluate("() => document.querySelector('#keys').open")
    chat.page.keyboard.press("Escape")
    chat.page.keyboard.press("/")
    assert chat.page.evaluate(focus) == "text"
    served.held.chosen = type(served.held.chosen)(keys=False)
    chat.page.reload()
    chat.page.evaluate("() => document.activeElement.blur()")
    chat.page.keyboard.press("m")
    assert chat.page.evaluate(mode) == "auto"


def test_deleting_asks_in_a_dialog_and_can_be_taken_back(chat: Tab) -> None:
    chat.page.click("[popovertarget=menu]")
    chat.page.click("#menu >> text=Delete")
    chat.page.click("#confirm button.danger")
    chat.page.wait_for_url("**/c/new")
    chat.page.click(".toast .btn")
    chat.page.wait_for_url("**/c/0004")


def test_nothing_that_a_model_writes_can_act_in_the_browser(chat: Tab) -> None:
    chat.send("ECHO\n" + "\n\n".join(PAYLOADS))
    found = chat.page.evaluate(
        """() => { const all = [...document.querySelectorAll('.turn:last-child .md *')]; return {
            tags: all.filter(e => e.matches('script,img,iframe,template,form,input,style,svg,object,embed')).length,
            acts: all.filter(e => [...e.attributes].some(a => /^(on|hx-|data-hx-|style$)/.test(a.name))).length,
            links: all.filter(e => e.href && !/^(https?|mailto):/.test(e.href)).length,
            composer: document.querySelectorAll('#composer').length } }"""
    )
    assert found == {"tags": 0, "acts": 0, "links": 0, "composer": 1}
    chat.as_reloaded()


def test_sending_and_approving_work_without_script(browser: Browser, served: Served) -> None:
    with tab(browser, served.url, TOKEN, has_script=False) as still:
        still.page.goto("/c/new")
        still.page.fill("#text", "disk space, by shell")
        still.page.click(".send:not(.stop)")
        still.page.wait_for_selector(".ask")
        still.page.click(".ask [value=once]")
        still.page.wait_for_selector("text=212 GB")


def test_earlier_messages_come_in_above_without_moving_the_page(chat: Tab, served: Served) -> None:
    async def make() -> str:
        return long_book(served.held, 200).head.id

    chat.go(f"/c/{served.do(make())}")
    chat.page.wait_for_timeout(200)
    before = chat.page.locator(".turn").count()
    chat.page.evaluate("() => document.querySelector('.earlier a').scrollIntoView()")
    chat.until(f"() => document.querySelectorAll('.turn').length > {before}")
    chat.until("() => scrollY > 1000")


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("is_phone", [False, True], ids=["desk", "phone"])
def test_axe_finds_nothing_in_any_state(browser: Browser, served: Served, is_dark: bool, is_phone: bool) -> None:
    served.held.is_offline = is_dark
    with tab(browser, served.url, TOKEN, is_dark=is_dark, is_phone=is_phone) as one:
        found = {}
        one.go("/c/new")
        found["new"] = axe(one.page)
        one.go("/c/0004")
        for text in ("Which nightly job failed?", "use many tools", "this will fail", "use all rounds", "add milk"):
            one.send(text)
        one.page.evaluate("() => document.querySelectorAll('details').forEach(d => d.open = true)")
        found["answers"] = axe(one.page)
        one.page.evaluate("() => document.querySelectorAll('[data-pop=why]')[2].click()")
        one.page.wait_for_timeout(250)
        found["why"] = axe(one.page)
        one.page.keyboard.press("Escape")
        one.send("disk space, by shell", waits=False)
        one.page.wait_for_selector(".ask")
        one.until(f"() => ({COVERED})('.ask') === 0")
        found["asked"] = axe(one.page)
        found["wide"] = [f"{wide} px too wide"] if (wide := overflow_px(one.page)) > 0 else []
        for path in ("/c/0004/rename", "/c/0004/delete", "/search?q=light", "/c/0004/edit/0006"):
            one.go(path)
            found[path] = axe(one.page)
        assert {state: lines for state, lines in found.items() if lines} == {}
        assert one.complaints == []
