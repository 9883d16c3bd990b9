"""Texts that would run a script or load something, in everything that takes a text: in Chromium nothing of it happens.

The pages are opened without their content policy: what holds is that a text stays a text. The policy is one wall more.
"""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Dialog, Page

from tests.attacks import FOREIGN, scripts
from tests.e2e.browser import Window
from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import furnish, go
from tests.e2e.person import ask, new_chat
from tests.scripted_server import Asked, Say, ScriptedServer, Use, rule
from tests.share import QUARTER

pytestmark = pytest.mark.browser

IN_A_MESSAGE = 100
SHORT = scripts()[::37]  # for titles and names, of which each page shows some
ALL = scripts()
MESSAGES = ["\n\n".join(ALL[at : at + IN_A_MESSAGE]) for at in range(0, len(ALL), IN_A_MESSAGE)]


def echoed(asked: Asked) -> Say:
    """The model says what it was told, and calls a tool with it."""
    title = {"title": asked.user[:300], "list_name": asked.user[:40], "notes": asked.user}
    return Say(asked.user, (Use("task_create", title, is_blind=True),), thinking=asked.user)


@pytest.fixture(scope="module")
def paths(house: Daemon, ada: Caller) -> Iterator[tuple[str, ...]]:
    """The pages, but for entries, of a house with something of everything, and such a text in whatever takes one."""
    made = furnish(house.home, ada)
    with ScriptedServer(rule("", echoed, "\n\n".join(SHORT))) as server:
        form = {"name": "Echo", "provider": "openai", "model": "echo", "streams": "1", "tools": "1"}
        ada.post("/models", base_url=server.base_url, api_key=server.api_key, **form)
        ada.post("/models/chain", names="Echo")
        plant(ada, made.chat)
        yield (*(path for path in made.paths if "/notes/" not in path), *added(ada))
        assert server.problems == []
    made.member.__exit__()


def plant(ada: Caller, chat: str) -> None:
    for number, one in enumerate(SHORT):
        ada.post("/tasks", title=one, list_name=one[:60], notes=one)
        ada.post("/reminders", words=f"{one} tomorrow at 9")
        if number % 5 == 0:
            ada.post("/jobs/new", name=one, prompt=one, when="every day at 2:30")
        ada.post("/journals", name=one[:200])
    journal = re.findall(r'<tr id="journal-(\w+)"', ada.get("/journals").text)[0]
    for number, one in enumerate(SHORT):
        ada.post(f"/journals/{journal}/new", key=f"act{number}", title=one[:200], text=one)
        ada.post(f"/journal-entries/act{number}/edit", version="1", title=one[:200], text=f"{one}\n{one}")
    every = "\n\n".join(SHORT)
    ada.post("/scratchpad", text=every, version="")
    ada.post("/account/persona", persona=every, version="")
    ada.post("/admin/tools/task_create/description", description=SHORT[1], do="save")
    ada.post("/admin/tools/try", text=SHORT[2], expected="task_create", do="keep")
    ada.post(f"{chat}/rename", title=SHORT[3])


def added(ada: Caller) -> list[str]:
    """A page of each planted thing by itself."""
    rows = {"/journals": "journal", "/tasks": "task", "/reminders": "next", "/jobs": "job"}
    kinds = {place: rf' id="{row}-(\w+)"' for place, row in rows.items()}
    ones = [f"{kind}/{re.findall(row, ada.get(kind).text)[-1]}" for kind, row in kinds.items()]
    return [*ones, "/journals?q=window"]


def watched(window: Window) -> list[str]:
    """Where the window asks for something that is not the house's own, dialogs too, from now on."""
    foreign: list[str] = []
    window.context.on("request", lambda request: foreign.extend([request.url] * (FOREIGN in request.url)))

    def note(dialog: Dialog) -> None:
        foreign.append(dialog.message)
        dialog.dismiss()

    window.page.on("dialog", note)
    return foreign


def acted(page: Page) -> list[str]:
    """What has come of the texts on this page: scripts that ran, and elements that could still act."""
    found: list[str] = page.evaluate(
        """() => [
          ...(window.hits ? [`${window.hits} scripts ran`] : []),
          ...[...document.querySelectorAll('*')].filter(e =>
            [...e.attributes].some(a => /^(on|hx-on|data-hx-on|srcdoc)/.test(a.name)
              || /^(href|src|action|formaction|data|poster)$/.test(a.name)
                 && !/^(https?|mailto):$/.test(new URL(a.value, location.href).protocol)))
            .map(e => e.outerHTML.slice(0, 200))]"""
    )
    return found


@QUARTER
def test_nothing_that_is_said_in_a_chat_acts(
    house: Daemon, paths: tuple[str, ...], ada: Caller, opens: Opens, step: int
) -> None:
    window = opens(house.origin, ada.token, bypass_csp=True)
    foreign = watched(window)
    page = new_chat(window)
    for message in MESSAGES[::step]:
        ask(page, message)
        assert acted(page) == []
    page.reload()
    assert acted(page) == []
    for card in page.locator("details.tool summary").all()[:2]:
        card.click()
    assert acted(page) == []
    assert page.locator(".turn.bot").count() == len(MESSAGES[::step])
    assert len(ALL) > 840
    assert foreign == []


@QUARTER
def test_nothing_that_stands_on_any_page_acts(
    house: Daemon, paths: tuple[str, ...], ada: Caller, opens: Opens, step: int
) -> None:
    window = opens(house.origin, ada.token, bypass_csp=True)
    foreign = watched(window)
    found = {}
    shown = 0
    entries = [f"act{at}{place}" for at in range(0, len(SHORT), step) for place in ("", "/edit", "/history/1")]
    for path in (*paths, *(f"/journal-entries/{one}" for one in entries)):
        page = go(window, path)
        shown += "window.hits" in page.content()
        if wrong := acted(page):
            found[path] = wrong
    assert found == {}
    assert foreign == []
    assert shown > 12, "the texts are on most of the lists, in pages of their own and in the side bar"
