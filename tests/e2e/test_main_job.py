"""The main job in a real browser, with the real daemon: from the printed link to work that is done, and taken back."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.children import Program
from tests.e2e.caller import PASSWORD, Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.person import (
    allow_once,
    ask,
    log_in,
    log_of,
    new_chat,
    said,
    same_after_reload,
    send,
    set_up,
    tools_panel,
    wait_for_end,
)

pytestmark = pytest.mark.browser

SHELL = "run `df -h` in the shell"
PAGES = (
    "/c/new",
    "/tasks",
    "/tasks?done=1",
    "/notes",
    "/skills",
    "/models",
    "/account",
    "/account/look",
    "/search?q=milk",
    "/chats",
    "/health",
    "/more",
    "/admin",
    "/admin/users",
)


def tasks_on_page(page: Page) -> list[str]:
    page.goto("/tasks")
    return page.locator("li[id^=task-] .t a").all_inner_texts()


def test_from_the_printed_link_to_a_task_that_is_done_and_taken_back(daemon: Daemon, opens: Opens) -> None:
    daemon.starts = Program
    daemon.start()
    window = opens(daemon.origin, time_zone="Asia/Tokyo")
    page = window.page
    set_up(window, daemon)
    page.goto("/account")
    expect(page.locator("[name=time_zone]")).to_have_value("Asia/Tokyo")  # as the browser has it
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url("**/login")
    log_in(window)
    new_chat(window)

    answer = ask(page, "add milk and eggs to my shopping list")
    card = answer.locator("details.tool")
    expect(card).to_have_count(2)  # one for each of the two
    expect(card.locator(".tn").first).to_have_text("task_create")
    expect(card.first).to_have_class("tool ok")
    assert "milk" in card.first.locator(".ta").inner_text()
    assert said(answer)
    expect(page.locator("#title")).not_to_have_text("New chat")
    expect(answer.locator(".foot .meta")).to_contain_text("tools")
    same_after_reload(page)

    chat = page.url
    titles = tasks_on_page(page)
    assert len(titles) == 2
    assert "milk" in titles[0]
    assert "eggs" in titles[1]

    page.goto(chat)
    for undone in (1, 2):
        page.locator(".deed").get_by_role("button", name="Undo").first.click()
        expect(page.locator("details.tool.undone")).to_have_count(undone)
    same_after_reload(page)
    assert tasks_on_page(page) == []


def test_a_shell_command_waits_for_a_word_and_the_word_is_kept(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = new_chat(opens(house.origin, ada.token))
    send(page, SHELL)
    question = page.locator(".ask")
    expect(question.locator("pre")).to_contain_text("df -h")
    assert page.evaluate("() => document.activeElement.closest('.ask') === null"), "a card must not steal the focus"
    same_after_reload(page)
    question.locator("[value=deny]").click()
    wait_for_end(page)
    expect(question).to_have_count(0)
    expect(page.locator("details.tool")).to_have_class("tool refused")
    expect(page.locator("details.tool .ta small")).to_have_text("You did not allow it.")
    expect(page.locator("details.tool")).to_contain_text("denied by you")
    assert "Filesystem" not in log_of(page)

    answer = send(page, SHELL)
    allow_once(page)
    wait_for_end(page)
    expect(answer.locator("details.tool")).to_have_class("tool ok")
    assert "Filesystem" in said(answer)
    same_after_reload(page)

    send(page, SHELL)
    expect(question).to_be_visible()  # once was once
    question.locator("[value=deny]").click()
    wait_for_end(page)
    same_after_reload(page)


def test_a_member_is_refused_the_shell_and_sees_nothing_of_the_admin(house: Daemon, ada: Caller, opens: Opens) -> None:
    theirs = ada.send("new", "add chanterelles to my shopping list")
    with ada.invite("Bob") as bob:
        page = new_chat(opens(house.origin, bob.token))
        answer = ask(page, SHELL)
        expect(page.locator(".ask")).to_have_count(0)
        expect(answer.locator("details.tool.ok")).to_have_count(0)
        assert "Filesystem" not in log_of(page)
        assert tasks_on_page(page) == []
        assert "chanterelles" not in page.content()
        assert bob.get(f"/c/{theirs}").status_code == 404


def test_chat_only_sends_no_tool(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = new_chat(opens(house.origin, ada.token))
    answer = ask(page, "add figs to my shopping list", mode="chat")
    expect(answer.locator("details.tool")).to_have_count(0)
    expect(answer.locator(".foot .meta")).to_contain_text("no tools")
    answer = ask(page, "add plums to my shopping list", mode="auto")
    expect(answer.locator("details.tool")).to_have_count(1)
    same_after_reload(page)
    titles = " ".join(tasks_on_page(page))
    assert "plums" in titles
    assert "figs" not in titles


def test_the_price_is_shown_before_sending_and_the_reasons_after(house: Daemon, ada: Caller, opens: Opens) -> None:
    page = new_chat(opens(house.origin, ada.token))
    page.fill("#text", "add a lamp to my shopping list")
    told = re.compile(r"^Auto · [1-9]\d? tools? · 5 rounds")
    expect(page.get_by_role("button", name=told)).to_be_visible()
    with tools_panel(page) as panel:
        expect(panel.locator("#n-auto")).to_have_text(re.compile(r"^[1-9]\d? tools?[1-9][\d,]* tokens$"))
        expect(panel.locator("#price")).to_have_text("Free: no AI answers")
    ask(page, "add a lamp to my shopping list")
    page.locator(".foot .whyb").click()
    expect(page.locator("#why-b")).to_contain_text("task_create")


def test_every_page_is_quiet_in_the_console(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token)
    page = new_chat(window)
    ask(page, "add candles to my shopping list")
    seen = {page.url}
    for path in PAGES:
        page.goto(path)
        if "/confirm" in page.url:
            page.fill("[name=password]", PASSWORD)
            page.click("main button.primary")
            page.wait_for_url(f"**{path}")
        links = page.locator("nav.side .nav a, a.card").evaluate_all("all => all.map(one => one.href)")
        seen |= {house.origin + path, *links}
    for address in sorted(seen):
        answered = page.goto(address)
        assert answered is not None
        assert answered.status == 200, address
        expect(page.locator("h1")).to_have_count(1)
