"""A shopping list that two people have open in Chromium: both add and tick at once, both see all of it as it comes."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import Window, axe, overflow_px
from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import forgive, go

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def bob(ada: Caller) -> Iterator[Caller]:
    """Invited."""
    with ada.invite("Bob") as invited:
        yield invited


def share(window: Window, name: str, theirs: Window) -> Page:
    """Offer a list to Bob, who accepts it on his page of tasks; the owner's page of the list."""
    page = go(window, f"/tasks?list={name}")
    page.get_by_role("link", name="Share or rename").click()
    page.get_by_label("Bob").check()
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#toasts")).to_contain_text("Shared with Bob, once they accept.")
    his = go(theirs, "/tasks")
    his.get_by_role("group", name=f"Ada wants to share a list with you: {name}").get_by_role(
        "button", name="Accept"
    ).click()
    expect(his.locator(".with").first).to_contain_text("with Ada")
    expect(page.locator(".with")).to_contain_text("with Bob")
    return page


def add(page: Page, title: str) -> None:
    page.get_by_label("New task").fill(title)
    page.get_by_role("button", name="Add", exact=True).click()


def test_two_who_add_and_tick_at_once_both_see_all(house: Daemon, ada: Caller, bob: Caller, opens: Opens) -> None:
    ada.post("/tasks", title="bread", list_name="shopping")
    theirs = "/tasks?list=shopping%20(Ada)"
    window = opens(house.origin, bob.token, is_phone=True)
    hers = share(opens(house.origin, ada.token), "shopping", window)
    his = go(window, theirs)
    expect(his.locator(".with")).to_contain_text("with Ada")
    expect(his.locator(".lines .line")).to_have_count(1)
    for number in range(5):
        add(hers, f"from Ada {number}")
        add(his, f"from Bob {number}")
    for page in (hers, his):
        expect(page.locator(".lines .line")).to_have_count(11)
    expect(hers.locator(".lines")).to_contain_text("added by Bob")
    expect(his.locator(".lines")).to_contain_text("added by Ada")
    # What is being written stays while the other's entries come in.
    his.get_by_label("New task").fill("half a wo")
    hers.get_by_role("button", name="Done: from Bob 0").click()
    expect(his.get_by_role("button", name="Done: from Bob 0")).to_have_count(0)
    expect(his.get_by_label("New task")).to_have_value("half a wo")
    mine, yours = (page.get_by_role("button", name="Done: bread").element_handle() for page in (hers, his))
    mine.dispatch_event("click")
    yours.dispatch_event("click")  # by its handle: a slow machine may have shown him already that it is done
    window.complaints[:] = [one for one in window.complaints if "form is not connected" not in one]
    for page in (hers, his):
        expect(page.locator(".lines .line")).to_have_count(9)
        assert axe(page) == []
        assert overflow_px(page) == 0
    his.goto(f"{theirs}&done=1")
    expect(his.locator(".lines .line")).to_have_count(2)
    expect(his.locator(".lines")).to_contain_text("done by Ada")


def test_who_is_taken_out_or_leaves_sees_nothing_at_once(house: Daemon, ada: Caller, bob: Caller, opens: Opens) -> None:
    ada.post("/tasks", title="rake", list_name="garden")
    window = opens(house.origin, bob.token)
    hers = share(opens(house.origin, ada.token), "garden", window)
    his = go(window, "/tasks?list=garden%20(Ada)")
    expect(his.locator(".lines")).to_contain_text("rake")
    hers.get_by_role("link", name="Sharing").click()
    expect(hers.get_by_label("Bob")).to_be_checked()
    assert axe(hers) == []
    hers.get_by_label("Bob").uncheck()
    hers.get_by_role("button", name="Save").click()
    expect(his.locator("#todo")).not_to_contain_text("rake")
    expect(hers.locator(".lines")).to_contain_text("rake")
    add(his, "for nobody")
    expect(his.get_by_role("alert").first).to_contain_text("shares no such list")
    forgive(window, 422)
    share(opens(house.origin, ada.token), "garden", window)
    his.goto("/tasks?list=garden%20(Ada)")
    his.get_by_role("link", name="List settings").click()
    expect(his.get_by_role("button", name="Leave list")).to_be_visible()
    assert axe(his) == []
    his.get_by_role("button", name="Leave list").click()
    expect(his.locator("#toasts")).to_contain_text("You left garden (Ada)")
    expect(his.locator("#todo")).not_to_contain_text("rake")
