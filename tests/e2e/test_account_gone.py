"""An account deleted on its page in Chromium: not by a wrong name or password, then with all of it, at once."""

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.browser import overflow_px
from tests.e2e.caller import PASSWORD, Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import forgive, forgive_lost_login, go
from tests.e2e.person import poll

pytestmark = pytest.mark.browser


def test_a_person_deletes_their_account_and_is_out_everywhere(house: Daemon, ada: Caller, opens: Opens) -> None:
    link = ada.post("/admin/users", name="Cy", rank="member").text.partition("/welcome#")[2].partition("<")[0]
    with Caller(house) as cy:
        cy.post("/welcome", token=link, password=PASSWORD)
        cy.log_in("Cy")
        cy.send("new", "add truffles to my shopping list")
        window, other = opens(house.origin, cy.token, width=390, height=844), opens(house.origin, cy.token)
        page, elsewhere = go(window, "/account/data"), go(other, "/tasks")
        page.get_by_role("link", name="Delete my account").click()
        expect(page.get_by_label("Type Cy")).to_be_visible()
        assert overflow_px(page) <= 0
        page.get_by_label("Type Cy").fill("Cyd")
        page.get_by_label("Your password").fill(PASSWORD)
        page.get_by_role("button", name="Delete for good").click()
        expect(page.locator("#main")).to_contain_text("Type the name Cy")
        page.get_by_label("Type Cy").fill("cy")
        page.get_by_label("Your password").fill("not the password at all")
        page.get_by_role("button", name="Delete for good").click()
        expect(page.locator("#main")).to_contain_text("The password is wrong.")
        forgive(window, 403)
        forgive(window, 422)
        page.get_by_label("Type Cy").fill("cy")
        page.get_by_label("Your password").fill(PASSWORD)
        page.get_by_role("button", name="Delete for good").click()
        page.wait_for_url(re.compile("/login"))
        elsewhere.goto("/tasks")
        elsewhere.wait_for_url(re.compile("/login"))
        forgive_lost_login(window, other)
    # The page is told that its login has ended before the last of the rows is gone.
    poll(lambda: "Cy" not in ada.get("/admin/users").text)
    assert "user.deleted" in ada.get("/admin/audit").text
