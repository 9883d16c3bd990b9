"""An admin shares a model and invites somebody, who chats with it at once: the real daemon in real Chromium."""

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import DESK, PHONE, Window, axe
from tests.e2e.caller import PASSWORD
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import forgive
from tests.e2e.person import ask, new_chat, said, set_up, wait_for_end
from tests.scripted_server import ScriptedServer, Use, rule

pytestmark = pytest.mark.browser

GIVEN = "Big (from Ada)"
PAGES = (
    "/c/new",
    "/models",
    "/models/connect",
    "/models/new",
    "/usage",
    "/account/roles",
    "/health",
    "/runs",
    "/notifications",
)


def add_model(window: Window, server: ScriptedServer) -> None:
    """By its server's own list, then shared with everybody by its form."""
    page = window.page
    page.goto("/models/connect")
    card = page.locator("#pv-other")
    card.locator("summary").first.click()
    card.locator("[name=base_url]").fill("ftp://nowhere")
    card.locator("[name=api_key]").fill("a-wrong-key")
    card.locator("button.primary").click()
    expect(card.locator(".fr-e")).to_contain_text("Write an address like")
    expect(card.locator("[name=api_key]")).to_have_value("a-wrong-key")
    forgive(window, 422)
    card.locator("[name=base_url]").fill(server.base_url)
    card.locator("button.primary").click()
    expect(page.locator("#choose h2")).to_be_focused()
    expect(page.locator("[name=pick]")).to_be_checked()
    assert axe(page) == []
    page.get_by_role("button", name="Use these").click()
    expect(page.locator("main .fr-e")).to_contain_text("Incorrect API key provided.")
    expect(page.get_by_role("button", name="Save anyway")).to_be_visible()
    forgive(window, 422)
    assert axe(page) == []
    page.fill("main [name=api_key]", server.api_key)
    page.get_by_role("button", name="Use these").click()
    expect(page.locator(".toast")).to_contain_text("scripted answers from now on")
    row = page.locator("#own tbody tr")
    page.get_by_role("button", name="Test scripted").click()
    expect(page.locator("#report")).to_contain_text("Tools are not sent to it from now on")
    expect(row).to_contain_text("no tools")
    page.get_by_role("button", name="Send tools all the same").click()
    expect(row).not_to_contain_text("no tools")
    page.get_by_role("link", name="Edit scripted").click()
    page.get_by_role("button", name="Test connection").click()
    expect(page.locator("#report")).to_contain_text("It works.")
    expect(page.locator("#report")).to_be_in_viewport()
    page.fill("[name=name]", "Big")
    page.fill("[name=model]", "hidden-id")
    expect(page.locator("[name=share]")).to_have_value("")
    page.select_option("[name=share]", "everybody")
    page.locator("button.primary", has_text="Save").click()
    expect(page.get_by_text("your key pays")).to_contain_text("everybody ($1.00 a day)")


def invite(page: Page, name: str) -> str:
    """The link for somebody new."""
    page.goto("/admin/users")
    page.fill("main [name=name]", name)
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("main [role=status]").first).to_contain_text(GIVEN)
    return page.locator(".link-out").inner_text()


def test_whoever_is_invited_chats_with_the_admins_model_and_sees_nothing_of_theirs(
    daemon: Daemon, opens: Opens, scripted: ScriptedServer
) -> None:
    scripted.api_key = "sk-adas-own-key-4711"
    scripted.rules = [rule("milk", Use("task_create", {"title": "milk"}), "Added milk."), rule("secret", "Kept.")]
    daemon.start()
    admin = opens(daemon.origin)
    set_up(admin, daemon)
    add_model(admin, scripted)
    ask(new_chat(admin), "my secret is chanterelles")
    link = invite(admin.page, "Bob")

    member = opens(daemon.origin)
    page = member.page
    page.goto(link)
    page.fill("[name=password]", PASSWORD)
    page.click("main button.primary")
    page.wait_for_url("**/start**")
    page.goto("/c/new")
    page.set_viewport_size(PHONE)
    page.click("h1 button")
    expect(page.locator("#menu")).to_contain_text(GIVEN)
    expect(page.locator("#menu")).to_contain_text("Ada's key pays")
    page.keyboard.press("Escape")
    page.set_viewport_size(DESK)
    expect(page.locator("#who")).to_contain_text(GIVEN)
    answer = ask(page, "add milk to my shopping list")
    assert said(answer) == "Added milk."
    expect(answer.locator("details.tool.ok .tn")).to_have_text("task_create")
    assert scripted.log[-1].headers["authorization"] == f"Bearer {scripted.api_key}"
    for path in PAGES:
        page.goto(path)
        shown = page.content()
        assert all(
            hidden not in shown for hidden in (scripted.api_key, str(scripted.port), "hidden-id", "chanterelles")
        )
    page.goto("/models")
    expect(page.get_by_role("table", name="Shared with you")).to_contain_text("$1.00 a day")

    admin.page.goto("/models/edit?name=Big")
    expect(admin.page.get_by_role("table", name="Use of your models by others")).to_contain_text("Bob")
    admin.page.select_option("[name=share]", "")
    admin.page.locator("button.primary", has_text="Save").click()
    admin.page.wait_for_url("**/models")
    calls = len(scripted.log)
    ask(new_chat(member), "hello")
    wait_for_end(page)
    assert len(scripted.log) == calls, "nothing is asked of a model that was taken back"
    assert scripted.api_key not in daemon.log
