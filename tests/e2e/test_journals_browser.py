"""A journal from the page to the assistant's answer, in a real browser with the real daemon."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.attacks import FOREIGN, scripts
from tests.e2e.browser import LOOKS, axe, overflow_px
from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import forgive
from tests.e2e.person import ask, new_chat, said, tab
from tests.scripted_server import ScriptedServer, Use, rule

pytestmark = pytest.mark.browser


def fresh_journal(page: Page, name: str) -> str:
    page.goto("/journals")
    page.fill("#new-name", name)
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/journals/\w+$"))
    return page.url


def write(page: Page, title: str, text: str) -> str:
    page.locator("main a", has_text="Write").first.click()
    page.fill("#f-title", title)
    page.fill("#f-text", text)
    page.click("main form.form button.primary")
    page.wait_for_url("**/journal-entries/*")
    return page.url


@pytest.mark.parametrize("has_script", [True, False], ids=["script", "no script"])
def test_an_entry_is_written_found_changed_and_put_back(
    house: Daemon, ada: Caller, opens: Opens, has_script: bool
) -> None:
    page = opens(house.origin, ada.token, has_script=has_script).page
    journal = fresh_journal(page, f"Garden {has_script}")
    expect(page.locator("main")).to_contain_text("No entries yet.")
    entry = write(page, "First frost", "# Beds\n\nThe **dahlias** are in.")
    expect(page.locator("main h3")).to_have_text("Beds")
    expect(page.locator("main strong")).to_have_text("dahlias")

    page.goto(journal)
    page.fill("#entries-q", "dahl")
    page.keyboard.press("Enter")
    expect(page.locator("mark")).to_have_text("dahlias")
    page.locator(".entries a").first.click()
    page.get_by_role("link", name="Edit").click()
    page.fill("#f-text", "The dahlias are out.")
    page.click("main form.form button.primary")
    expect(page.locator("#toasts")).to_contain_text("Saved.")
    page.get_by_role("link", name="History", exact=True).click()
    page.get_by_role("link", name="Version 1").click()
    expect(page.locator(".lines .is")).to_contain_text("The dahlias are out.")
    page.get_by_role("button", name="Restore this version").click()
    page.wait_for_url(entry)
    expect(page.locator("main h3")).to_have_text("Beds")

    page.get_by_role("button", name="Remove").click()
    expect(page.locator("main")).to_contain_text("No entries yet.")
    page.locator("#toasts").get_by_role("button", name="Undo").click()
    page.wait_for_url(entry)
    page.goto(journal)
    page.get_by_role("button", name="Remove").click()
    page.locator("#toasts").get_by_role("button", name="Undo").click()
    page.wait_for_url(journal)
    expect(page.locator(".entries a")).to_have_count(1)


def test_of_two_tabs_that_save_neither_loses_its_words(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token)
    page = window.page
    fresh_journal(page, "Two tabs")
    entry = write(page, "Shared", "from before")
    page.goto(f"{entry}/edit")
    other = tab(window, f"{entry}/edit")
    other.fill("#f-text", "of the other tab")
    other.click("main form.form button.primary")
    other.wait_for_url(entry)
    page.fill("#f-text", "of this tab")
    page.click("main form.form button.primary")
    expect(page.get_by_role("alert")).to_contain_text("nothing was saved")
    forgive(window, 409)
    expect(page.locator("pre")).to_have_text("of the other tab")
    expect(page.locator("#f-text")).to_have_value("of this tab")
    page.click("main form.form button.primary")
    page.wait_for_url(entry)
    expect(page.locator(".prose")).to_contain_text("of this tab")
    page.goto(f"{entry}/history")
    for words in ("from before", "of the other tab", "of this tab"):
        expect(page.locator("table")).to_contain_text(words)


def test_hostile_entries_do_nothing(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token, bypass_csp=True)
    foreign: list[str] = []
    window.context.on("request", lambda request: foreign.extend([request.url] * (FOREIGN in request.url)))
    page = window.page
    journal = fresh_journal(page, "Hostile").rpartition("/")[2]
    texts = scripts()[:: len(scripts()) // 20][:20]
    for number, text in enumerate(texts):
        ada.post(f"/journals/{journal}/new", key=f"bad{number}", title=text[:200], text=text)
    shown = 0
    for path in (f"/journals/{journal}", "/journals?q=window", *(f"/journal-entries/bad{n}" for n in range(20))):
        page.goto(path)
        shown += page.locator("main h2").count()
        assert page.evaluate("() => window.hits ?? 0") == 0, path
        assert (
            page.locator("main").evaluate(
                "m => [...m.querySelectorAll('*')].filter(e => [...e.attributes].some(a => /^on/.test(a.name))).length"
            )
            == 0
        ), path
    assert (len(texts), foreign) == (20, [])
    assert shown


def test_the_assistant_writes_finds_and_takes_back(house: Daemon, ada: Caller, opens: Opens) -> None:
    create = Use("ae_journal_entry_create", {"text": "The owl is back.", "journal": "Birds", "title": "Owl"})
    rules = (
        rule("write in my birds journal", create, "It is written down."),
        rule("search my journals", Use("ae_journal_search", {"query": "owl"}), "Found: {result}"),
    )
    with ScriptedServer(*rules) as server:
        form = {"name": "Echo", "provider": "openai", "model": "echo", "streams": "1", "tools": "1"}
        ada.post("/models", base_url=server.base_url, api_key=server.api_key, **form)
        ada.post("/models/chain", names="Echo")
        page = new_chat(opens(house.origin, ada.token))
        answer = ask(page, "write in my birds journal that the owl is back")
        expect(answer.locator("details.tool.ok .tn")).to_have_text("ae_journal_entry_create")
        assert "written down" in said(answer)
        found = ask(page, "search my journals for the owl")
        found.locator("details.tool summary").click()
        expect(found.locator("details.tool.ok")).to_contain_text("The owl is back.")
        chat = page.url
        page.goto("/journals?q=owl")
        expect(page.locator(".entries a")).to_have_count(1)
        page.goto(chat)
        page.locator(".deed form[action^='/undo/'] button").first.click()
        expect(page.locator("details.tool").first).to_have_class("tool undone")
        page.goto("/journals?q=owl")
        expect(page.locator("main")).to_contain_text("Nothing matches.")
        assert server.problems == []


@LOOKS
def test_the_pages_fit_and_are_accessible(
    house: Daemon, ada: Caller, opens: Opens, is_phone: bool, is_dark: bool
) -> None:
    name = f"Log {is_phone} {is_dark}"
    ada.post("/journals", name=name)
    journal = re.findall(rf'href="/journals/(\w+)"[^>]*>{name}<', ada.get("/journals").text)[0]
    key = f"fit{is_phone}{is_dark}"
    long = "Pneumono" * 30
    ada.post(f"/journals/{journal}/new", key=key, title=f"{long}"[:200], text=f"# Head\n\n{long}\n\n    code {long}")
    ada.post(f"/journal-entries/{key}/edit", version="1", title="Short", text=f"other {long}")
    page = opens(house.origin, ada.token, is_phone=is_phone, is_dark=is_dark).page
    found: dict[str, object] = {}
    places = ("", "/edit", "/history", "/history/1")
    paths = [f"/journals/{journal}", "/journals", f"/journals/{journal}/new", f"/journals/{journal}/rename"]
    for path in (*paths, "/journals?q=other", *(f"/journal-entries/{key}{place}" for place in places)):
        page.goto(path)
        if (over := overflow_px(page)) > 0 or (wrong := axe(page)):
            found[path] = over or wrong
    assert found == {}
