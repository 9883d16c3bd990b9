"""The first day on a real daemon: the account, others let in by this network, a phone that scans, another person."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import PHONE, axe, overflow_px
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import forgive_absence, go
from tests.e2e.person import poll

pytestmark = pytest.mark.browser
PASSWORD = "a few words in a row"


def code(page: Page) -> str:
    """The address in a code that is shown, as whoever scans it opens it."""
    return page.locator(".scan code").inner_text()


def test_a_phone_opens_it_by_the_network_and_another_person_comes_in(daemon: Daemon, opens: Opens) -> None:
    daemon.start()
    desk = opens(daemon.origin)
    page = go(desk, daemon.setup_link)
    assert axe(page) == []
    page.get_by_label("Your name").fill("Ada")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_role("heading", name="Hello Ada. Four questions.")).to_be_visible()
    expect(page.locator("#done")).to_have_text("0 of 4 work")
    assert axe(page) == []

    lives = daemon.log.count("Cortex is at ")
    page.get_by_text("This network", exact=True).click()
    address = page.locator("#open code").first.inner_text()  # as the daemon finds it; the tests' own network is off
    if not address.startswith("http://"):
        pytest.skip("needs an address in a network")
    page.get_by_role("button", name="Open it to this network").click()
    poll(lambda: daemon.log.count("Cortex is at ") > lives)
    expect(page.locator("#trial")).to_contain_text("unless you keep it")  # the page came back by itself
    page.get_by_role("button", name="Keep it").click()
    expect(page.locator("#trial form")).to_have_count(0)
    page.get_by_role("button", name="Try it from a phone").click()
    phone = opens(address, width=PHONE["width"], height=PHONE["height"], is_phone=True)
    phone.page.goto(code(page))
    phone.page.get_by_role("button", name="Log in here").click()
    expect(phone.page.get_by_role("heading", name="Hello Ada. Four questions.")).to_be_visible()
    assert overflow_px(phone.page) <= 0
    expect(page.locator("#state-open")).to_have_text("Works")  # without a reload

    page.locator("#people > summary").click()
    page.get_by_label("Name", exact=True).last.fill("Ben")
    page.get_by_role("button", name="Make a code").click()
    expect(page.locator("#state-people")).to_have_text("Waiting for Ben")
    link = code(page)
    assert link.startswith(f"{address}/welcome#")
    assert axe(page) == []
    guest = opens(address, is_phone=True)
    guest.page.goto(link)
    expect(guest.page.locator("main")).to_contain_text("Ada invited you")
    guest.page.get_by_label("Password", exact=True).fill(PASSWORD)
    guest.page.get_by_role("button", name="Continue").click()
    expect(page.locator("#state-people")).to_have_text("Works")
    expect(page.locator("#done")).to_have_text(re.compile("2 of 4"))
    forgive_absence(desk)
    for window in (phone, guest):  # without https
        window.complaints[:] = [one for one in window.complaints if "Cross-Origin-Opener-Policy" not in one]
