"""From the page to an answer, in a real browser with the real daemon: remember, ask, see what went along, forget."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.person import ask, new_chat, said
from tests.scripted_server import Asked, ScriptedServer, rule

pytestmark = pytest.mark.browser

FACT = "I am allergic to hazelnuts."


def reads(asked: Asked) -> str:
    return "No hazelnuts, then." if FACT in asked.user else "Hazelnut cake."


@pytest.fixture(scope="module")
def model(ada: Caller) -> Iterator[ScriptedServer]:
    with ScriptedServer(rule("bake", reads), rule("", "Hello.")) as server:
        form = {"name": "Scripted", "provider": "openai", "model": "scripted-1", "streams": "1", "tools": "1"}
        ada.post("/models", **form, base_url=server.base_url, api_key=server.api_key)
        yield server
        assert server.problems == []
        assert server.cache_breaks() == []


def test_a_fact_written_on_the_page_is_used_in_an_answer_and_shown(
    house: Daemon, ada: Caller, model: ScriptedServer, opens: Opens
) -> None:
    window = opens(house.origin, ada.token)
    page = new_chat(window)
    ask(page, "hello")
    hello = model.log[-1].body["messages"]

    page.goto("/memory")
    expect(page.locator("main")).to_contain_text("Nothing is remembered yet.")
    page.fill("#new-text", FACT)
    page.keyboard.press("Enter")
    expect(page.locator("table.remembered")).to_contain_text(FACT)

    new_chat(window)
    ask(page, "hello")
    assert len(model.log[-1].body["messages"][-1]["content"]) == len(hello[-1]["content"]), "small talk stays bare"
    answer = ask(page, "what can I bake for a party?")
    assert said(answer) == "No hazelnuts, then."
    first, *_, last = model.log[-1].body["messages"]
    assert first == hello[0], "the cached prefix is what it was"
    assert last["content"].startswith("what can I bake for a party?")
    page.locator(".foot .whyb").last.click()
    expect(page.locator("#why-b")).to_contain_text(FACT)
    expect(page.locator("#why-b")).to_contain_text(
        re.compile(r"fit 0\.\d\d: bears on “bake” \(allergic\) \(\d+ tokens\)")
    )

    page.goto("/memory")
    page.locator("main table.remembered a").first.click()
    page.fill("#f-text", "I am allergic to walnuts.")
    page.click("main form.form button.primary")
    expect(page.locator("table.remembered")).to_contain_text("walnuts")
    page.locator("#toasts form button").click()
    expect(page.locator("table.remembered")).to_contain_text(FACT)
    page.get_by_role("button", name=re.compile("^Forget: ")).click()
    expect(page.locator("main")).to_contain_text("Nothing is remembered yet.")
    page.locator("#toasts form button").click()
    expect(page.locator("table.remembered")).to_contain_text(FACT)
    page.get_by_role("link", name="Forget everything").click()
    page.get_by_role("button", name="Forget everything").click()
    expect(page.locator("main")).to_contain_text("Nothing is remembered yet.")


def test_without_a_script_facts_are_kept_searched_switched_and_forgotten(
    house: Daemon, ada: Caller, opens: Opens
) -> None:
    page = opens(house.origin, ada.token, has_script=False).page
    page.goto("/memory")
    page.fill("#new-text", "I have a boat.")
    page.click("main form.add button.primary")
    page.fill("#memory-q", "boat")
    page.press("#memory-q", "Enter")
    expect(page).to_have_url(re.compile(r"/memory\?q=boat$"))
    expect(page.locator("table.remembered")).to_contain_text("I have a boat.")
    page.uncheck("#f-recalls")
    page.fill("#f-budget", "90")
    page.click("main form.form button.primary")
    expect(page.locator("#f-recalls")).not_to_be_checked()
    expect(page.locator("#f-budget")).to_have_value("90")
    page.get_by_role("button", name="Forget: I have a boat.").click()
    page.click("#toasts form button")
    expect(page.locator("table.remembered")).to_contain_text("I have a boat.")
    page.click("main a[href='/memory/forget-all']")
    page.click("main button.danger")
    expect(page.locator("main")).to_contain_text("Nothing is remembered yet.")
