"""Every page in Chromium with the real daemon: axe, the console, 320 pixels, the keyboard, targets, weight, errors."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Request, expect
from sqlalchemy import text

from tests.databases import rows_of
from tests.e2e.browser import Window, axe, overflow_px
from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import SMALL, Furnished, forgive, furnish, go, unhandled, walk
from tests.e2e.person import poll, set_up
from web import assets

pytestmark = pytest.mark.browser

CHAT_KB, CHAT_REQUESTS, SCRIPT_KB = 40, 4, 21.5
OTHER_KB, OTHER_REQUESTS = 60, 6
FONT_KB = 50
# The sizes of the words that are shown, each with one of its places, and those of the tokens. A formula sizes itself.
SIZES = """() => {
  const sizes = {}, style = getComputedStyle(document.documentElement);
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (words.nextNode()) {
    const one = words.currentNode.parentElement;
    if (!words.currentNode.data.trim() || one.closest('.katex,.vh,.skip,svg') || !one.checkVisibility()) continue;
    sizes[getComputedStyle(one).fontSize] ??= one.outerHTML.slice(0, 80);
  }
  return [sizes, [1, 2, 3, 4, 5, 6, 7, 8].map(number => style.getPropertyValue(`--t${number}`).trim())];
}"""
# The selectors of a style sheet that fit anything here, also in a template that a script fills in.
FITTING = """text => {
  const sheet = new CSSStyleSheet(), found = new Set();
  sheet.replaceSync(text);
  const places = [document, ...[...document.querySelectorAll('template')].map(one => one.content)];
  const look = rules => { for (const rule of rules) {
    if (rule.selectorText && places.some(place => place.querySelector(rule.selectorText.replace(/::[\\w-]+/g, ''))))
      found.add(rule.selectorText);
    if (rule.cssRules?.length) look(rule.cssRules);
  } };
  look(sheet.cssRules);
  return [...found];
}"""
BOTH_THEMES = pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
BOTH_WIDTHS = pytest.mark.parametrize("is_phone", [False, True], ids=["desk", "phone"])


@pytest.fixture(scope="module")
def furnished(house: Daemon, ada: Caller) -> Iterator[Furnished]:
    made = furnish(house.home, ada)
    yield made
    made.member.__exit__()


def looked_at(window: Window) -> list[str]:
    """What is wrong with the page as it stands."""
    page = window.page
    found = axe(page)
    if page.locator("h1").count() != 1:
        found.append("not one h1")
    if (wide := overflow_px(page)) > 0:
        found.append(f"{wide} px too wide")
    return found


def wrong_on(window: Window, paths: tuple[str, ...]) -> dict[str, list[str]]:
    return {path: found for path in paths if (found := looked_at(after(window, path)))}


def after(window: Window, path: str) -> Window:
    go(window, path)
    return window


@BOTH_THEMES
def test_the_main_pages_are_sound(house: Daemon, furnished: Furnished, opens: Opens, is_dark: bool) -> None:
    window = opens(house.origin, furnished.admin.token, is_dark=is_dark, is_phone=True)
    assert wrong_on(window, (furnished.chat, "/account", "/account/look", "/account/sign-in")) == {}


@pytest.mark.full
@BOTH_THEMES
@BOTH_WIDTHS
def test_every_page_is_sound(house: Daemon, furnished: Furnished, opens: Opens, is_dark: bool, is_phone: bool) -> None:
    window = opens(house.origin, furnished.admin.token, is_dark=is_dark, is_phone=is_phone)
    assert wrong_on(window, (*furnished.paths, furnished.ask_something())) == {}
    empty = opens(house.origin, furnished.member.token, is_dark=is_dark, is_phone=is_phone)
    bare = (
        "/c/new",
        "/start",
        "/more",
        "/chats",
        "/files",
        "/calendar",
        "/tasks",
        "/jobs",
        "/notes",
        "/skills",
        "/models",
        "/models/connect",
        "/account",
        "/notifications",
        "/health",
        "/search?q=zebra",
    )
    assert wrong_on(empty, bare) == {}
    visitor = opens(house.origin, is_dark=is_dark, is_phone=is_phone)
    assert wrong_on(visitor, ("/login", "/welcome", "/offline")) == {}


@pytest.mark.full
@BOTH_THEMES
@BOTH_WIDTHS
def test_what_opens_over_a_page_is_sound(
    house: Daemon, furnished: Furnished, opens: Opens, is_dark: bool, is_phone: bool
) -> None:
    window = opens(house.origin, furnished.admin.token, is_dark=is_dark, is_phone=is_phone)
    page, found = window.page, {}
    go(window, "/models")
    page.locator("main a[data-confirm]").first.click()
    expect(page.locator("#confirm[open] form")).to_be_visible()
    found["confirm"] = looked_at(window)
    go(window, "/tasks")
    page.keyboard.press("?")
    expect(page.locator("#confirm .shortcuts")).to_be_visible()
    found["shortcuts"] = looked_at(window)
    go(window, furnished.chat)
    page.locator(".foot .whyb").click()
    expect(page.locator("#why-b .funnel")).to_be_visible()
    found["why"] = looked_at(window) + (page.evaluate(SMALL, 40) if is_phone else [])
    go(window, furnished.chat)
    page.locator("details.tool summary").click()
    page.locator("h1 [popovertarget=menu]").click()
    found["menu"] = looked_at(window)
    assert {state: lines for state, lines in found.items() if lines} == {}


@pytest.mark.full
@BOTH_THEMES
def test_the_sheet_with_the_sidebar_is_sound(house: Daemon, furnished: Furnished, opens: Opens, is_dark: bool) -> None:
    window = opens(house.origin, furnished.admin.token, is_dark=is_dark, is_phone=True)
    go(window, furnished.chat).locator(".top [popovertarget=side]").click()
    expect(window.page.locator("#side")).to_be_visible()
    assert looked_at(window) + window.page.evaluate(SMALL, 40) == []
    first = window.page.locator("#convs a").first
    assert first.evaluate("one => one.getBoundingClientRect().top") < 200  # the chats are what is seen first
    window.page.locator("#side .me").click()
    expect(window.page.locator("#me")).to_be_visible()
    assert looked_at(window) + window.page.evaluate(SMALL, 40) == []
    page = go(window, "/chats")
    expect(page.get_by_role("button", name="Archive")).to_be_hidden()
    page.locator(".pick input").first.check()
    expect(page.get_by_role("button", name="Archive")).to_be_visible()
    assert looked_at(window) == []


@pytest.mark.full
@BOTH_THEMES
@BOTH_WIDTHS
def test_a_page_that_refuses_is_sound(
    house: Daemon, furnished: Furnished, opens: Opens, is_dark: bool, is_phone: bool
) -> None:
    admin = opens(house.origin, furnished.admin.token, is_dark=is_dark, is_phone=is_phone)
    member = opens(house.origin, furnished.member.token, is_dark=is_dark, is_phone=is_phone)
    visitor = opens(house.origin, is_dark=is_dark, is_phone=is_phone)
    found = {}
    for name, window, path, status in (
        ("not found", admin, "/nothing", 404),
        ("malformed", admin, "/models/edit", 422),
        ("not allowed", member, "/admin/users", 403),
        ("not found, visitor", visitor, "/setup/nothing", 404),
    ):
        go(window, path, status)
        found[name] = looked_at(window)
    for path in ("/models/new", "/account/you"):
        go(member, path)
        if path == "/models/new":
            unhandled(member)
        else:
            member.page.fill("main [name=time_zone]", "Mars")
            member.page.keyboard.press("Enter")
            forgive(member, 422)
        field = member.page.locator("[aria-invalid=true]").first
        expect(field).to_be_focused()
        assert member.page.locator(f"#{str(field.get_attribute('aria-describedby')).split()[0]}").inner_text()
        found[path] = looked_at(member)
    assert {state: lines for state, lines in found.items() if lines} == {}


@pytest.mark.full
@BOTH_THEMES
@BOTH_WIDTHS
def test_set_up_and_a_broken_house_are_sound(daemon: Daemon, opens: Opens, is_dark: bool, is_phone: bool) -> None:
    daemon.start()
    window = opens(daemon.origin, is_dark=is_dark, is_phone=is_phone)
    assert wrong_on(window, ("/setup",)) == {}
    set_up(window, daemon)
    assert looked_at(window) == []
    with rows_of(daemon.home) as rows:
        rows.execute(text("ALTER TABLE tasks RENAME TO gone"))
    go(window, "/tasks", 500)
    expect(window.page.locator("main code")).to_be_visible()
    assert looked_at(window) == []


@pytest.mark.full
@pytest.mark.parametrize("width", [320, 780, 900], ids=["phone", "half", "small-desk"])
def test_no_page_scrolls_sideways(house: Daemon, furnished: Furnished, opens: Opens, width: int) -> None:
    window = opens(house.origin, furnished.admin.token, width=width, height=640)
    wide = {}
    for path in (*furnished.paths, furnished.ask_something()):
        page = go(window, path)
        page.evaluate("() => document.querySelectorAll('main details').forEach(one => one.open = true)")
        if (px := overflow_px(page)) > 0:
            wide[path] = px
    assert wide == {}


@pytest.mark.full
@pytest.mark.parametrize(("is_phone", "least_px"), [(False, 24), (True, 40)], ids=["mouse", "touch"])
def test_every_control_can_be_hit(
    house: Daemon, furnished: Furnished, opens: Opens, is_phone: bool, least_px: int
) -> None:
    window = opens(house.origin, furnished.admin.token, is_phone=is_phone)
    small = {}
    for path in furnished.paths:
        page = go(window, path)
        page.evaluate("() => document.querySelectorAll('main details').forEach(one => one.open = true)")
        if found := page.evaluate(SMALL, least_px):
            small[path] = found
    assert small == {}


@pytest.mark.full
def test_the_keyboard_reaches_every_control_and_shows_where_it_is(
    house: Daemon, furnished: Furnished, opens: Opens
) -> None:
    window = opens(house.origin, furnished.admin.token)
    unseen, unreached = {}, {}
    for path in furnished.paths:
        page = go(window, path)
        page.evaluate("() => document.activeElement.blur()")
        stops, met = walk(page)
        if len(met) < stops:
            unreached[path] = (stops, [one["name"] for one in met])
        if lost := [one["name"] for one in met if not (one["isSeen"] and one["isInView"])]:
            unseen[path] = lost
    assert unreached == {}
    assert unseen == {}


@pytest.mark.full
def test_every_page_is_reached_by_links(house: Daemon, furnished: Furnished, opens: Opens) -> None:
    window = opens(house.origin, furnished.admin.token)
    reached, waiting = {furnished.chat}, [furnished.chat]
    while waiting:
        page = go(window, waiting.pop())
        links = page.locator("a[href^='/']:not([download])").evaluate_all(
            "all => all.filter(one => one.tabIndex >= 0).map(one => one.getAttribute('href').split('#')[0])"
        )
        fresh = {link for link in links if link in furnished.paths} - reached
        reached |= fresh
        waiting += sorted(fresh)
    by_form = {"/search?q=milk", "/tasks?done=1", "/usage?person=all&by=person", "/skills?message=plan+my+week"}
    by_form |= {"/calendar?view=day", "/calendar?view=month", "/calendar/new"}  # linked with the day that is shown
    by_form |= {
        "/notifications?kind=approval",
        "/admin/audit?kind=login",
        "/files?q=cats",
        "/journals?q=dahlias",
        "/memory?q=vegetarian",
    }
    by_form |= {path for path in furnished.paths if "recipe=" in path or "/call?run=" in path} | {"/runs?person=all"}
    assert set(furnished.paths) - reached == by_form


def test_a_chat_is_light(house: Daemon, furnished: Furnished, opens: Opens) -> None:
    kb, requests = weighed(opens(house.origin, furnished.admin.token), furnished.chat)
    assert kb <= CHAT_KB
    assert requests <= CHAT_REQUESTS


def test_the_script_of_a_first_visit_is_small() -> None:
    assets.make()
    assert (assets.VENDOR / "bundle.js.br").stat().st_size / 1000 <= SCRIPT_KB


@pytest.mark.full
def test_pages_are_light(house: Daemon, furnished: Furnished, opens: Opens) -> None:
    heavy = {}
    for path in furnished.paths:
        window = opens(house.origin, furnished.admin.token)
        kb, requests = weighed(window, path)
        if kb > (CHAT_KB if path == "/c/new" else OTHER_KB) or requests > OTHER_REQUESTS:
            heavy[path] = (round(kb, 1), requests)
        window.context.close()
    assert heavy == {}


# The live stream, and a request that outlives its page: Chromium does not say that this one has ended.
NEVER_ENDS = re.compile(r"/events\b|/notifications/seen$")


def weighed(window: Window, path: str) -> tuple[float, int]:
    """Kilobytes over the wire and requests of a first visit, once its live stream alone is open.

    The fonts are left out: they are swapped in behind the first paint, once for all pages (`FONT_KB`).
    """
    wire = window.context.new_cdp_session(window.page)
    wire.send("Network.enable")
    asked: list[tuple[str, str]] = []
    sizes: dict[str, float] = {}
    wire.on("Network.requestWillBeSent", lambda event: asked.append((event["requestId"], event["request"]["url"])))
    wire.on("Network.loadingFinished", lambda event: sizes.update({event["requestId"]: event["encodedDataLength"]}))

    def is_there() -> bool:
        window.page.wait_for_timeout(50)  # events come in while playwright waits
        under_way = [url for id, url in asked if id not in sizes and ".woff2" not in url]
        return any("/events" in url for url in under_way) and all(NEVER_ENDS.search(url) for url in under_way)

    window.page.goto(path)
    poll(is_there)
    pages = [id for id, url in asked if ".woff2" not in url]
    return sum(sizes.get(id, 0) for id in pages) / 1000, len(pages)


def test_the_type_is_one_file_behind_the_first_paint(house: Daemon, furnished: Furnished, opens: Opens) -> None:
    window = opens(house.origin, furnished.admin.token)
    asked: list[str] = []
    window.page.on("request", lambda request: asked.append(request.url))
    page = go(window, furnished.chat)
    poll(lambda: page.evaluate("document.fonts.status") == "loaded")
    assert page.evaluate("document.fonts.check('550 15px Inter')")
    fonts = {url.split("/")[-1].split("?")[0] for url in asked if ".woff2" in url}
    assert fonts == {"inter.woff2"}
    assert (assets.VENDOR / "inter.woff2").stat().st_size / 1000 <= FONT_KB
    assert page.locator("link[rel=preload]").count() == 0


@pytest.mark.full
@BOTH_WIDTHS
def test_no_page_has_more_than_seven_sizes_of_type(
    house: Daemon, furnished: Furnished, opens: Opens, is_phone: bool
) -> None:
    window = opens(house.origin, furnished.admin.token, is_phone=is_phone)
    many, foreign = {}, {}
    for path in (*furnished.paths, furnished.ask_something()):
        page = go(window, path)
        page.evaluate("() => document.querySelectorAll('details').forEach(one => one.open = true)")
        sizes, tokens = page.evaluate(SIZES)
        if len(sizes) > 7:
            many[path] = sizes
        if other := {size: where for size, where in sizes.items() if size not in tokens}:
            foreign[path] = other
    assert many == {}
    assert foreign == {}


def test_a_deleted_task_is_offered_back_and_the_keyboard_keeps_its_place(
    house: Daemon, furnished: Furnished, opens: Opens
) -> None:
    for title in ("first of two", "second of two"):
        furnished.member.post("/tasks", title=title)
    window = opens(house.origin, furnished.member.token)
    page = go(window, "/tasks")
    rows = page.locator("li[id^=task-] .t a")
    more = page.get_by_role("button", name="More: second of two")
    more.press("Enter")
    page.get_by_role("button", name="Up", exact=True).press("Enter")
    expect(rows.first).to_have_text("second of two")
    expect(more).to_be_focused()
    more.press("Enter")
    page.get_by_role("button", name="Delete").click()
    expect(rows).to_have_count(1)
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(rows).to_have_count(2)
    expect(page.locator(".toast")).to_contain_text("Restored")
    page.reload()
    expect(page.locator(".toast")).to_have_count(0)


def test_a_question_is_found_from_every_other_page(house: Daemon, furnished: Furnished, opens: Opens) -> None:
    window = opens(house.origin, furnished.admin.token)
    asking = furnished.ask_something()
    page = go(window, "/tasks")
    expect(page.locator(f".convs a[href='{asking}'] .asks")).to_be_visible()
    page.locator(".waits").click()
    expect(page.locator(".ask")).to_be_visible()
    mark = page.locator(".convs a[aria-current] .asks")
    expect(mark).to_be_visible()
    page.locator(".ask [value=deny]").click()
    expect(mark).to_have_count(0)


def test_a_removal_asks_in_a_dialog_that_escape_closes(house: Daemon, furnished: Furnished, opens: Opens) -> None:
    window = opens(house.origin, furnished.admin.token)
    page = go(window, "/models")
    page.locator("main a[data-confirm]").first.click()
    dialog = page.locator("#confirm")
    expect(dialog.get_by_role("link", name="Keep it")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page).to_have_url(f"{house.origin}/models")


def test_a_question_that_cannot_be_fetched_is_a_page_and_not_the_one_before(
    house: Daemon, furnished: Furnished, opens: Opens
) -> None:
    window = opens(house.origin, furnished.admin.token)
    page = go(window, "/models")
    ask = page.locator("main a[data-confirm]").first
    ask.click()
    expect(page.locator("#confirm form")).to_be_visible()
    page.keyboard.press("Escape")
    place = f"{house.origin}{ask.get_attribute('href')}"
    page.route(place, lambda route: route.fulfill(status=503) if is_fetch(route.request) else route.continue_())
    ask.click()
    expect(page).to_have_url(place)
    expect(page.locator("main form.confirm")).to_be_visible()
    expect(page.locator("#confirm[open]")).to_have_count(0)
    window.complaints.clear()  # Chromium's, of the request that failed


def is_fetch(request: Request) -> bool:
    return "hx-request" in request.headers


def test_a_chat_needs_no_style_of_the_other_pages(house: Daemon, furnished: Furnished, opens: Opens) -> None:
    """What of sheet.css fits something in a chat belongs in app.css: a chat is not given it."""
    window = opens(house.origin, furnished.admin.token)
    sheet = (assets.STATIC / "sheet.css").read_text(encoding="utf-8")
    paths = (furnished.chat, "/c/new", furnished.ask_something())
    assert [after(window, path).page.evaluate(FITTING, sheet) for path in paths] == [[], [], []]
