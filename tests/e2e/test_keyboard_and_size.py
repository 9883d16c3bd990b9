"""By keyboard alone, and on a narrow window: every main shortcut, the order of Tab, no page wider than 320 pixels."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import overflow_px
from tests.e2e.caller import PASSWORD, Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import go
from tests.e2e.person import ask, new_chat, poll, send, wait_for_end

pytestmark = [pytest.mark.browser, pytest.mark.full]

FOCUS = "() => document.activeElement.id || document.activeElement.name || document.activeElement.className"
SMALL = """() => [...document.querySelectorAll('a, button, input, select, textarea, summary, [tabindex="0"]')]
  .filter(one => one.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && !one.closest('.vh, .skip'))
  .filter(one => !(one.tagName === 'A' && getComputedStyle(one).display === 'inline'))
  .map(one => [one.closest('label') ?? one, one]).map(([box, one]) => [box.getBoundingClientRect(), one])
  .filter(([box]) => box.width > 0 && (box.width < 24 || box.height < 24))
  .map(([box, one]) => `${one.tagName} ${one.className || one.name || one.innerText} ${box.width}x${box.height}`)"""
CUT_PX = "() => (one => one.scrollHeight - one.clientHeight)(document.querySelector('.why-scroll'))"
PAGES = (
    "/start",
    "/more",
    "/chats",
    "/files",
    "/tasks",
    "/tasks?done=1",
    "/notes",
    "/skills",
    "/models",
    "/models/connect",
    "/jobs",
    "/usage",
    "/account",
    "/search?q=milk",
    "/health",
    "/admin",
    "/admin/users",
    "/admin/tools",
    "/admin/tools/try",
    "/admin/roles",
    "/c/new",
)


def focused(page: Page) -> str:
    return str(page.evaluate(FOCUS))


def test_every_main_shortcut_does_what_it_says(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token)
    window.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = new_chat(window)
    ask(page, "add milk to my shopping list")
    keys = page.keyboard
    page.evaluate("() => document.activeElement.blur()")
    keys.press("/")
    assert focused(page) == "text"
    page.evaluate("() => document.activeElement.blur()")
    keys.press("k")
    assert re.match("t[0-9a-f]{32}$", focused(page))
    keys.press("k")
    assert focused(page).startswith("q")
    keys.press("j")
    assert re.match("t[0-9a-f]{32}$", focused(page))
    keys.press("y")
    poll(lambda: "milk" in page.evaluate("() => navigator.clipboard.readText()"))
    before = page.locator("[name=mode]:checked").get_attribute("value")
    keys.press("m")
    assert page.locator("[name=mode]:checked").get_attribute("value") != before
    page.evaluate("() => document.activeElement.blur()")
    keys.press("w")
    expect(page.locator("#why")).to_be_visible()
    keys.press("Escape")
    expect(page.locator("#why")).to_be_hidden()
    keys.press("?")
    expect(page.locator("#confirm[open] .shortcuts")).to_be_visible()
    keys.press("Escape")
    expect(page.locator("#confirm[open] .shortcuts")).to_be_hidden()
    keys.press("e")
    expect(page.locator("form.edit textarea")).to_be_focused()
    page.click("form.edit .quiet")
    page.evaluate("() => document.activeElement.blur()")
    keys.press("r")
    poll(lambda: page.locator(".turn.bot").count() == 1 and page.locator(".working").count() == 0)
    wait_for_end(page)
    page.evaluate("() => document.activeElement.blur()")
    keys.press("s")
    expect(page.locator("dialog.pal [role=combobox]")).to_be_focused()
    keys.press("Escape")
    for second, path in (("t", "/tasks"), ("n", "/notes"), ("m", "/models"), ("a", "/account")):
        page.evaluate("() => document.activeElement.blur()")
        keys.press("g")
        keys.press(second)
        page.wait_for_url(re.compile(re.escape(path) + "$"))
    keys.press("n")
    page.wait_for_url("**/c/new")


def test_the_whole_job_by_keyboard_and_enter_never_approves(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = new_chat(opens(house.origin, ada.token))
    assert focused(page) == "text"
    page.keyboard.type("run `df -h` in the shell")
    page.keyboard.press("Enter")
    expect(page.locator(".ask")).to_be_visible()
    page.evaluate("() => document.activeElement.blur()")
    page.keyboard.press(".")
    assert page.evaluate("() => document.activeElement.value") == "deny"
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.value") == "once"
    page.keyboard.press("Enter")
    expect(page.locator("#sr")).to_contain_text("Enter does not approve")
    expect(page.locator(".ask")).to_be_visible()
    page.keyboard.press("Space")
    wait_for_end(page)
    expect(page.locator("details.tool")).to_have_class("tool ok")


def test_the_second_message_is_typed_where_the_first_was(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = new_chat(opens(house.origin, ada.token))
    page.keyboard.type("add rice to my shopping list")
    page.keyboard.press("Enter")
    expect(page.locator(".turn.bot .foot")).to_have_count(1)
    page.keyboard.type("note the nuts, no rush")  # with the caret elsewhere its first letter opens a new chat
    page.keyboard.press("Enter")
    expect(page.locator(".turn.user .said").last).to_have_text("note the nuts, no rush")
    expect(page.locator(".turn.bot .foot")).to_have_count(2)


@pytest.mark.parametrize(("place", "field"), [("/tasks", "#new-title"), ("/today", "#add-line")])
def test_the_next_task_is_typed_where_the_last_one_was(
    house: Daemon, ada: Caller, opens: Opens, place: str, field: str
) -> None:
    ada.post("/tasks", title="Sign the form", due="today")
    page = go(opens(house.origin, ada.token), place)
    page.focus(field)
    for title in ("Oil the gate", "Wax the door"):
        page.keyboard.type(title)
        page.keyboard.press("Enter")
        expect(page.locator(".line", has_text=title)).to_have_count(1)
        expect(page.locator(field)).to_be_focused()
    expect(page.locator(field)).to_be_in_viewport()
    expect(page.locator("header.top")).to_be_in_viewport()


def test_shift_enter_breaks_the_line_and_alt_enter_asks_without_tools(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = new_chat(opens(house.origin, ada.token))
    page.fill("#text", "one")
    page.press("#text", "Shift+Enter")
    page.keyboard.type("two")
    assert page.input_value("#text") == "one\ntwo"
    page.fill("#text", "add nuts to my shopping list")
    page.press("#text", "Alt+Enter")
    expect(page.locator(".turn.bot .foot")).to_have_count(1)
    expect(page.locator(".turn.bot .meta")).to_contain_text("no tools")
    assert page.locator("[name=mode]:checked").get_attribute("value") == "auto", "the mode was for this message alone"


def test_single_keys_can_be_switched_off(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = new_chat(opens(house.origin, ada.token))
    page.evaluate("() => { document.body.dataset.keys = 'off'; document.activeElement.blur(); }")
    page.keyboard.press("?")
    page.keyboard.press("n")
    expect(page.locator("#confirm[open] .shortcuts")).to_be_hidden()


def test_tab_reaches_the_skip_links_first_and_the_composer(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = new_chat(opens(house.origin, ada.token))
    ask(page, "add soap to my shopping list")
    page.reload()
    page.evaluate("() => document.activeElement.blur()")
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.getAttribute('href')") == "#main"
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.getAttribute('href')") == "#text"
    page.keyboard.press("Enter")
    poll(lambda: focused(page) == "text")
    reached = set()
    for _ in range(80):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("() => document.activeElement.outerHTML.slice(0, 60)"))
        outline = page.evaluate(
            "() => { const one = document.activeElement; const r = one.getBoundingClientRect();"
            " return one === document.body || r.bottom > 0 && r.top < innerHeight + 1 }"
        )
        assert outline, "focus is out of sight"
    assert len(reached) > 15


@pytest.mark.parametrize("width", [320, 390])
def test_no_page_scrolls_sideways_on_a_narrow_window(house: Daemon, ada: Caller, opens: Opens, width: int) -> None:
    page = new_chat(opens(house.origin, ada.token, width=width, height=720))
    send(page, "run `df -h /a/very/long/path/that/goes/on/and/on/and/on/for/ever/and/a/day` in the shell")
    expect(page.locator(".ask")).to_be_visible()
    assert overflow_px(page) <= 0
    page.locator(".ask [value=deny]").click()
    wait_for_end(page)
    ask(page, "add " + "pneumonoultramicroscopic" * 6 + " to my shopping list")
    assert overflow_px(page) <= 0
    page.goto(str(page.locator("a[data-pop=why]").last.get_attribute("href")))
    assert page.evaluate("() => document.querySelectorAll('.why-t tbody tr').length") > 3
    assert overflow_px(page) <= 0
    assert page.evaluate(CUT_PX) <= 1
    page.go_back()
    chat = page.url
    wide = {path: over for path in (chat, *PAGES) if (over := _overflow_of(page, path)) > 0}
    assert wide == {}


HEAD_IN_SIGHT = """() => {
  const at = document.querySelector('header.top [popovertarget=menu]').getBoundingClientRect();
  const seen = document.elementFromPoint(at.left + at.width / 2, at.top + at.height / 2);
  return scrollY > 0 && seen?.closest('[popovertarget=menu]') !== null;
}"""


@pytest.mark.parametrize("is_phone", [False, True], ids=["desk", "phone"])
def test_the_banner_of_a_stop_stays_in_sight_and_leaves_the_head_to_be_pressed(
    house: Daemon, ada: Caller, opens: Opens, is_phone: bool
) -> None:
    window = opens(house.origin, ada.token, is_phone=is_phone)
    page = window.page
    page.goto(f"/c/{ada.send('new', 'add milk to my shopping list')}")
    wait_for_end(page)
    ada.post("/stop-all", whom="mine")
    page.reload()
    page.evaluate("() => { document.querySelector('#log').style.paddingBlockEnd = '2000px'; scrollTo(0, 1000); }")
    poll(lambda: page.evaluate(HEAD_IN_SIGHT))
    lift, chat = page.get_by_role("button", name="Resume"), page.url
    expect(lift).to_be_in_viewport()
    lift.click()
    expect(lift).to_be_hidden()
    expect(page).to_have_url(chat)
    expect(page.locator(".toast")).to_contain_text("Resumed")


def _overflow_of(page: Page, path: str) -> int:
    page.goto(path)
    if "/confirm" in page.url:
        over = overflow_px(page)
        page.fill("[name=password]", PASSWORD)
        page.click("main button.primary")
        page.wait_for_url(f"**{path}")
        return max(over, overflow_px(page))
    return overflow_px(page)


@pytest.mark.parametrize("is_phone", [False, True], ids=["desk", "phone"])
def test_every_target_is_at_least_24_pixels(house: Daemon, ada: Caller, opens: Opens, is_phone: bool) -> None:
    page = new_chat(opens(house.origin, ada.token, is_phone=is_phone))
    ask(page, "add butter to my shopping list") if not is_phone else page.goto("/c")
    small = {}
    for path in (page.url, *PAGES):
        page.goto(path)
        found = page.evaluate(SMALL)
        if found:
            small[path] = found
    assert small == {}
