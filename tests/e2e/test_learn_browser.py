"""Learning from use, in Chromium with the real daemon: a tool that was called unsent, accepted, sent, undone; a refit.

The model is scripted: it calls a tool that nobody gave it.
"""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import go
from tests.e2e.person import ask, new_chat
from tests.e2e.test_admin_tools import tools_of, why
from tests.scripted_server import ScriptedServer, Use, rule

pytestmark = pytest.mark.browser

SAID = "frobnicate the zorblax for me"
LEARN = "/admin/tools/learn"


@pytest.fixture(scope="module")
def model(ada: Caller) -> Iterator[ScriptedServer]:
    """A model that calls the scratchpad for an odd message, whether or not it was given it."""
    with ScriptedServer(rule("zorblax", Use("scratch_read", is_blind=True), "The pad is empty.")) as server:
        form = {"name": "Scripted", "provider": "openai", "model": "scripted-1", "streams": "1", "tools": "1"}
        ada.post("/models", base_url=server.base_url, api_key=server.api_key, **form)
        yield server
        assert server.problems == []


def test_a_wording_that_needed_a_tool_is_accepted_acts_at_once_and_is_undone(
    house: Daemon, ada: Caller, opens: Opens, model: ScriptedServer
) -> None:
    window = opens(house.origin, ada.token)
    page = window.page
    for _ in range(2):
        answer = ask(new_chat(window), SAID)
        expect(answer.locator("details.tool.ok .tn")).to_have_text("scratch_read")
    assert "scratch_read" not in model.log[-2].tools, "it was called though it was not sent"

    go(window, LEARN)
    section = page.locator("section", has=page.locator("#t-scratch_read"))
    expect(section).to_contain_text("needed 2 times: 2 × called though it was not sent")  # noqa: RUF001
    expect(section.locator("tbody tr")).to_have_count(1)
    expect(section.locator("tbody tr")).to_contain_text(SAID)
    section.get_by_role("button", name="Add as example").click()
    expect(page.locator("#toasts")).to_contain_text("Applies from the next message on.")
    expect(page.locator("main")).to_contain_text("Nothing to learn right now.")

    ask(new_chat(window), SAID)
    assert "scratch_read" in model.log[-2].tools, "now it is sent with the first request"
    assert "scratch_read" in tools_of(why(page))

    go(window, LEARN)
    page.get_by_role("button", name=re.compile("Undo: scratch_read")).click()
    expect(page.locator("#t-scratch_read")).to_be_visible()
    ask(new_chat(window), SAID)
    assert "scratch_read" not in model.log[-2].tools


def test_a_phrase_is_typed_and_speaks_for_the_tool(
    house: Daemon, ada: Caller, opens: Opens, model: ScriptedServer
) -> None:
    window = opens(house.origin, ada.token)
    page = window.page
    go(window, LEARN)
    page.get_by_label("Phrase").first.fill("frobnicate the zorblax")
    page.keyboard.press("Enter")
    expect(page.locator("#toasts")).to_contain_text("speaks for scratch_read")
    ask(new_chat(window), "please frobnicate the zorblax tomorrow")
    assert "scratch_read" in model.log[-2].tools


def test_a_refit_shows_what_it_changed_and_is_undone(house: Daemon, ada: Caller, opens: Opens) -> None:
    lines = "\n".join(
        f"{verb} the dragon [scratch_write]"
        for verb in ("feed", "wake", "warm", "cool", "wash", "calm", "weigh", "tame")
    )
    ada.post("/admin/tools/in/scratchpad", examples=lines, do="save")
    window = opens(house.origin, ada.token)
    page = window.page
    go(window, LEARN)
    with page.expect_navigation():
        page.get_by_role("button", name=re.compile("Refit with")).click()
    row = page.locator("tr.now")
    expect(row).to_contain_text("in use")
    expect(row).to_contain_text(re.compile(r"→ [\d.]+ %"))
    page.get_by_role("button", name="Undo refit 1").click()
    expect(page.locator("tr.now")).to_have_count(0)
    expect(page.get_by_role("button", name="Use: 1")).to_be_visible()


def test_a_member_opens_none_of_it(house: Daemon, ada: Caller, opens: Opens) -> None:
    with ada.invite("Bert") as member:
        window = opens(house.origin, member.token)
        go(window, LEARN, status=403)
