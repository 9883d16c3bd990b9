"""The calendar in Chromium over a real server: a desk, a phone, keys, no script, axe, no overflow."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from playwright.sync_api import Page, expect

from tests.dav_servers import PASSWORD, DavServer, event, radicale
from tests.e2e.browser import LOOKS, axe, overflow_px
from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import SMALL, forgive, go
from tests.e2e.person import poll

pytestmark = pytest.mark.browser

DAY = (datetime.now(UTC) + timedelta(days=7)).date()  # of next week
MONDAY = DAY - timedelta(days=DAY.weekday())


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
def filled(house: Daemon, ada: Caller, server: DavServer) -> Iterator[Caller]:
    """Ada's calendar, and Ben's, which she may read; reminders and a job beside them."""
    with ada.invite("Ben") as ben:
        for person, who, title in (("ann", ada, "Team"), ("ben", ben, "Parents' call")):
            url = server.make("Family", person)
            for count, (day, hours, name) in enumerate(
                ((0, (9, 11), title), (2, (14, 15), "Choir"), (2, (14, 16), "Swimming"), (5, (11, 14), "Market"))
            ):
                on = MONDAY + timedelta(days=day)
                times = (f"DTSTART:{on:%Y%m%d}T{hours[0]:02}0000Z", f"DTEND:{on:%Y%m%d}T{hours[1]:02}0000Z")
                server.put(url, f"e{count}", *event(f"{person}-{count}", name, *times), person=person)
            whole = event(f"{person}-w", "Oma visits", f"DTSTART;VALUE=DATE:{MONDAY + timedelta(days=5):%Y%m%d}")
            server.put(url, "whole", *whole, person=person)
            who.post("/calendar/accounts/server", address=server.base, username=person, password=PASSWORD)
            poll(partial(is_read, who))
        calendar = re.findall(r'action="(/calendar/calendars/\w+)"', ben.get("/calendar/accounts").text)[0]
        ben.post(calendar, access="write", shared_as="read")
        ada.post("/reminders", words=f"Blue bin on {DAY:%d %B %Y} at 20:00")
        ada.post("/jobs/new", name="List", prompt="Read.", when="every day at 7:30", kind="prompt")
        yield ada


def is_read(who: Caller) -> bool:
    return "Up to date" in who.get("/calendar/accounts").text


# Days and times that are cut off in their boxes.
NARROW = """() => [...document.querySelectorAll('.field[type=date],.field[type=time]')]
  .filter(one => one.offsetWidth < 120).map(one => `${one.id} ${one.offsetWidth}`)"""
PAGES = (
    f"/calendar?day={DAY}",
    f"/calendar?view=day&day={DAY}",
    f"/calendar?view=month&day={DAY}",
    "/calendar/accounts",
    f"/calendar/new?day={DAY}&at=15:00",
)


@LOOKS
def test_its_pages_hold_at_a_desk_and_on_a_phone(
    house: Daemon, filled: Caller, opens: Opens, is_phone: bool, is_dark: bool
) -> None:
    window = opens(house.origin, filled.token, is_phone=is_phone, is_dark=is_dark)
    places = [*PAGES, appointment(filled)]
    for place in places:
        page = go(window, place)
        assert axe(page) == [], place
        assert overflow_px(page) <= 0, place
        assert page.locator("h1").count() == 1
        assert page.evaluate(SMALL, 40 if is_phone else 24) == [], place
        assert page.evaluate(NARROW) == [], place
    assert window.complaints == []


def test_a_newcomer_connects_a_calendar_from_the_page_alone(
    house: Daemon, ada: Caller, opens: Opens, server: DavServer
) -> None:
    """By what the pages say, with a wrong password first; then they see what is on, and add to it."""
    url = server.make("Newcomer")
    server.put(url, "vet", *event("n-1", "Vet with Rex", f"DTSTART:{DAY:%Y%m%d}T090000Z", "DURATION:PT1H"))
    try:
        with ada.invite("Ola") as ola:
            window = opens(house.origin, ola.token)
            page = go(window, "/")
            page.get_by_role("link", name="Calendar", exact=True).first.click()
            page.get_by_role("link", name="Connect a calendar").first.click()
            page.fill("#f-address", server.base)
            page.fill("#f-username", "ann")
            page.fill("#f-password", "tulip")
            page.get_by_role("button", name="Connect").first.click()
            expect(page.locator("main [role=alert]")).to_contain_text("password")
            expect(page.locator("#f-address")).to_have_value(server.base)
            forgive(window, 422)
            page.fill("#f-password", PASSWORD)
            page.get_by_role("button", name="Connect").first.click()
            expect(page.locator("#toasts")).to_contain_text("Connected")
            poll(partial(is_read, ola))
            page.get_by_role("link", name="Back to the calendar").click()
            page.fill("#words", f"Haircut on {DAY:%d %B %Y}")
            page.keyboard.press("Enter")
            expect(page.locator("#toasts")).to_contain_text("Added: Haircut")
            expect(page.locator(".cal .ev[title^='Haircut, all day']")).to_be_visible()
            expect(page.locator(".cal .ev[title^='Vet with Rex, 09:00 to 10:00']")).to_be_visible()
    finally:
        server.delete(url)


def appointment(who: Caller) -> str:
    found = re.findall(r'href="(/calendar/appointments/[^"]+)"', who.get(f"/calendar?day={DAY}").text)
    return str(found[0]).replace("&amp;", "&")


def test_a_desk_shows_hours_and_a_phone_a_list(house: Daemon, filled: Caller, opens: Opens) -> None:
    desk = go(opens(house.origin, filled.token), f"/calendar?day={DAY}")
    expect(desk.locator(".cal .ev[title^='Team, 09:00 to 11:00, Ada']")).to_be_visible()
    height = desk.locator(".cal .ev[title^='Team']").bounding_box()
    assert height
    assert 76 <= height["height"] <= 80, "two hours, 40 px each"
    left, right = (desk.locator(f".ev[title^='{name}'][title*='Ada']").bounding_box() for name in ("Choir", "Swimming"))
    assert left
    assert right
    assert abs(left["y"] - right["y"]) < 1
    assert min(left["x"] + left["width"], right["x"] + right["width"]) <= max(left["x"], right["x"]) + 1
    expect(desk.locator(".cal-who")).to_contain_text("Ben")
    expect(desk.locator(".agd")).to_be_hidden()
    phone = go(opens(house.origin, filled.token, is_phone=True), f"/calendar?day={DAY}")
    expect(phone.locator(".cal")).to_be_hidden()
    expect(phone.locator(".strip li")).to_have_count(7)
    expect(phone.locator(".agd")).to_contain_text("Parents' call")
    expect(phone.locator(".tabbar [aria-current=page]")).to_contain_text("Calendar")


def test_keys_lead_to_views_and_weeks(house: Daemon, filled: Caller, opens: Opens) -> None:
    page = go(opens(house.origin, filled.token), f"/calendar?day={DAY}")
    for key, place in (
        ("ArrowRight", f"day={DAY + timedelta(days=7)}"),
        ("ArrowLeft", f"day={DAY}"),
        ("m", "view=month"),
        ("d", "view=day"),
        ("w", "view=week"),
    ):
        page.keyboard.press(key)
        page.wait_for_url(re.compile(re.escape(place)))
    page.keyboard.press("t")
    page.wait_for_url(lambda url: "day=" not in url)
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.wait_for_url("**/tasks")


def test_an_empty_hour_is_pressed_and_a_sentence_written(house: Daemon, filled: Caller, opens: Opens) -> None:
    page = go(opens(house.origin, filled.token), f"/calendar?day={DAY}")
    page.locator(f".slot[href$='day={MONDAY}&at=16:00']").click()
    page.wait_for_url("**/calendar/new?**")
    expect(page.locator("#f-day")).to_have_value(str(MONDAY))
    expect(page.locator("#f-starts")).to_have_value("16:00")
    page.fill("#f-title", "Tea with Mia")
    page.click("main .btn.primary")
    expect(page.locator("#toasts")).to_contain_text("Added: Tea with Mia")
    expect(page.locator(".cal .ev[title^='Tea with Mia, 16:00 to 17:00']")).to_be_visible()
    page.fill("#words", f"Vet on {DAY:%d %B %Y} at 10:00")
    page.keyboard.press("Enter")
    expect(page.locator("#toasts")).to_contain_text("Added: Vet")
    page.locator("#toasts .btn", has_text="Undo").click()
    expect(page.locator("#toasts")).to_contain_text("as it was before")
    go_back = page.goto(f"/calendar?day={DAY}")
    assert go_back
    expect(page.locator(".cal .ev[title^='Vet']")).to_have_count(0)


def test_all_of_it_works_without_a_script(house: Daemon, filled: Caller, opens: Opens, server: DavServer) -> None:
    page: Page = opens(house.origin, filled.token, has_script=False).page
    page.goto(f"/calendar/new?day={DAY}&at=18:00")
    page.fill("#f-title", "Oven on")
    page.click("main .btn.primary")
    page.locator(".cal .ev[title^='Oven on']").click()
    page.fill("#f-place", "Kitchen")
    page.click("main .btn.primary")
    page.locator(".cal .ev[title*='Kitchen']").click()
    page.click("main a:has-text('Remove')")
    page.click("main .btn.danger")
    expect(page.locator(".cal .ev[title^='Oven on']")).to_have_count(0)
    page.locator("#toasts button", has_text="Undo").click()
    page.goto(f"/calendar?day={DAY}")
    expect(page.locator(".cal .ev[title^='Oven on']")).to_have_count(1)
    page.goto("/calendar/accounts")
    page.click("main button:has-text('Sync now')")
    expect(page.locator("#toasts")).to_contain_text("Asking the server")
    page.click("main button:has-text('Make an address')")
    expect(page.locator("code.link-out")).to_contain_text("/calendar/feed/")
