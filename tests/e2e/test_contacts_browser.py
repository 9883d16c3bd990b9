"""The contacts in Chromium over a real server: a desk, a phone, no script, axe, no overflow."""

import re
from collections.abc import Iterator
from functools import partial

import pytest
from playwright.sync_api import Page, expect

from tests.dav_servers import PASSWORD, DavServer, radicale
from tests.e2e.browser import LOOKS, axe, overflow_px
from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import SMALL, go
from tests.e2e.person import poll

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DavServer]:
    with radicale(tmp_path_factory.mktemp("dav")) as running:
        yield running


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, server: DavServer) -> Iterator[Daemon]:
    made = Daemon(tmp_path_factory.mktemp("house") / "home", delay_ms=4, CALENDAR_SERVERS=server.place)
    made.start()
    yield made
    made.close()


@pytest.fixture(scope="module")
def filled(ada: Caller, server: DavServer) -> Caller:
    """Ada's address book of seventy, one of them with all that a card can say."""
    url = server.make_book("People")
    long = "A" * 120
    server.put_card(
        url, "mia", "FN:Mia Keller", "N:Keller;Mia;;;", "EMAIL;TYPE=HOME:mia@example.org", f"EMAIL:{long}@example.org",
        "TEL;TYPE=CELL:+49 151 22", "ADR;TYPE=home:;;Hill Road 4;Kiel;;24103;Germany", "BDAY:1990-05-09",
        f"ORG:{long}", "NOTE:likes rye",
    )  # fmt: skip
    for number in range(70):
        server.put_card(url, f"ida{number}", f"FN:Ida {number:02}", f"N:{number};Ida;;;", f"TEL:0160 {number}")
    ada.post("/calendar/accounts/server", address=server.base, username="ann", password=PASSWORD)
    poll(partial(is_read, ada))
    return ada


def is_read(who: Caller) -> bool:
    return "Up to date" in who.get("/calendar/accounts").text


def card_of(who: Caller, name: str) -> str:
    found = re.search(r'href="(/contacts/[0-9a-f]{32})"', who.get(f"/contacts?q={name}").text)
    assert found
    return found[1]


@LOOKS
def test_its_pages_hold_at_a_desk_and_on_a_phone(
    house: Daemon, filled: Caller, opens: Opens, is_phone: bool, is_dark: bool
) -> None:
    window = opens(house.origin, filled.token, is_phone=is_phone, is_dark=is_dark)
    card = card_of(filled, "keller")
    for place in ("/contacts", "/contacts?q=nobody", "/contacts/new", card, f"{card}/remove", "/calendar/accounts"):
        page = go(window, place)
        assert axe(page) == [], place
        assert overflow_px(page) <= 0, place
        assert page.locator("h1").count() == 1
        assert page.evaluate(SMALL, 40 if is_phone else 24) == [], place
    assert window.complaints == []


def test_somebody_is_found_added_and_undone_without_a_script(house: Daemon, filled: Caller, opens: Opens) -> None:
    page: Page = opens(house.origin, filled.token, has_script=False).page
    page.goto("/contacts")
    expect(page.locator(".said-list li")).to_have_count(50)
    page.click("main .pager a:has-text('More')")
    expect(page.locator(".said-list")).to_contain_text("Mia Keller")
    page.fill("#contact-q", "0160 69")
    page.keyboard.press("Enter")
    expect(page.locator(".said-list li")).to_have_count(1)
    page.goto("/contacts/new")
    page.fill("#f-name", "Ola Berg")
    page.fill("#f-phones", "0172 1\n0172 2")
    page.click("main .btn.primary")
    expect(page.locator("#toasts")).to_contain_text("Added: Ola Berg")
    page.goto(card_of(filled, "ola"))
    expect(page.locator("main")).to_contain_text("0172 2")
    page.click("main a:has-text('Remove')")
    page.click("main .btn.danger")
    page.locator("#toasts button", has_text="Undo").click()
    expect(page.locator("#toasts")).to_contain_text("as it was before")
    page.goto("/contacts?q=ola")
    expect(page.locator(".said-list li")).to_have_count(1)
