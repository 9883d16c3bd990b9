"""Tools in the admin's hands, in Chromium with the real daemon: what is set there is what the next message gets."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.children import environment, run
from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import go
from tests.e2e.person import ask, new_chat, poll

pytestmark = pytest.mark.browser

MILK = "add milk to my shopping list"
ODD = "frobnicate zorblax"


@pytest.fixture(scope="module")
def bob(house: Daemon, ada: Caller) -> Iterator[Caller]:
    with ada.invite("Bob") as member:
        yield member


def why(page: Page) -> Page:
    """The page that says why the last answer had its tools."""
    page.goto(str(page.locator(".turn.bot .whyb").last.get_attribute("href")))
    return page


def tools_of(page: Page) -> set[str]:
    """The tools that the page of reasons says were sent."""
    return {name for name in page.locator("main .why-t tbody b").all_inner_texts() if "_" in name}


def explained(house: Daemon, message: str) -> dict[str, Any]:
    """What `cortex explain` says of this message, on the same home."""
    done = run(("explain", message, "--json"), env=environment(house.home), cwd=house.home)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def saved(page: Page, name: str, *, is_off: bool) -> None:
    """Until the row of the tool has come back as it is kept."""
    poll(lambda: bool(page.locator(f"#t-{name}.off").count()) == is_off)


def test_a_tool_that_is_turned_off_is_not_there_for_the_next_message(
    house: Daemon, ada: Caller, bob: Caller, opens: Opens
) -> None:
    admin, member = opens(house.origin, ada.token), opens(house.origin, bob.token)
    ask(new_chat(member), MILK)
    assert "task_create" in member.page.locator("details.tool .tn").all_text_contents()
    page = go(admin, "/admin/tools?q=task_create")
    switch = page.locator("#on-task_create")
    switch.focus()
    page.keyboard.press("Space")
    saved(page, "task_create", is_off=True)
    expect(switch).to_be_focused()
    expect(switch).not_to_be_checked()

    ask(new_chat(member), "add eggs to my shopping list")
    assert "task_create" not in member.page.locator("details.tool .tn").all_text_contents()
    assert "task_create" not in tools_of(why(member.page))
    ask(new_chat(member), f"use task_create: {MILK}")
    assert "task_create" not in member.page.locator("details.tool.ok .tn").all_text_contents()

    page.reload()
    expect(switch).not_to_be_checked()
    switch.check()
    saved(page, "task_create", is_off=False)
    ask(new_chat(member), "add eggs to my shopping list")
    assert "task_create" in member.page.locator("details.tool .tn").all_text_contents()


def test_a_tool_told_to_ask_first_asks(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token)
    page = go(window, "/admin/tools/task_create")
    page.check("[name=asks_first]")
    page.click("main form.form button.primary")
    expect(page.locator(".tag.own")).to_have_text("changed here")
    new_chat(window)
    page.fill("#text", "add a lamp to my shopping list")
    page.press("#text", "Enter")
    expect(page.locator(".ask")).to_be_visible()
    page.locator(".ask [value=deny]").click()
    expect(page.locator(".turn.bot .foot")).to_be_visible()
    go(window, "/admin/tools/task_create").get_by_role("button", name="Restore default").click()
    expect(page.locator(".tag.own")).to_have_count(0)


def test_words_show_their_effect_and_saved_they_change_the_plan(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token)
    ask(new_chat(window), ODD)
    assert "task_create" not in tools_of(why(window.page))
    page = go(window, "/admin/tools/in/tasks?tool=task_create")
    page.fill("[name=phrases]", "frobnicate")
    page.fill("[name=messages]", ODD)
    page.click("button[value=effect]")
    changed = page.locator("#effect tr", has_text=ODD)
    expect(changed.locator(".plus")).to_contain_text(["task_create"])
    expect(page.locator("[name=phrases]")).to_have_value("frobnicate")
    assert "task_create" not in explained_names(house), "nothing was saved yet"
    page = go(window, "/admin/tools/in/tasks?tool=task_create")
    page.fill("[name=phrases]", "frobnicate")
    page.click("button[value=save]")
    expect(page.locator("[name=phrases]")).to_have_value("frobnicate [task_create]")
    ask(new_chat(window), ODD)
    assert "task_create" in tools_of(why(window.page))
    assert "task_create" in explained_names(house)


def explained_names(house: Daemon) -> set[str]:
    return {one["name"] for one in explained(house, ODD)["sent"]}


@pytest.mark.parametrize("message", [MILK, "hello there", "show file notes.md and what changed in the last commit"])
def test_why_these_tools_says_what_explain_says(house: Daemon, ada: Caller, opens: Opens, message: str) -> None:
    window = opens(house.origin, ada.token)
    ask(new_chat(window), message)
    page = why(window.page)
    told = explained(house, message)
    assert tools_of(page) == {one["name"] for one in told["sent"]}
    rows = page.locator("main .why-t tbody tr td.n").evaluate_all(
        "all => all.map(one => parseInt(one.firstChild.textContent.replace(/[^0-9]/g, '')))"
    )
    assert sum(rows) == told["tokens"]
    assert page.locator("main .funnel .f-t").all_inner_texts() == [
        f"{told[key]:,}" for key in ("total_tokens", "permitted_tokens", "tokens")
    ]
    out = [f"{one['name']} {one['reason']}" for one in told["decisions"] if not one["is_in"]]
    shown = page.locator("main .why-out li").evaluate_all(
        "all => all.map(one => (one.querySelector('.sel')?.remove(), one.textContent.trim()))"
    )
    assert shown[:40] == out[:40]


def test_a_member_can_open_none_of_it(house: Daemon, bob: Caller, opens: Opens) -> None:
    window = opens(house.origin, bob.token)
    window.page.goto("/account")
    expect(window.page.locator("a[href^='/admin']")).to_have_count(0)
    for path in ("/admin/tools", "/admin/tools/task_create", "/admin/tools/in/tasks", "/admin/tools/try"):
        go(window, path, 403)
    for path in ("/admin/roles", "/admin/roles/coder"):
        go(window, path, 403)
    answer = window.page.request.post(
        f"{house.origin}/admin/tools/task_create", form={"sending": "never"}, headers={"Origin": house.origin}
    )
    assert answer.status == 403


def test_every_recipe_is_tried_side_by_side_and_a_check_is_kept(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token)
    page = go(window, "/admin/tools/try")
    page.fill("[name=text]", MILK)
    page.click("main form button.primary")
    expect(page.locator(".ways tbody tr")).to_have_count(7)
    expect(page.locator(".steps > li").first).to_contain_text("gate")
    page.fill("[name=expected]", "task_create")
    page.click("button[value=keep]")
    page.click("text=Run checks")
    expect(page.locator(".say.ok")).to_contain_text("pass")
    page.get_by_role("button", name=f"Remove: {MILK}").click()
    expect(page.locator("main")).to_contain_text("None yet.")


def test_a_role_loses_a_category_with_its_live_total_and_gets_it_back(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token)
    page = go(window, "/admin/roles/orchestrator")
    before = page.locator("#priced").inner_text()
    page.locator("[name=tools][value=tasks]").uncheck()
    poll(lambda: page.locator("#priced").inner_text() != before)
    page.click("text=Save tools")
    expect(page.locator("[name=tools][value=tasks]")).not_to_be_checked()
    ask(new_chat(window), "add bread to my shopping list")
    assert "task_create" not in tools_of(why(page))
    go(window, "/admin/roles/orchestrator").get_by_role("button", name="Restore default: tools").click()
    expect(page.locator("[name=tools][value=tasks]")).to_be_checked()
    ask(new_chat(window), "add bread to my shopping list")
    assert "task_create" in tools_of(why(page))


def test_on_a_phone_tools_and_usage_fold_and_a_search_leaves_the_folds_as_they_were(
    house: Daemon, ada: Caller, opens: Opens
) -> None:
    window = opens(house.origin, ada.token, is_phone=True)
    page = go(window, "/admin/tools")
    task, log = page.locator("#t-task_create"), page.locator("#t-git_log")
    assert page.evaluate("document.documentElement.scrollHeight") <= 2500
    page.locator("summary", has=page.get_by_role("heading", name="tasks", exact=True)).click()
    expect(task).to_be_visible()
    page.get_by_role("searchbox", name="Name, category").fill("git_log")
    expect(log).to_be_visible()
    expect(task).to_have_count(0)
    page.get_by_role("searchbox", name="Name, category").fill("")
    expect(task).to_be_visible()
    expect(log).to_be_hidden()
    page.goto("/admin/tools#t-git_log")
    page.reload()
    expect(log).to_be_in_viewport()
    expect(task).to_be_visible()
    page.goto("/usage")
    assert page.evaluate("document.documentElement.scrollHeight") <= 2000
    summary = page.locator("#fold-budgets > summary")
    summary.press("Enter")
    page.get_by_role("link", name="90 days").click()
    expect(page.locator("#budgets")).to_be_visible()


def test_all_of_it_works_without_a_script(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token, has_script=False)
    page = go(window, "/admin/tools")
    page.goto("/admin/tools#t-git_log")
    page.uncheck("#on-git_log")
    page.locator("#t-git_log noscript button, #t-git_log button").click()
    page = go(window, "/admin/tools/git_log")
    expect(page.locator("[name=is_on]")).not_to_be_checked()
    page.get_by_role("button", name="Restore default").click()
    expect(page.locator("[name=is_on]")).to_be_checked()
    page = go(window, "/admin/tools/in/git")
    page.fill("[name=phrases]", "frobnicate [git_log]")
    page.fill("[name=messages]", "frobnicate that")
    page.click("button[value=effect]")
    expect(page.locator("#effect")).to_contain_text("What would change")
    page = go(window, "/admin/roles/coder")
    page.locator("noscript button, button[formaction]").click()
    expect(page.locator("#priced")).to_contain_text("tokens if all were sent in full form")
