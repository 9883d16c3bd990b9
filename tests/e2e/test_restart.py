"""Restarting from the page and by the tool: the answer ends first, the same process begins anew, pages come back."""

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import forgive_absence, go
from tests.e2e.person import allow_once, new_chat, poll, send, wait_for_end

pytestmark = pytest.mark.browser


def starts(house: Daemon) -> int:
    return house.log.count("Cortex is at ")


def test_the_button_restarts_and_an_open_chat_comes_back_by_itself(house: Daemon, ada: Caller, opens: Opens) -> None:
    before, pid = starts(house), house.pid
    talking, looking = opens(house.origin, ada.token), opens(house.origin, ada.token)
    chat = new_chat(talking)
    send(chat, "hello")
    wait_for_end(chat)
    admin = go(looking, "/admin/health")
    admin.get_by_role("link", name="Restart Cortex").click()
    admin.get_by_role("button", name="Restart").click()
    poll(lambda: starts(house) > before)
    assert (house.pid, house.has_ended) == (pid, False)
    expect(chat.locator("#offline")).to_be_hidden()
    send(chat, "hello again")
    expect(chat.locator(".turn.user")).to_have_count(2)
    wait_for_end(chat)
    assert re.search("server.restart", ada.get("/admin/audit?kind=server").text)
    forgive_absence(talking, looking)


def test_the_tool_asks_answers_first_and_restarts_then(house: Daemon, ada: Caller, opens: Opens) -> None:
    before = starts(house)
    window = opens(house.origin, ada.token)
    page = new_chat(window)
    send(page, "restart cortex please")
    expect(page.locator(".ask")).to_be_visible()
    allow_once(page)
    wait_for_end(page)
    expect(page.locator("#main")).to_contain_text("Cortex restarts as soon as this turn has ended")
    poll(lambda: starts(house) > before)
    page.reload()
    expect(page.locator("#main")).to_contain_text("Cortex restarts as soon as this turn has ended")
    expect(page.locator(".turn.user")).to_have_count(1)
    forgive_absence(window)
