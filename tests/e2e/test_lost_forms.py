"""What a person typed into a form that was not taken, by whatever: the form has it again, for that person alone."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.e2e.browser import Window
from tests.e2e.caller import PASSWORD, Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon

pytestmark = pytest.mark.browser

TYPED = "Call the plumber, and ask her about the boiler"
FORMS = (
    ("/tasks", "#new-title"),
    ("/notes", "[name=name]"),
    ("/scratchpad?edit=1", "textarea"),
    ("/jobs/new", "[name=prompt]"),
)
BACK = "It is in the form again."


@pytest.fixture
def opens(opens: Opens) -> Iterator[Opens]:
    """What fails here is meant to, and the console says so; a script that fails is not."""
    made: list[Window] = []

    def opened(origin: str, token: str = "", **options: Any) -> Window:
        made.append(opens(origin, token, **options))
        return made[-1]

    yield opened
    for window in made:
        window.complaints[:] = [line for line in window.complaints if line.startswith("pageerror")]


def typed(page: Page, path: str, field: str) -> None:
    page.goto(path)
    page.fill(field, TYPED)


def send(page: Page, field: str) -> None:
    page.locator(field).evaluate("box => box.form.noValidate = true")
    with page.expect_event("load"):  # htmx puts the address of its page anew as it starts: that is a navigation too
        page.locator(field).evaluate("box => box.form.requestSubmit()")


def log_out_unseen(window: Window) -> None:
    """The login ends, and the page learns of it by what is sent, not by what it looks up by itself just then."""

    def only_what_is_sent(route: Route) -> None:
        if route.request.method == "GET" and route.request.resource_type in ("fetch", "xhr", "eventsource"):
            route.abort()
        else:
            route.continue_()

    window.page.route("**/*", only_what_is_sent)
    window.context.clear_cookies()


def enter(page: Page, name: str) -> None:
    page.fill("[name=name]", name)
    page.fill("[name=password]", PASSWORD)
    page.click("main button.primary")


@pytest.mark.parametrize(("path", "field"), FORMS, ids=[path for path, _ in FORMS])
def test_a_form_has_its_words_again_after_the_login_that_had_ended(
    house: Daemon, ada: Caller, opens: Opens, path: str, field: str
) -> None:
    window = opens(house.origin, ada.token)
    page = window.page
    typed(page, path, field)
    log_out_unseen(window)
    send(page, field)
    page.unroute_all()
    page.fill("[name=name]", "Ada")
    page.fill("[name=password]", "not the one")
    page.click("main button.primary")
    enter(page, "Ada")
    expect(page.locator(field)).to_have_value(TYPED)
    expect(page.locator("#toasts")).to_contain_text(BACK)
    page.reload()
    expect(page.locator("#toasts")).not_to_contain_text(BACK)


def test_the_words_of_one_person_are_not_given_to_another_in_the_same_tab(
    house: Daemon, ada: Caller, opens: Opens
) -> None:
    with ada.invite("Grace"):
        window = opens(house.origin, ada.token)
        page = window.page
        page.goto("/c/new")
        page.fill("#text", TYPED)
        typed(page, "/tasks", "#new-title")
        log_out_unseen(window)
        send(page, "#new-title")
        page.unroute_all()
        enter(page, "Grace")
        expect(page.locator("#new-title")).to_have_value("")
        page.goto("/c/new")
        expect(page.locator("#text")).to_have_value("")


@pytest.mark.parametrize("is_ours", [True, False], ids=["our page", "a proxy's page"])
def test_a_form_has_its_words_again_after_an_error_and_not_when_they_were_taken(
    house: Daemon, ada: Caller, opens: Opens, is_ours: bool
) -> None:
    window = opens(house.origin, ada.token)
    page = window.page
    said = ada.get("/nowhere").text if is_ours else "Bad gateway"

    def away(route: Route) -> None:
        if route.request.method == "POST":
            route.fulfill(status=503, body=said, content_type="text/html")
        else:
            route.continue_()

    page.route("**/tasks", away)
    typed(page, "/tasks", "#new-title")
    send(page, "#new-title")
    page.goto("/tasks")
    expect(page.locator("#new-title")).to_have_value(TYPED)
    send(page, "#new-title")
    page.unroute("**/tasks")
    page.reload()  # sends it again
    expect(page.locator("li[id^=task-]", has_text=TYPED).first).to_be_visible()
    expect(page.locator("#new-title")).to_have_value("")
    page.goto("/tasks")
    expect(page.locator("#new-title")).to_have_value("")
