"""Mail accounts in Chromium over a real Dovecot: a desk, a phone, light and dark, axe, no overflow, no script."""

from collections.abc import Iterator
from functools import partial

import pytest
from playwright.sync_api import expect

from tests.e2e.browser import axe, overflow_px
from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import SMALL, go
from tests.e2e.person import poll
from tests.imap_servers import PASSWORD, ImapServer, dovecot, mail

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def server() -> Iterator[ImapServer]:
    with dovecot() as running:
        running.deliver(mail("Truffles"))
        yield running


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, server: ImapServer) -> Iterator[Daemon]:
    place = f"127.0.0.1:{server.port}"
    made = Daemon(
        tmp_path_factory.mktemp("house") / "home", delay_ms=4, MAIL_SERVERS=place, GOOGLE_CLIENT_ID="cortex-of-ada"
    )
    made.start()
    yield made
    made.close()


def is_read(who: Caller) -> bool:
    return "Up to date" in who.get("/mail").text


def test_a_newcomer_connects_a_mailbox_from_the_page_alone_without_script(
    house: Daemon, ada: Caller, opens: Opens, server: ImapServer
) -> None:
    window = opens(house.origin, ada.token, has_script=False)
    page = go(window, "/more")
    page.locator("main").get_by_role("link", name="Mail accounts").click()
    form = page.locator("form[action='/mail']")
    form.get_by_label("E-mail address").fill("ann@example.org")
    form.get_by_label("Password").fill("wrong one")
    form.locator("summary").click()
    form.get_by_label("IMAP server").fill("127.0.0.1")
    form.get_by_label("Encryption").select_option("none")
    form.get_by_label("Port").fill(str(server.port))
    form.get_by_label("Name").fill("ann")
    form.get_by_role("button", name="Connect").click()
    expect(page.locator("main")).to_contain_text("password")
    expect(page.get_by_label("IMAP server")).to_have_value("127.0.0.1")
    page.locator("form[action='/mail']").get_by_label("Password").fill(PASSWORD)
    page.locator("form[action='/mail']").get_by_role("button", name="Connect").click()
    expect(page.locator("main h2")).to_contain_text(["ann@example.org"])
    poll(partial(is_read, ada))
    page.reload()
    folders = page.locator("details", has_text="Cortex reads")
    folders.locator("summary").click()
    folders.get_by_label("Sent").uncheck()
    folders.get_by_role("button", name="Save").click()
    page.locator("details", has_text="Cortex reads").locator("summary").click()
    expect(page.get_by_label("Sent")).not_to_be_checked()
    window.complaints[:] = [line for line in window.complaints if "422" not in line]  # the wrong password's answer
    assert window.complaints == []


@pytest.mark.parametrize("is_phone", [False, True], ids=["desk", "phone"])
@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_the_page_holds_at_a_desk_and_on_a_phone(
    house: Daemon, ada: Caller, opens: Opens, server: ImapServer, is_phone: bool, is_dark: bool
) -> None:
    """With an account and all that folds opened."""
    if "ann@example.org" not in ada.get("/mail").text:
        ada.post("/mail", address="ann@example.org", password=PASSWORD, host="127.0.0.1", port=str(server.port),
                 security="none", username="ann")  # fmt: skip
    window = opens(house.origin, ada.token, is_phone=is_phone, is_dark=is_dark)
    page = go(window, "/mail")
    for summary in page.locator("main summary").all():
        if not summary.evaluate("one => one.parentElement.open"):
            summary.click()
    assert axe(page) == []
    assert overflow_px(page) <= 0
    assert page.locator("h1").count() == 1
    assert page.evaluate(SMALL, 40 if is_phone else 24) == []
    assert window.complaints == []


def test_a_login_at_the_provider_is_told_in_steps(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token, is_phone=True)
    page = go(window, "/mail")
    page.get_by_text("Log in at your provider").click()
    page.locator("#f-login").fill("ada@gmail.com")
    page.get_by_role("button", name="Log in with Google").click()
    link = page.get_by_role("link", name="Open the page of the provider")
    assert str(link.get_attribute("href")).startswith("https://accounts.google.com/")
    assert axe(page) == []
    assert overflow_px(page) <= 0
