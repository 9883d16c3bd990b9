"""Nextcloud Talk in Chromium: set up on its card, tested, used in a chat, and chosen as a way to be told."""

import pytest
from playwright.sync_api import expect

from tests.e2e.browser import overflow_px
from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import forgive, go
from tests.e2e.person import new_chat, send, wait_for_end
from tests.talk_server import PASSWORD, USER, TalkDouble

pytestmark = pytest.mark.browser
ROOM = "fam1ly00"


def test_talk_is_set_up_read_in_a_chat_and_brings_notifications(house: Daemon, ada: Caller, opens: Opens) -> None:
    with TalkDouble() as nextcloud:
        nextcloud.room(ROOM, "Family")
        nextcloud.says(ROOM, "Bob", "who cooks tonight?")
        window = opens(house.origin, ada.token, width=390, height=844)
        page = go(window, "/admin/integrations#talk")
        card = page.locator("#talk")
        card.get_by_label("Address").fill(nextcloud.address)
        card.get_by_label("User name").fill(USER)
        card.get_by_label("App password").fill("not-the-one")
        card.get_by_role("button", name="Test").click()
        expect(card).to_contain_text("does not accept the user name and app password")
        forgive(window, 422)
        card.get_by_label("App password").fill(PASSWORD)
        card.get_by_role("button", name="Test").click()
        expect(card).to_contain_text("cortex is in 1 room")
        card.get_by_label("App password").fill(PASSWORD)
        card.get_by_role("button", name="Connect").first.click()
        expect(page.locator("#toasts")).to_contain_text("Saved: Nextcloud Talk")
        assert overflow_px(page) <= 0

        page.goto("/notifications/settings")
        way = page.locator("section", has=page.locator("#talk"))
        way.get_by_label("Link to the room").fill(nextcloud.link(ROOM))
        way.get_by_role("button", name="Save").click()
        page.locator("section", has=page.locator("#talk")).get_by_role("button", name="Send a test").click()
        expect(page.locator("#main")).to_contain_text("The test was sent")
        assert nextcloud.texts(ROOM)[-1].startswith("Cortex: test\nNotifications by Nextcloud Talk arrive here.")

        page = new_chat(window)
        send(page, 'what is new in the talk room "Family"?')
        wait_for_end(page)
        # The demo model fills no argument that a tool can do without: it lists the rooms.
        expect(page.locator("#main")).to_contain_text("nc_talk_history")
        expect(page.get_by_role("listitem").filter(has_text="Family")).to_be_visible()
        ada.post("/admin/integrations/talk/remove")
